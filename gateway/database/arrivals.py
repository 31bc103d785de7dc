"""Noting received instances, many in one transaction: the commit is the dearest step of receiving.

Statements are built once: with SQLAlchemy their construction costs more than their execution.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import Connection, Float, Integer, String, and_, bindparam, case, func, insert, select, update

from gateway.database.tables import instances, studies

_KEY, _GENERATION = bindparam("b_key", type_=String), bindparam("b_generation", type_=Integer)
_EXPECTED, _NOW = bindparam("b_expected", type_=Integer), bindparam("b_now", type_=Float)
# A study that opens a generation has no row yet that could be locked. SQLite has one writer anyway.
_LOCK = select(func.pg_advisory_xact_lock(func.hashtextextended(_KEY, 0)))
_LAST = (
    select(studies.c.generation, studies.c.closed_at)
    .where(studies.c.study_key == _KEY)
    .order_by(studies.c.generation.desc())
    .limit(1)
    .with_for_update()
)
_TOUCH = (
    update(studies)
    .where(and_(studies.c.study_key == _KEY, studies.c.generation == _GENERATION))
    .values(last_at=_NOW, expected=case((_EXPECTED > 0, _EXPECTED), else_=studies.c.expected))
)
_OPEN = insert(studies)
_ADD = insert(instances)


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
        with self.transaction() as connection:
            for key in sorted({instance.study_key for instance in arrived}):  # in one order: no deadlocks
                expected = max(instance.expected for instance in arrived if instance.study_key == key)
                generations[key] = _open_generation(connection, key, expected=expected, now=now)
            connection.execute(
                _ADD,
                [
                    {
                        "study_key": instance.study_key,
                        "generation": generations[instance.study_key],
                        "name": instance.name,
                        "sop_key": instance.sop_key,
                        "received_at": now,
                        "size_bytes": instance.size_bytes,
                    }
                    for instance in arrived
                ],
            )
        return generations

    def record_instance(self, *, study_key: str, name: str, sop_key: str, size_bytes: int, expected: int = 0) -> int:
        """The same for one object; returns the generation."""
        return self.record_instances([NewInstance(study_key, name, sop_key, size_bytes, expected)])[study_key]


def _open_generation(connection: Connection, key: str, *, expected: int, now: float) -> int:
    """The generation of this study that still takes instances, new when there is none."""
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"b_key": key})
    last = connection.execute(_LAST, {"b_key": key}).first()
    if last is not None and last.closed_at is None:
        connection.execute(
            _TOUCH, {"b_key": key, "b_generation": last.generation, "b_now": now, "b_expected": expected}
        )
        return int(last.generation)
    generation = 1 if last is None else int(last.generation) + 1
    connection.execute(
        _OPEN,
        {"study_key": key, "generation": generation, "first_at": now, "last_at": now, "expected": expected},
    )
    return generation
