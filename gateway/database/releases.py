"""Releases: the studies of a policy that are judged together, and what was said of them.

A job that is cleared under a policy with `release:` joins the open release of its project, policy digest and
destination, in the transaction that changes its state. A release is then open -> auditing -> cleared -> sent, or
blocked; under a policy that only looks, shadowed; and recalled, when all that was sent of it was. Escalating, while
some of its studies are made at a stronger level; then it is audited again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from gateway.database.job import JobRow
from gateway.database.tables import intents, jobs, release_members, releases
from gateway.study import State

OPEN, AUDITING, CLEARED, SENT, BLOCKED = "open", "auditing", "cleared", "sent", "blocked"
RECALLED, SHADOWED, ESCALATING = "recalled", "shadowed", "escalating"
UNDECIDED = (OPEN, AUDITING, ESCALATING)
RELEASED = (CLEARED, SENT, RECALLED)  # what a receiver had is known to it, also after it was recalled
KEPT = (BLOCKED, SHADOWED, RECALLED)  # a job that is tried again stays in the list of these
_LOCK = 0x72656C65  # any number that nobody else locks: "rele"


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """One release. `number` counts within the policy's name; `looks` how often it was judged; `scores` as JSON data."""

    serial: int
    policy: str
    number: int
    policy_digest: str
    project: str
    destination: str
    state: str
    round: int
    opened_at: float
    checked_at: float
    updated_at: float
    closed_at: float | None = None
    looks: int = 0
    reason: str = ""
    at: str = ""
    scores: str = ""

    @property
    def name(self) -> str:
        return f"{self.policy}-{self.number}"

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The scores; those of before there were views are of whole images."""
        found: list[dict[str, Any]] = json.loads(self.scores or "[]")
        return [{"view": "whole", **figure} for figure in found]


@dataclass(frozen=True, slots=True)
class NewMember:
    """What a job brings into its release: keyed hashes, and the name of its round's references."""

    person: str
    session: str
    references: str
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class Releases:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def join_release(self, job: JobRow, values: Mapping[str, object], member: NewMember, serial: int = 0) -> ReleaseRow:
        """The job waits for the release that had it made at a stronger level, else for the open one of its policy,
        which is made when there is none. `serial` is that of an intent which asked for it, finished in the same
        transaction.
        """
        now = time.time()
        with self.transaction() as connection:
            self._order(connection)
            release = self._escalating_release(connection, job) or self._open_release(connection, job, now)
            standing = select(releases.c.serial).where(releases.c.state.not_in(KEPT))
            connection.execute(
                delete(release_members).where(
                    release_members.c.job_key == job.job_key, release_members.c.release.in_(standing)
                )
            )
            connection.execute(
                insert(release_members).values(
                    job_key=job.job_key,
                    release=release.serial,
                    person=member.person,
                    session=member.session,
                    references=member.references,
                    facts=json.dumps(member.facts),
                    joined_at=now,
                )
            )
            connection.execute(update(jobs).where(jobs.c.job_key == job.job_key).values(**values, updated_at=now))
            if serial:
                connection.execute(
                    update(intents).where(intents.c.serial == serial).values(done_at=now, outcome="done")
                )
        return release

    def release(self, serial: int) -> ReleaseRow | None:
        found = self._releases(releases.c.serial == serial)
        return found[0] if found else None

    def release_named(self, name: str) -> ReleaseRow | None:
        """The release that `ReleaseRow.name` says."""
        policy, _, number = name.rpartition("-")
        if not number.isdecimal() or len(number) > 9:
            return None
        found = self._releases(and_(releases.c.policy == policy, releases.c.number == int(number)))
        return found[0] if found else None

    def releases_in(self, *states: str) -> list[ReleaseRow]:
        """Releases in these states, oldest first; all when none is named."""
        return self._releases(releases.c.state.in_(states) if states else releases.c.serial > 0)

    def release_of(self, job_key: str) -> ReleaseRow | None:
        with self.transaction() as connection:
            serial = connection.execute(
                select(func.max(release_members.c.release)).where(release_members.c.job_key == job_key)
            ).scalar()
        return self.release(serial) if serial is not None else None

    def close_release(self, serial: int) -> bool:
        """Open -> auditing. False when it was not open."""
        now = time.time()
        with self.transaction() as connection:
            self._order(connection)
            done = connection.execute(
                update(releases)
                .where(releases.c.serial == serial, releases.c.state == OPEN)
                .values(state=AUDITING, closed_at=now, updated_at=now)
            )
        return bool(done.rowcount)

    def set_release(self, serial: int, **values: object) -> None:
        with self.transaction() as connection:
            connection.execute(
                update(releases).where(releases.c.serial == serial).values(**values, updated_at=time.time())
            )

    def end_audit(
        self, serial: int, values: Mapping[str, object], audited: Sequence[str], of_jobs: Mapping[str, object]
    ) -> None:
        """The outcome of an audit: the release and the jobs that it was about, in one transaction. A job that stopped
        waiting meanwhile (somebody rejected it) stays as it is, and one look is counted.
        """
        now = time.time()
        with self.transaction() as connection:
            done = connection.execute(
                update(releases)
                .where(releases.c.serial == serial, releases.c.state == AUDITING)
                .values(**values, looks=releases.c.looks + 1, updated_at=now)
            )
            for key in audited if done.rowcount else ():
                waiting = and_(jobs.c.job_key == key, jobs.c.state == State.AWAITING_RELEASE)
                connection.execute(update(jobs).where(waiting).values(**of_jobs, updated_at=now))

    def _releases(self, which: Any) -> list[ReleaseRow]:
        with self.transaction() as connection:
            rows = connection.execute(select(releases).where(which).order_by(releases.c.serial)).all()
        return [ReleaseRow(**row._mapping) for row in rows]

    @staticmethod
    def _order(connection: Connection) -> None:
        """One after the other, so that two jobs do not open two releases; SQLite takes its write lock at once."""
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))

    @staticmethod
    def _escalating_release(connection: Connection, job: JobRow) -> ReleaseRow | None:
        mine = select(release_members.c.release).where(release_members.c.job_key == job.job_key)
        waits = and_(
            releases.c.serial.in_(mine),
            releases.c.state == ESCALATING,
            releases.c.policy_digest == job.policy_digest,
        )
        row = connection.execute(select(releases).where(waits)).first()
        return ReleaseRow(**row._mapping) if row is not None else None

    @staticmethod
    def _open_release(connection: Connection, job: JobRow, now: float) -> ReleaseRow:
        same = and_(
            releases.c.policy == job.policy,
            releases.c.policy_digest == job.policy_digest,
            releases.c.project == job.project,
            releases.c.destination == job.destination,
            releases.c.state == OPEN,
        )
        row = connection.execute(select(releases).where(same)).first()
        if row is None:
            last = connection.execute(select(func.max(releases.c.number)).where(releases.c.policy == job.policy))
            values = {
                "policy": job.policy,
                "number": (last.scalar() or 0) + 1,
                "policy_digest": job.policy_digest,
                "project": job.project,
                "destination": job.destination,
                "state": OPEN,
                "opened_at": now,
                "checked_at": now,
                "updated_at": now,
            }
            row = connection.execute(insert(releases).values(**values).returning(*releases.c)).one()
        return ReleaseRow(**row._mapping)
