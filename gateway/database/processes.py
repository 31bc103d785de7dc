"""Which processes share the database, and the fence around those that were taken for dead. PostgreSQL only.

A row stands for a living process. Whoever finds one dead deletes its row, and only then takes up its work: every
transaction of a process holds its own row against deletion, so one that was merely asleep writes nothing any more.
Times are the database's: clocks of machines differ, and jump.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, extract, func, insert, select, text, update

from gateway.database.tables import processes
from gateway.errors import Stopping

IDLE_S = 30  # a transaction in which nothing happens for so long is that of a process that stands still
_NOW = extract("epoch", func.clock_timestamp())
# A beat is an update and waits for nobody; a deletion waits for transactions that have begun.
_STANDING = (
    select(processes.c.executor)
    .where(processes.c.executor == bindparam("executor"))
    .with_for_update(read=True, key_share=True)
)


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process. `silent_s`: seconds since it was last heard of."""

    executor: str
    roles: tuple[str, ...]
    machine: str
    silent_s: float


class Processes:
    """Mixed into Database."""

    executor: str

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def processes(self) -> list[ProcessRow]:
        """All that are there, the eldest first."""
        silent_s = (_NOW - processes.c.beat_at).label("silent_s")
        query = select(processes, silent_s).order_by(processes.c.entered_at, processes.c.executor)
        with self.transaction() as connection:
            return [
                ProcessRow(row.executor, tuple(row.roles.split(",")), row.machine, float(row.silent_s))
                for row in connection.execute(query).all()
            ]

    def enter_process(self, executor: str, roles: tuple[str, ...], machine: str) -> None:
        """Be one of them from now on: what this process writes is fenced."""
        values = {"executor": executor, "roles": ",".join(roles), "machine": machine}
        with self.transaction() as connection:
            connection.execute(insert(processes).values(**values, entered_at=_NOW, beat_at=_NOW))
        self.executor = executor

    def beat_process(self, executor: str) -> None:
        """It is alive. Raises Stopping when others took it for dead."""
        with self.transaction() as connection:
            connection.execute(update(processes).where(processes.c.executor == executor).values(beat_at=_NOW))

    def remove_process(self, executor: str, *, silent_s: float = 0.0) -> bool:
        """It is dead, if it has been silent for so long. Whether there was such a row.

        Raises OperationalError while a transaction of it is open: the server ends that after `IDLE_S`.
        """
        gone = (processes.c.executor == executor) & (processes.c.beat_at <= _NOW - silent_s)
        with self.transaction() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '1s'"))
            return bool(connection.execute(delete(processes).where(gone)).rowcount)

    def leave_process(self) -> None:
        """End, and leave what this process had begun to the others; it writes nothing from now on."""
        self.remove_process(self.executor)


def require_standing(connection: Connection, executor: str) -> None:
    """Raise Stopping unless this process counts as alive; it does until the transaction ends."""
    if connection.execute(_STANDING, {"executor": executor}).first() is None:
        raise Stopping
