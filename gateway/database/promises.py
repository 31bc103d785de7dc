"""Storage commitments that archives were asked for: which instances of a job, and what was answered."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from gateway.database.tables import promises


@dataclass(frozen=True, slots=True)
class Promise:
    """One request. `asked`: instance name by new SOP Instance UID; `kept`: names that the archive committed to.
    `answered_at` is None while it has not said.
    """

    transaction_uid: str
    job_key: str
    asked_at: float
    answered_at: float | None
    asked: Mapping[str, str]
    kept: frozenset[str]


class Promises:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def ask_promise(self, transaction_uid: str, job_key: str, asked: Mapping[str, str]) -> None:
        """Note a request before it is made."""
        with self.transaction() as connection:
            connection.execute(
                insert(promises).values(
                    transaction_uid=transaction_uid,
                    job_key=job_key,
                    asked_at=time.time(),
                    asked=json.dumps(dict(asked)),
                    kept="[]",
                )
            )

    def answer_promise(self, transaction_uid: str, committed: Collection[str]) -> bool:
        """Note what an archive committed to, by SOP Instance UID. False when nothing of that name was asked; the first
        answer stands.
        """
        with self.transaction() as connection:
            mine = promises.c.transaction_uid == transaction_uid
            row = connection.execute(select(promises.c.asked).where(mine)).first()
            if row is None:
                return False
            kept = sorted(name for uid, name in json.loads(row.asked).items() if uid in set(committed))
            connection.execute(
                update(promises)
                .where(mine & promises.c.answered_at.is_(None))
                .values(answered_at=time.time(), kept=json.dumps(kept))
            )
            return True

    def promises_of(self, job_key: str) -> list[Promise]:
        """The requests for a job, the oldest first."""
        query = select(promises).where(promises.c.job_key == job_key).order_by(promises.c.asked_at)
        with self.transaction() as connection:
            rows = connection.execute(query).all()
        return [
            Promise(
                row.transaction_uid,
                row.job_key,
                row.asked_at,
                row.answered_at,
                json.loads(row.asked),
                frozenset(json.loads(row.kept)),
            )
            for row in rows
        ]
