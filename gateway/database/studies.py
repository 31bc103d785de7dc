"""Received instances, studies and their generations."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, Connection, and_, exists, func, insert, or_, select, update

from gateway.database.job import Job
from gateway.database.tables import instances, jobs, studies

MOST_NAMED = 500  # values in one query


@dataclass(frozen=True, slots=True)
class StudyRow:
    """One generation of a study. `state`: received, routed, duplicate, held, rejected, refused. Times: UTC seconds."""

    study_key: str
    generation: int
    first_at: float
    last_at: float
    expected: int
    closed_at: float | None
    routed_at: float | None
    reason: str
    state: str
    round: int
    changed_at: float | None = None


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """One received object in the spool. `use`: new, use, duplicate, conflict, dropped."""

    serial: int
    study_key: str
    generation: int
    name: str
    sop_key: str
    received_at: float
    size_bytes: int
    sha256: str
    patient_key: str
    use: str
    issuer_key: str = ""
    removed_at: float | None = None


class Studies:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def close_complete(self, *, quiet_s: float, forced_s: float, use_expected: bool) -> list[tuple[str, int]]:
        """Close every open generation that is quiet, too old, or has all that it expects. Returns (key, generation).

        While an earlier generation is not decided, the next one stays open: what is a duplicate or a conflict is known
        only then. What arrived at a time that is still to come, before the clock was set back, counts as just arrived.
        """
        now = time.time()
        earlier = studies.alias("earlier")
        undecided = exists().where(
            earlier.c.study_key == studies.c.study_key,
            earlier.c.generation < studies.c.generation,
            earlier.c.state == "received",
        )
        with self.transaction() as connection:
            for moment in (studies.c.first_at, studies.c.last_at):
                ahead = and_(studies.c.closed_at.is_(None), moment > now)
                connection.execute(update(studies).where(ahead).values({moment: now}))
            due = or_(studies.c.last_at <= now - quiet_s, studies.c.first_at <= now - forced_s)
            if use_expected:
                arrived = (
                    select(func.count(func.distinct(instances.c.sop_key)))
                    .where(instances.c.study_key == studies.c.study_key, ~_given_up())
                    .scalar_subquery()
                )
                due = or_(due, and_(studies.c.expected > 0, arrived >= studies.c.expected))
            ready = connection.execute(
                select(studies.c.study_key, studies.c.generation).where(studies.c.closed_at.is_(None), due, ~undecided)
            ).all()
            for row in ready:
                connection.execute(
                    update(studies)
                    .where(and_(studies.c.study_key == row.study_key, studies.c.generation == row.generation))
                    .values(closed_at=now)
                )
        return [(row.study_key, row.generation) for row in ready]

    def unrouted(self) -> list[StudyRow]:
        """Closed generations without jobs and without a decision: what a restart must enqueue again."""
        waiting = and_(studies.c.closed_at.is_not(None), studies.c.routed_at.is_(None), studies.c.state == "received")
        return self._studies(waiting)

    def generations(self, study_key: str) -> list[StudyRow]:
        return self._studies(studies.c.study_key == study_key)

    def studies_in(self, *states: str) -> list[StudyRow]:
        return self._studies(studies.c.state.in_(states))

    def count_studies(self, *states: str) -> dict[tuple[str, str], int]:
        """(state, reason) → study generations in these states."""
        query = select(studies.c.state, studies.c.reason, func.count()).where(studies.c.state.in_(states))
        with self.transaction() as connection:
            rows = connection.execute(query.group_by(studies.c.state, studies.c.reason)).all()
        return {(row[0], row[1]): row[2] for row in rows}

    def oldest_study(self, *states: str) -> float | None:
        """When the first of these study generations began to arrive, in UTC seconds; None when there is none."""
        with self.transaction() as connection:
            found = connection.execute(select(func.min(studies.c.first_at)).where(studies.c.state.in_(states))).scalar()
        return None if found is None else float(found)

    def _studies(self, which: ColumnElement[bool]) -> list[StudyRow]:
        query = select(studies).where(which).order_by(studies.c.first_at, studies.c.generation)
        with self.transaction() as connection:
            return [StudyRow(**row._mapping) for row in connection.execute(query).all()]

    def study(self, study_key: str, generation: int) -> StudyRow | None:
        with self.transaction() as connection:
            row = connection.execute(
                select(studies).where(and_(studies.c.study_key == study_key, studies.c.generation == generation))
            ).first()
        return StudyRow(**row._mapping) if row else None

    def set_study(self, study_key: str, generation: int, **values: object) -> None:
        with self.transaction() as connection:
            connection.execute(
                update(studies)
                .where(and_(studies.c.study_key == study_key, studies.c.generation == generation))
                .values(**values, changed_at=time.time())
            )

    def instances_of(self, study_key: str, generation: int | None = None) -> list[InstanceRow]:
        """Instances in the order they arrived; of all generations when `generation` is None."""
        which = instances.c.study_key == study_key
        if generation is not None:
            which = and_(which, instances.c.generation == generation)
        with self.transaction() as connection:
            rows = connection.execute(select(instances).where(which).order_by(instances.c.serial)).all()
        return [InstanceRow(**row._mapping) for row in rows]

    def taken_in(self, sop_keys: Collection[str]) -> dict[str, list[tuple[str, int, bool]]]:
        """Of these SOP keys those that were taken in: each with (study, generation, whether its file is still here)
        wherever it may be sent from.
        """
        found: dict[str, list[tuple[str, int, bool]]] = {}
        wanted = sorted(sop_keys)
        here = instances.c.removed_at.is_(None)
        columns = (instances.c.sop_key, instances.c.study_key, instances.c.generation, here)
        with self.transaction() as connection:
            for start in range(0, len(wanted), MOST_NAMED):
                query = select(*columns).where(instances.c.sop_key.in_(wanted[start : start + MOST_NAMED])).distinct()
                for sop_key, study_key, generation, is_here in connection.execute(query).all():
                    found.setdefault(sop_key, []).append((study_key, generation, bool(is_here)))
        return found

    def set_instances(self, values: Iterable[Mapping[str, object]]) -> None:
        """Fill in what intake found: mappings of `serial` and any of sha256, patient_key, issuer_key, use."""
        with self.transaction() as connection:
            for value in values:
                columns = {name: value[name] for name in value if name != "serial"}
                connection.execute(update(instances).where(instances.c.serial == value["serial"]).values(**columns))

    def merge_generation(self, study_key: str, generation: int, into: int) -> None:
        """A generation that brought only duplicates: its instances join an earlier one. Its number is never used again,
        because the engine knows workflows by it.
        """
        with self.transaction() as connection:
            here = and_(instances.c.study_key == study_key, instances.c.generation == generation)
            connection.execute(update(instances).where(here).values(generation=into, use="duplicate"))
            connection.execute(
                update(studies)
                .where(and_(studies.c.study_key == study_key, studies.c.generation == generation))
                .values(state="duplicate", routed_at=time.time(), changed_at=time.time())
            )

    def route_study(self, study_key: str, generation: int, new_jobs: Sequence[Job]) -> bool:
        """Create the jobs of a generation and mark it routed, in one transaction. False when it was routed before."""
        now = time.time()
        which = and_(studies.c.study_key == study_key, studies.c.generation == generation)
        with self.transaction() as connection:
            row = connection.execute(select(studies.c.routed_at).where(which).with_for_update()).first()
            if row is None or row.routed_at is not None:
                return False
            for job in new_jobs:
                connection.execute(insert(jobs).values(**asdict(job), state="queued", created_at=now, updated_at=now))
            connection.execute(
                update(studies).where(which).values(routed_at=now, state="routed", reason="", changed_at=now)
            )
        return True

    def spooled_names(self) -> frozenset[tuple[str, str]]:
        """(study key, file name) of every received object that is still to be there, for Spool.sweep: what retention
        removed, and a restore brought back, goes again.
        """
        query = select(instances.c.study_key, instances.c.name).where(instances.c.removed_at.is_(None))
        with self.transaction() as connection:
            rows = connection.execute(query).all()
        return frozenset((row.study_key, row.name) for row in rows)


def _given_up() -> ColumnElement[bool]:
    """True for an instance of a generation that was rejected or refused as a whole: it does not count as received."""
    gone = ("rejected", "refused", "shadowed")
    of_study, of_jobs, standing = studies.alias(), jobs.alias(), jobs.alias()
    return or_(
        exists().where(
            of_study.c.study_key == instances.c.study_key,
            of_study.c.generation == instances.c.generation,
            of_study.c.state.in_(gone),
        ),
        and_(
            exists().where(
                of_jobs.c.study_key == instances.c.study_key, of_jobs.c.generation == instances.c.generation
            ),
            ~exists().where(
                standing.c.study_key == instances.c.study_key,
                standing.c.generation == instances.c.generation,
                standing.c.state.not_in(gone),
            ),
        ),
    )
