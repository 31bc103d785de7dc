"""Destinations that a person paused, and what waits for each destination."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import Column, Connection, Float, String, Table, delete, func, insert, select

from gateway.database.tables import jobs, metadata
from gateway.study import State

pauses = Table(
    "pauses",
    metadata,
    Column("destination", String(128), primary_key=True),
    Column("since", Float, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("reason", String(512), nullable=False),
)


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is sent to `destination` since then, in UTC seconds, until somebody resumes it."""

    destination: str
    since: float
    actor: str
    reason: str


class Pauses:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def pause(self, destination: str, *, actor: str, reason: str) -> bool:
        """False when it is paused already."""
        with self.transaction() as connection:
            if connection.execute(select(pauses).where(pauses.c.destination == destination)).first():
                return False
            row = {"destination": destination, "since": time.time(), "actor": actor, "reason": reason}
            connection.execute(insert(pauses).values(**row))
        return True

    def resume(self, destination: str) -> bool:
        """False when it was not paused."""
        with self.transaction() as connection:
            done = connection.execute(delete(pauses).where(pauses.c.destination == destination))
        return bool(done.rowcount)

    def paused(self) -> dict[str, Pause]:
        with self.transaction() as connection:
            rows = connection.execute(select(pauses).order_by(pauses.c.destination)).all()
        return {row.destination: Pause(row.destination, row.since, row.actor, row.reason) for row in rows}

    def cleared_by_destination(self) -> dict[str, int]:
        """How many jobs are cleared and not sent yet."""
        query = select(jobs.c.destination, func.count()).where(jobs.c.state == State.CLEARED)
        with self.transaction() as connection:
            return {row[0]: row[1] for row in connection.execute(query.group_by(jobs.c.destination)).all()}
