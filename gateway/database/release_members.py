"""Who is in a release, and what is asked over the members of several."""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, update

from gateway.database.releases import BLOCKED, RELEASED, UNDECIDED, ReleaseRow
from gateway.database.tables import jobs, release_members, releases
from gateway.study import OVER, State


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A job of a release. `removed_at`: its references are gone."""

    job_key: str
    release: int
    person: str
    session: str
    references: str
    facts: str
    joined_at: float
    removed_at: float | None = None


class ReleaseMembers:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def members(self, serial: int, *states: State) -> list[MemberRow]:
        """Its jobs in these states (in any when none is named), by key."""
        query = select(release_members).where(release_members.c.release == serial)
        if states:
            query = query.join(jobs, jobs.c.job_key == release_members.c.job_key).where(jobs.c.state.in_(states))
        with self.transaction() as connection:
            rows = connection.execute(query.order_by(release_members.c.job_key)).all()
        return [MemberRow(**row._mapping) for row in rows]

    def memberships(self, job_key: str) -> list[MemberRow]:
        """A job in every release that it was ever in."""
        query = select(release_members).where(release_members.c.job_key == job_key).order_by(release_members.c.release)
        with self.transaction() as connection:
            return [MemberRow(**row._mapping) for row in connection.execute(query).all()]

    def released_before(self, release: ReleaseRow) -> list[MemberRow]:
        """Studies that the same policy (by name) released in the same project, and whose references are still here."""
        query = (
            select(release_members)
            .join(releases, releases.c.serial == release_members.c.release)
            .join(jobs, jobs.c.job_key == release_members.c.job_key)
            .where(
                releases.c.policy == release.policy,
                releases.c.project == release.project,
                releases.c.state.in_(RELEASED),
                releases.c.serial != release.serial,
                release_members.c.removed_at.is_(None),
                jobs.c.state.not_in((State.REJECTED, State.REFUSED)),
            )
            .order_by(release_members.c.job_key)
        )
        with self.transaction() as connection:
            return [MemberRow(**row._mapping) for row in connection.execute(query).all()]

    def looks_at(self, release: ReleaseRow) -> int:
        """How often releases of this policy's digest were judged in this project, with whatever outcome, and earlier
        tries with the same people under another version of the policy.
        """
        same = or_(releases.c.policy_digest == release.policy_digest, self._tried(release))
        query = select(func.coalesce(func.sum(releases.c.looks), 0)).where(releases.c.project == release.project, same)
        with self.transaction() as connection:
            return int(connection.execute(query).scalar_one())

    def blocked_before(self, release: ReleaseRow) -> int:
        """How often releases of the same policy (by name) that were blocked were judged with some of the same people
        in them: earlier tries. A policy that was edited in between gets no fresh look.
        """
        earlier = func.coalesce(func.sum(releases.c.looks), 0)
        query = select(earlier).where(releases.c.project == release.project, self._tried(release))
        with self.transaction() as connection:
            return int(connection.execute(query).scalar_one())

    @staticmethod
    def _tried(release: ReleaseRow) -> ColumnElement[bool]:
        mine = select(release_members.c.person).where(release_members.c.release == release.serial)
        with_mine = select(release_members.c.release).where(release_members.c.person.in_(mine))
        return and_(
            releases.c.policy == release.policy,
            releases.c.state == BLOCKED,
            releases.c.looks > 0,
            releases.c.serial != release.serial,
            releases.c.serial.in_(with_mine),
        )

    def waiting_people(self, serial: int) -> int:
        """People whose studies wait in this release."""
        return len({row.person for row in self.members(serial, State.AWAITING_RELEASE)})

    def all_sent(self, serial: int) -> bool:
        """Nothing of it has work to do, waits, or is held."""
        query = (
            select(func.count())
            .select_from(release_members)
            .join(jobs, jobs.c.job_key == release_members.c.job_key)
            .where(release_members.c.release == serial, jobs.c.state.not_in(OVER))
        )
        with self.transaction() as connection:
            return connection.execute(query).scalar_one() == 0

    def members_joined(self, *, before: float) -> list[tuple[MemberRow, str]]:
        """(member, policy digest) of what has references and joined before this moment; not of releases that are to be
        judged.
        """
        query = (
            select(release_members, releases.c.policy_digest)
            .join(releases, releases.c.serial == release_members.c.release)
            .where(
                release_members.c.removed_at.is_(None),
                release_members.c.joined_at < before,
                releases.c.state.not_in(UNDECIDED),
            )
            .order_by(release_members.c.joined_at, release_members.c.job_key)
        )
        with self.transaction() as connection:
            rows = connection.execute(query).mappings().all()
        return [(MemberRow(**{name: row[name] for name in _MEMBER}), row["policy_digest"]) for row in rows]

    def members_waiting(self) -> list[MemberRow]:
        """Of releases that are not judged yet."""
        query = (
            select(release_members)
            .join(releases, releases.c.serial == release_members.c.release)
            .where(releases.c.state.in_(UNDECIDED))
        )
        with self.transaction() as connection:
            return [MemberRow(**row._mapping) for row in connection.execute(query).all()]

    def members_removed(self) -> list[MemberRow]:
        """Whose references were removed."""
        query = select(release_members).where(release_members.c.removed_at.is_not(None))
        with self.transaction() as connection:
            return [MemberRow(**row._mapping) for row in connection.execute(query).all()]

    def forget_member(self, member: MemberRow) -> None:
        """Its references are gone, and so are its facts but for the names that the references had."""
        which = and_(release_members.c.job_key == member.job_key, release_members.c.release == member.release)
        facts = json.dumps({"views": json.loads(member.facts or "{}").get("views", {})})
        values = {"removed_at": member.removed_at or time.time(), "facts": facts}
        with self.transaction() as connection:
            connection.execute(update(release_members).where(which).values(**values))

    def references_removed(self, member: MemberRow) -> None:
        which = and_(release_members.c.job_key == member.job_key, release_members.c.release == member.release)
        with self.transaction() as connection:
            connection.execute(update(release_members).where(which).values(removed_at=time.time()))


_MEMBER = tuple(MemberRow.__dataclass_fields__)
