"""At which level of `escalate` a study leaves: stored before the first of it does, and kept to by all that follows.

Keyed by project, study and issue: another issue has other UIDs, and may have another level (DESIGN.md invariant 4).
And the releases of which some studies are made at a stronger level.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, and_, delete, exists, func, insert, select, update

from gateway.database.job import JobRow
from gateway.database.releases import AUDITING, ESCALATING
from gateway.database.tables import jobs, levels, release_members, releases
from gateway.study import State

_LOCK = 0x6C65766C  # any number that nobody else locks
# What a job forgets that is made anew.
FORGOTTEN: Mapping[str, object] = {
    **dict.fromkeys(("reason", "at", "held_in", "verdicts", "clearance", "steps"), ""),
    "attempt": 0,
}


class Levels:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def standing_level(self, job: JobRow) -> tuple[int, bool] | None:
        """(level, whether this job has to keep to it) of what left of the study last, under the job's policy; None when
        nothing did. A job of a later issue begins there, and may go on to stronger ones.
        """
        with self.transaction() as connection:
            row = connection.execute(_last(job)).first()
        return (row.level, row.issue >= job.issue) if row is not None else None

    def claim_level(self, job: JobRow) -> bool:
        """The job is about to leave at its level. False when something of its issue left at another one."""
        with self.transaction() as connection:
            if connection.dialect.name == "postgresql":  # two receivers of one study may be sent to at once
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
            row = connection.execute(_last(job)).first()
            if row is not None and row.issue >= job.issue:
                return bool(row.level == job.level)
            of_study = and_(levels.c.project == job.project, levels.c.study_key == job.study_key)
            connection.execute(delete(levels).where(of_study, levels.c.issue == job.issue))  # of another policy
            key = {"project": job.project, "study_key": job.study_key, "issue": job.issue}
            told = {"policy_digest": job.policy_digest, "level": job.level, "since": time.time()}
            connection.execute(insert(levels).values(**key, **told))
        return True

    def cleared_levels(self) -> dict[tuple[str, str, int], int]:
        """(policy, its digest, level) -> jobs that were cleared at it and have left, or are to leave."""
        columns = (jobs.c.policy, jobs.c.policy_digest, jobs.c.level)
        states = (State.AWAITING_RELEASE, State.CLEARED, State.SENT)
        query = select(*columns, func.count()).where(jobs.c.state.in_(states)).group_by(*columns)
        with self.transaction() as connection:
            return {(row[0], row[1], row[2]): row[3] for row in connection.execute(query).all()}

    def escalate_job(self, job: JobRow) -> bool:
        """Begin again at the next level. False when the gate is not what it waits for any more."""
        here = and_(jobs.c.job_key == job.job_key, jobs.c.round == job.round, jobs.c.state == State.SCRUBBED)
        with self.transaction() as connection:
            return bool(connection.execute(update(jobs).where(here).values(**_next_level(time.time()))).rowcount)

    def escalate_release(self, serial: int, values: Mapping[str, object], job_keys: Sequence[str]) -> None:
        """These jobs of a release under audit begin again at their next level, and one look is counted."""
        now = time.time()
        with self.transaction() as connection:
            changed = connection.execute(
                update(releases)
                .where(releases.c.serial == serial, releases.c.state == AUDITING)
                .values(
                    **values,
                    state=ESCALATING,
                    looks=releases.c.looks + 1,
                    round=releases.c.round + 1,
                    updated_at=now,
                )
            )
            for key in job_keys if changed.rowcount else ():
                waiting = and_(jobs.c.job_key == key, jobs.c.state == State.AWAITING_RELEASE)
                connection.execute(update(jobs).where(waiting).values(**_next_level(now)))

    def audit_again(self, serial: int) -> bool:
        """Escalating -> auditing, once none of its studies is on its way. False when one is, or when it was done."""
        on_its_way = exists().where(
            release_members.c.release == serial,
            jobs.c.job_key == release_members.c.job_key,
            jobs.c.state.in_((State.QUEUED, State.SCRUBBED)),
        )
        with self.transaction() as connection:
            done = connection.execute(
                update(releases)
                .where(releases.c.serial == serial, releases.c.state == ESCALATING, ~on_its_way)
                .values(state=AUDITING, updated_at=time.time())
            )
        return bool(done.rowcount)


def _next_level(now: float) -> dict[str, Any]:
    begun = {"state": State.QUEUED, "level": jobs.c.level + 1, "round": jobs.c.round + 1, "updated_at": now}
    return {**FORGOTTEN, **begun}


def _last(job: JobRow) -> Any:
    return (
        select(levels.c.issue, levels.c.level)
        .where(
            levels.c.project == job.project,
            levels.c.study_key == job.study_key,
            levels.c.policy_digest == job.policy_digest,
        )
        .order_by(levels.c.issue.desc())
        .limit(1)
    )
