"""Pseudonyms for a preview: those of a home as far as reading tells them, or of a key that is forgotten afterwards.

Follows lookup and merge tables as `mapping` does, and notes nothing: whether a pseudonym was issued before, and to
whom, is a question for the real run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gateway.app.keyring import ring_of
from gateway.app.person.tables import PeopleTables, held_for
from gateway.errors import Hold, PolicyError
from gateway.policy import PatientIdPolicy
from gateway.pseudonyms import Keys, Own, Pseudonyms, master_key
from gateway.settings import Home, Settings

OF_THIS_RUN = (
    "pseudonyms, UIDs and date shifts are made with a key of this run only; --home shows those of your gateway"
)


@dataclass(frozen=True, slots=True)
class PreviewPeople:
    """Who people become. `says` tells whose key makes it so."""

    plain: Pseudonyms
    keys: Keys
    tables: PeopleTables
    says: str

    @classmethod
    def of(cls, home: Home | None, settings: Settings, project: str, folder: Path, master: bytes) -> PreviewPeople:
        """`folder` holds the policy's tables; `master` is a key to be forgotten, for want of a home.

        Raises EnvironmentFault for a home without its key.
        """
        if home is None:
            keys = Keys(master)
            plain = Pseudonyms.of_project(keys.master, project)
            return cls(plain, keys, PeopleTables(folder, keys, settings.lookup_urls), OF_THIS_RUN)
        keys = Keys(master_key(home, settings))
        ring = ring_of(home, keys)
        plain = Pseudonyms(ring.project_key(ring.active, project))
        says = f"pseudonyms, UIDs and date shifts are those of the home {home.root}, project {project}"
        return cls(plain, keys, PeopleTables(folder, keys, settings.lookup_urls), says)

    def pseudonyms(self, rule: PatientIdPolicy, patient_ids: Iterable[str]) -> Pseudonyms:
        """For a study with these Patient IDs. Raises Hold, Retry."""
        names = {self.keys.person(patient_id) for patient_id in patient_ids}
        try:
            merges = self.tables.merges(rule)
            lookup = self.tables.lookup(rule) if rule.pseudonym == "lookup" else None
        except PolicyError as error:
            raise held_for(error) from None
        people = {merges.survivor.get(name, name) for name in names}
        if len(people) != 1:
            raise Hold("mixed_patients")
        person = people.pop()
        pseudonym, shift = "", b""
        if lookup is not None:
            pseudonym = lookup.pseudonyms.get(person, "")
            if not pseudonym:
                raise Hold("patient_unlisted", at=rule.table)
        if names != {person}:
            surviving = merges.surviving_ids[person]
            pseudonym = pseudonym or self.plain.patient_id(surviving, prefix=rule.prefix)
            shift = self.plain.shift_bits(surviving)
        persons = merges.others.get(person, frozenset()) | {person}
        own = Own(self.keys.people, persons, pseudonym, shift, listed=lookup is not None)
        return Pseudonyms(self.plain.key, own)
