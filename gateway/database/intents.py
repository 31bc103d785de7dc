"""What other processes wish for, and carrying it out exactly once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager

from sqlalchemy import Connection, insert, select, update

from gateway.database.job import Intent
from gateway.database.tables import intents, jobs, studies


class Intents:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def checkpoint(self) -> None:
        raise NotImplementedError("Database provides it")

    def add_intent(self, *, kind: str, key: str, actor: str, reason: str) -> int:
        """Write a wish down; the engine process acts within a second. Returns its serial."""
        with self.transaction() as connection:
            result = connection.execute(
                insert(intents)
                .values(kind=kind, key=key, actor=actor, reason=reason, created_at=time.time())
                .returning(intents.c.serial)
            )
            return int(result.scalar_one())

    def open_intents(self, *, after: int = 0) -> list[Intent]:
        """Those not carried out yet, in order; only those with a serial beyond `after`."""
        with self.transaction() as connection:
            rows = connection.execute(
                select(intents).where(intents.c.done_at.is_(None), intents.c.serial > after).order_by(intents.c.serial)
            ).all()
        return [Intent(**row._mapping) for row in rows]

    def intent(self, serial: int) -> Intent | None:
        with self.transaction() as connection:
            row = connection.execute(select(intents).where(intents.c.serial == serial)).first()
        return Intent(**row._mapping) if row else None

    def finish_intent(self, serial: int, outcome: str) -> None:
        """It is not carried out, for this reason."""
        with self.transaction() as connection:
            self._finish(connection, serial, outcome)

    def withhold_intent(self, serial: int, outcome: str) -> None:
        """It is not carried out, and what its writer gave as a reason is not kept, not even in freed pages."""
        with self.transaction() as connection:
            connection.execute(update(intents).where(intents.c.serial == serial).values(reason=""))
            self._finish(connection, serial, outcome)
        self.checkpoint()

    def carry_out_on_job(self, serial: int, outcome: str, job_key: str, values: Mapping[str, object]) -> None:
        """Change a job and finish the intent that asked for it, in one transaction: never one without the other."""
        with self.transaction() as connection:
            connection.execute(update(jobs).where(jobs.c.job_key == job_key).values(**values, updated_at=time.time()))
            self._finish(connection, serial, outcome)

    def carry_out_on_study(
        self, serial: int, outcome: str, study_key: str, generation: int, values: Mapping[str, object]
    ) -> None:
        """The same for a study generation that has no jobs."""
        which = (studies.c.study_key == study_key) & (studies.c.generation == generation)
        with self.transaction() as connection:
            connection.execute(update(studies).where(which).values(**values, changed_at=time.time()))
            self._finish(connection, serial, outcome)

    @staticmethod
    def _finish(connection: Connection, serial: int, outcome: str) -> None:
        connection.execute(
            update(intents).where(intents.c.serial == serial).values(done_at=time.time(), outcome=outcome[:128])
        )
