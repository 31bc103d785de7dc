"""What retention looks at: study generations whose originals still lie in the spool."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import Connection, and_, func, select, update

from gateway.database.tables import instances, jobs, studies
from gateway.study import State


@dataclass(frozen=True, slots=True)
class RetainedJob:
    """A job of a retained generation, in short."""

    job_key: str
    state: State
    reason: str
    round: int
    policy_digest: str
    updated_at: float


@dataclass(frozen=True, slots=True)
class Retained:
    """A study generation that has originals. `last_serial` is the newest of them, `changed_at` of the study's state."""

    study_key: str
    generation: int
    state: str
    round: int
    changed_at: float
    last_serial: int
    jobs: tuple[RetainedJob, ...]


class Retention:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def retained(self, *, before: float) -> list[Retained]:
        """Decided generations with originals whose state last changed before this moment, oldest first."""
        live = (
            select(instances.c.study_key, instances.c.generation, func.max(instances.c.serial).label("last_serial"))
            .where(instances.c.removed_at.is_(None))
            .group_by(instances.c.study_key, instances.c.generation)
            .subquery()
        )
        changed_at = func.coalesce(studies.c.changed_at, studies.c.last_at)
        query = (
            select(studies, changed_at.label("since"), live.c.last_serial, jobs)
            .join(live, and_(live.c.study_key == studies.c.study_key, live.c.generation == studies.c.generation))
            .outerjoin(jobs, and_(jobs.c.study_key == studies.c.study_key, jobs.c.generation == studies.c.generation))
            .where(studies.c.state != "received", changed_at < before)
            .order_by(changed_at, studies.c.study_key, studies.c.generation, jobs.c.job_key)
        )
        found: dict[tuple[str, int], Retained] = {}
        of_jobs: dict[tuple[str, int], list[RetainedJob]] = {}
        with self.transaction() as connection:
            for row in connection.execute(query).mappings():
                key = (row[studies.c.study_key], row[studies.c.generation])
                found[key] = Retained(
                    *key, row[studies.c.state], row[studies.c.round], row["since"], row[live.c.last_serial], ()
                )
                if row[jobs.c.job_key] is not None:
                    of_jobs.setdefault(key, []).append(
                        RetainedJob(
                            row[jobs.c.job_key],
                            State(row[jobs.c.state]),
                            row[jobs.c.reason],
                            row[jobs.c.round],
                            row[jobs.c.policy_digest],
                            row[jobs.c.updated_at],
                        )
                    )
        return [
            Retained(
                one.study_key,
                one.generation,
                one.state,
                one.round,
                one.changed_at,
                one.last_serial,
                tuple(of_jobs.get(key, ())),
            )
            for key, one in found.items()
        ]

    def mark_removed(self, serials: Iterable[int]) -> None:
        """The files of these instances are gone; the rows stay, so that duplicates and conflicts are still known."""
        with self.transaction() as connection:
            for serial in serials:
                connection.execute(update(instances).where(instances.c.serial == serial).values(removed_at=time.time()))
