"""Noting received instances, many in one transaction: the commit is the dearest step of receiving.

Statements go to the driver as they are written here: SQLAlchemy spends more on each than SQLite does on all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select, union
from sqlalchemy.exc import DBAPIError

from gateway.database.tables import jobs, studies
from gateway.study import FINAL_STATES, State

# A study that opens a generation has no row yet that could be locked. SQLite has one writer anyway.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"
_TOUCH = (
    "UPDATE studies SET last_at = ?, expected = CASE WHEN ? > 0 THEN ? ELSE expected END "
    "WHERE study_key = ? AND generation = (SELECT max(generation) FROM studies WHERE study_key = ?) "
    "AND closed_at IS NULL RETURNING generation"
)
_LAST = "SELECT coalesce(max(generation), 0) FROM studies WHERE study_key = ?"
_OPEN = (
    "INSERT INTO studies (study_key, generation, first_at, last_at, expected, reason, state, round) "
    "VALUES (?, ?, ?, ?, ?, '', 'received', 1)"
)
_ADD = (
    "INSERT INTO instances (study_key, generation, name, sop_key, received_at, size_bytes, "
    "sha256, patient_key, issuer_key, use) VALUES (?, ?, ?, ?, ?, ?, '', '', '', 'new')"
)


@dataclass(frozen=True, slots=True)
class NewInstance:
    """One received object, whole and synced in the spool. `expected` instances in its study, 0 = not told."""

    study_key: str
    name: str
    sop_key: str
    size_bytes: int
    expected: int = 0


class Arrivals:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def record_instances(self, arrived: Sequence[NewInstance]) -> dict[str, int]:
        """Note several objects, all or none; opens a study's next generation when the last one is closed.

        Returns the generation of each study. When this returns, the rows are on disk, and C-STORE may answer 0x0000.
        """
        now = time.time()
        generations: dict[str, int] = {}
        with self.transaction() as connection, _driver(connection) as run:
            for key in sorted({instance.study_key for instance in arrived}):  # in one order: no deadlocks
                expected = max(instance.expected for instance in arrived if instance.study_key == key)
                generations[key] = _open_generation(run, key, expected=expected, now=now)
            for one in arrived:
                run(_ADD, one.study_key, generations[one.study_key], one.name, one.sop_key, now, one.size_bytes)
        return generations

    def count_waiting(self) -> int:
        """Study generations that wait for the machine: still open, not routed yet, or with a job that is not done."""
        received = select(studies.c.study_key, studies.c.generation).where(studies.c.state == State.RECEIVED)
        unfinished = select(jobs.c.study_key, jobs.c.generation).where(
            jobs.c.state.not_in({*FINAL_STATES, State.AWAITING_RELEASE})
        )
        with self.transaction() as connection:
            count = connection.execute(select(func.count()).select_from(union(received, unfinished).subquery()))
            return int(count.scalar_one())

    def record_instance(self, *, study_key: str, name: str, sop_key: str, size_bytes: int, expected: int = 0) -> int:
        """The same for one object; returns the generation."""
        return self.record_instances([NewInstance(study_key, name, sop_key, size_bytes, expected)])[study_key]


class _Cursor:
    """Runs statements on the driver's cursor, with `?` for each value whatever the driver writes."""

    def __init__(self, connection: Connection) -> None:
        self._cursor: Any = connection.connection.cursor()
        self.locks = connection.dialect.name == "postgresql"
        self._paramstyle = connection.dialect.paramstyle

    def __call__(self, statement: str, *values: object) -> Any:
        self._cursor.execute(statement if self._paramstyle == "qmark" else statement.replace("?", "%s"), values)
        return self._cursor


@contextmanager
def _driver(connection: Connection) -> Iterator[_Cursor]:
    """The driver's errors come out as SQLAlchemy's, as from everywhere else."""
    base = connection.dialect.loaded_dbapi.Error
    try:
        yield _Cursor(connection)
    except base as error:
        raise DBAPIError.instance("record_instances", None, error, base, dialect=connection.dialect) from None


def _open_generation(run: _Cursor, key: str, *, expected: int, now: float) -> int:
    """The generation of this study that still takes instances, new when there is none."""
    if run.locks:
        run(_LOCK, key)
    open_one = run(_TOUCH, now, expected, expected, key, key).fetchone()
    if open_one is not None:
        return int(open_one[0])
    generation = int(run(_LAST, key).fetchone()[0]) + 1
    run(_OPEN, key, generation, now, now, expected)
    return generation
