"""What people asked for: to be in no release, to be gone from here. Keyed hashes of Patient IDs, never an ID."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, and_, insert, select, true, update

from gateway.database.tables import erasures, instances, intents, jobs, mapped, opted_out

ANY = ""  # whoever issued the Patient ID


@dataclass(frozen=True, slots=True)
class Subject:
    """A person by keyed names. `issuer_key` "": whoever issued the Patient ID."""

    person_key: str
    issuer_key: str = ANY

    def is_meant_by(self, person_key: str, issuer_key: str) -> bool:
        """True when somebody of this name may be the person: who names no issuer may be anybody's."""
        return person_key == self.person_key and (ANY in (self.issuer_key, issuer_key) or issuer_key == self.issuer_key)


@dataclass(frozen=True, slots=True)
class OptedOut:
    """`ended_at`: when the person opted in again."""

    subject: Subject
    since: float
    ended_at: float | None
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class Erasure:
    """`removed` says how many of each kind went; `done_at` when a pass over everything had ended."""

    serial: int
    subject: Subject
    requested_at: float
    actor: str
    reason: str
    done_at: float | None = None
    removed: Mapping[str, int] = field(default_factory=dict)


class Rights:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def opt_out(self, subject: Subject, *, at: float, actor: str, reason: str, intent: str = "") -> int:
        """Block a person from now on, and ask for what is on its way to be stopped (an intent of kind `intent`, its
        serial; 0 without one), in one transaction.
        """
        values = {"since": at, "ended_at": None, "actor": actor, "reason": reason}
        with self.transaction() as connection:
            which = _named(opted_out.c.person_key, opted_out.c.issuer_key, subject)
            if connection.execute(select(opted_out.c.since).where(which)).first() is None:
                keys = {"person_key": subject.person_key, "issuer_key": subject.issuer_key}
                connection.execute(insert(opted_out).values(**keys, **values))
            else:
                connection.execute(update(opted_out).where(which).values(**values))
            return _wish(connection, intent, subject, actor, reason)

    def opt_in(self, subject: Subject, *, at: float) -> bool:
        """The block ends; False when there was none. Without an issuer, blocks of every issuer end."""
        which = and_(opted_out.c.person_key == subject.person_key, opted_out.c.ended_at.is_(None))
        if subject.issuer_key != ANY:
            which = and_(which, opted_out.c.issuer_key == subject.issuer_key)
        with self.transaction() as connection:
            return bool(connection.execute(update(opted_out).where(which).values(ended_at=at)).rowcount)

    def opted_out(self, *, ended: bool = False) -> list[OptedOut]:
        """Blocks in force, oldest first; with `ended` those that are over as well."""
        query = select(opted_out).order_by(opted_out.c.since, opted_out.c.person_key)
        if not ended:
            query = query.where(opted_out.c.ended_at.is_(None))
        with self.transaction() as connection:
            rows = connection.execute(query).all()
        return [OptedOut(Subject(r.person_key, r.issuer_key), r.since, r.ended_at, r.actor, r.reason) for r in rows]

    def ask_erasure(self, subject: Subject, *, at: float, actor: str, reason: str, intent: str = "") -> int:
        """Note that everything of a person that arrived by `at` is to go. The intent's serial; the same again is no
        second one.
        """
        with self.transaction() as connection:
            which = and_(_named(erasures.c.person_key, erasures.c.issuer_key, subject), erasures.c.requested_at == at)
            if connection.execute(select(erasures.c.serial).where(which)).first() is not None:
                return 0
            keys = {"person_key": subject.person_key, "issuer_key": subject.issuer_key}
            connection.execute(insert(erasures).values(**keys, requested_at=at, actor=actor, reason=reason))
            return _wish(connection, intent, subject, actor, reason)

    def erasures(self) -> list[Erasure]:
        """All that were ever asked for, oldest first."""
        with self.transaction() as connection:
            rows = connection.execute(select(erasures).order_by(erasures.c.serial)).all()
        return [
            Erasure(
                row.serial,
                Subject(row.person_key, row.issuer_key),
                row.requested_at,
                row.actor,
                row.reason,
                row.done_at,
                json.loads(row.removed or "{}"),
            )
            for row in rows
        ]

    def erased(self, erasure: Erasure, removed: Mapping[str, int]) -> None:
        """A pass over everything has ended; what went is added up."""
        total = {name: erasure.removed.get(name, 0) + removed.get(name, 0) for name in {*erasure.removed, *removed}}
        values = {"done_at": erasure.done_at or time.time(), "removed": json.dumps(total, sort_keys=True)}
        with self.transaction() as connection:
            connection.execute(update(erasures).where(erasures.c.serial == erasure.serial).values(**values))

    def generations_of(
        self, subject: Subject, names: Collection[str], before: float | None = None
    ) -> list[tuple[str, int]]:
        """(study key, generation) of whatever bears one of a person's `names`; only what arrived by `before`."""
        issuers = instances.c.issuer_key.in_((ANY, subject.issuer_key)) if subject.issuer_key != ANY else true()
        mine = and_(instances.c.patient_key.in_(sorted(names)), issuers)
        arrived = select(instances.c.study_key, instances.c.generation).where(mine)
        work = (
            select(jobs.c.study_key, jobs.c.generation)
            .join(mapped, mapped.c.work_key == jobs.c.job_key)
            .join(
                instances,
                and_(instances.c.study_key == jobs.c.study_key, instances.c.generation == jobs.c.generation),
            )
            .where(mapped.c.person_key.in_(sorted(names)), issuers)
        )
        if before is not None:
            arrived, work = (query.where(instances.c.received_at <= before) for query in (arrived, work))
        with self.transaction() as connection:
            found = {(row.study_key, row.generation) for query in (arrived, work) for row in connection.execute(query)}
        return sorted(found)

    def work_of(self, names: Iterable[str], before: float | None = None) -> list[tuple[str, str]]:
        """(work key, study key) of whatever was mapped to one of a person's names, also by `scrub`."""
        query = select(mapped.c.work_key, mapped.c.study_key).where(mapped.c.person_key.in_(sorted(names)))
        if before is not None:
            query = query.where(mapped.c.mapped_at <= before)
        with self.transaction() as connection:
            return sorted((row.work_key, row.study_key) for row in connection.execute(query))


def _named(person: ColumnElement[str], issuer: ColumnElement[str], subject: Subject) -> ColumnElement[bool]:
    return and_(person == subject.person_key, issuer == subject.issuer_key)


def _wish(connection: Connection, kind: str, subject: Subject, actor: str, reason: str) -> int:
    if not kind:
        return 0
    key = f"{subject.person_key}.{subject.issuer_key}"
    values = {"kind": kind, "key": key, "actor": actor, "reason": reason, "created_at": time.time()}
    return int(connection.execute(insert(intents).values(**values).returning(intents.c.serial)).scalar_one())
