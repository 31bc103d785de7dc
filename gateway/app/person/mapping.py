"""Whom a study is mapped to: the person behind its Patient IDs, the key that person has, the pseudonym a table gives.

All of it is settled before anything of the study is written, and again, against what has left by then, before anything
of it is sent. What has left binds: another key, table or merge holds the study instead of changing it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydicom

from gateway.app.person.tables import Merges, PeopleTables, held_for
from gateway.database import Database, Mapped
from gateway.database.mappings import KEYED, LOOKUP
from gateway.errors import Hold, PolicyError
from gateway.policy import HeaderPolicy, PatientIdPolicy
from gateway.pseudonyms import KeyRing, Keys, Own, Pseudonyms


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work: a job, or a study of a `scrub`. `persons` are the keyed names of all its Patient IDs."""

    key: str
    project: str
    study_key: str
    persons: frozenset[str]


class Mapper:
    """The mappings of a home. Safe to share between threads."""

    def __init__(self, keys: Keys, ring: KeyRing, database: Database, tables: PeopleTables) -> None:
        self._keys = keys
        self._ring = ring
        self._database = database
        self._tables = tables

    def person_of(self, persons: Iterable[str], rule: PatientIdPolicy) -> str:
        """The keyed name of the one person that these names mean. Raises Hold `mixed_patients`, `lookup_unusable`."""
        return _one_person(persons, self._merges(rule))

    def names_of(self, person: str, rules: Iterable[PatientIdPolicy]) -> frozenset[str]:
        """Every keyed name that means this person under the merge tables of these rules. Raises Hold."""
        names = frozenset({person})
        for rule in rules:
            names = self._merges(rule).names(names)
        return names

    def mapping(self, work: Work, header: HeaderPolicy) -> Pseudonyms:
        """What a study is mapped with; noted in our tables. Raises Hold, before anything of the study is written."""
        rule = header.patient_id
        merges = self._merges(rule)
        person = _one_person(work.persons, merges)
        listed = rule.pseudonym == LOOKUP
        pseudonym, table_key = self._listed(rule, person) if listed else ("", "")
        key_id = self._database.key_of_person(work.project, person, self._ring.active)
        plain = Pseudonyms(self._ring.project_key(key_id, work.project))
        shift = b""
        if work.persons != {person}:  # an old ID is among them: everything hangs on the surviving one
            surviving = merges.surviving_ids[person]
            pseudonym = pseudonym or plain.patient_id(surviving, prefix=rule.prefix)
            shift = plain.shift_bits(surviving)
        persons = merges.others.get(person, frozenset()) | {person}
        note = Mapped(
            work_key=work.key,
            project=work.project,
            study_key=work.study_key,
            person_key=person,
            key_id=key_id,
            source=LOOKUP if listed else KEYED,
            table_key=self._keys.opaque("tables", table_key, merges.key) if table_key or merges.key else "",
        )
        self._require(self._database.map_work(note, self._issued(work.project, pseudonym) if pseudonym else ""))
        own = Own(self._keys.people, persons, pseudonym, shift, listed=listed)
        return Pseudonyms(plain.key, own)

    def issue(self, work_key: str, candidate: Path) -> None:
        """Bind what is about to leave. `candidate` is one file of it; its Patient ID is what counts. Raises Hold."""
        mapped = self._database.mapped_as(work_key)
        pseudonym = _patient_id(candidate)
        if mapped is None or not pseudonym:
            raise Hold("mapping_changed", at="not noted" if mapped is None else "")
        self._require(self._database.issue(work_key, self._issued(mapped.project, pseudonym)))

    def person(self, work_key: str) -> str:
        """The keyed name of the person that a piece of work was mapped to, "" when none was noted."""
        mapped = self._database.mapped_as(work_key)
        return mapped.person_key if mapped is not None else ""

    def told(self, work_key: str) -> dict[str, Any]:
        """What the ledger tells of a mapping: the key's id, where the pseudonym is from, the tables by a keyed name."""
        mapped = self._database.mapped_as(work_key)
        if mapped is None:
            return {}
        tables = {"tables": mapped.table_key} if mapped.table_key else {}
        return {"mapping": {"key": mapped.key_id, "source": mapped.source, **tables}}

    def _listed(self, rule: PatientIdPolicy, person: str) -> tuple[str, str]:
        try:
            lookup = self._tables.lookup(rule)
        except PolicyError as error:
            raise held_for(error) from None
        pseudonym = lookup.pseudonyms.get(person)
        if pseudonym is None:
            raise Hold("patient_unlisted", at=rule.table)
        return pseudonym, lookup.key

    def _merges(self, rule: PatientIdPolicy) -> Merges:
        try:
            return self._tables.merges(rule)
        except PolicyError as error:
            raise held_for(error) from None

    def _issued(self, project: str, pseudonym: str) -> str:
        """Letters count alike in any case: some archives make no difference."""
        return self._keys.opaque("issued", project, pseudonym.casefold())

    def _require(self, conflict: str) -> None:
        if conflict:
            raise Hold(conflict)


def _one_person(persons: Iterable[str], merges: Merges) -> str:
    found = {merges.survivor.get(person, person) for person in persons}
    if len(found) != 1:
        raise Hold("mixed_patients")
    return found.pop()


def _patient_id(candidate: Path) -> str:
    try:
        value = pydicom.dcmread(candidate, stop_before_pixels=True, specific_tags=["PatientID"]).get("PatientID")
    except (OSError, pydicom.errors.InvalidDicomError):
        raise Hold("clearance_broken", at=candidate.name) from None
    return str(value or "").strip(" \0")
