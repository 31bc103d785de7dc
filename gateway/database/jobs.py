"""Jobs (one target of one study generation) and what they sent."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

from sqlalchemy import Connection, func, insert, select, update

from gateway.database.job import JobRow
from gateway.database.tables import jobs, outgoing
from gateway.study import FINAL_STATES, Receipt, State


class Jobs:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def job(self, job_key: str) -> JobRow | None:
        with self.transaction() as connection:
            row = connection.execute(select(jobs).where(jobs.c.job_key == job_key)).first()
        return job_of(row._mapping) if row else None

    def jobs_in(self, *states: State) -> list[JobRow]:
        """Jobs in these states, oldest first; all jobs when none is named."""
        query = select(jobs).order_by(jobs.c.created_at, jobs.c.job_key)
        if states:
            query = query.where(jobs.c.state.in_(states))
        with self.transaction() as connection:
            return [job_of(row._mapping) for row in connection.execute(query).all()]

    def jobs_of(self, study_key: str, generation: int) -> list[JobRow]:
        of_study = (jobs.c.study_key == study_key) & (jobs.c.generation == generation)
        query = select(jobs).where(of_study).order_by(jobs.c.job_key)
        with self.transaction() as connection:
            return [job_of(row._mapping) for row in connection.execute(query).all()]

    def unfinished_jobs(self) -> list[JobRow]:
        """Jobs that wait for the machine, not for a person."""
        return self.jobs_in(*(state for state in State if state not in {*FINAL_STATES, State.AWAITING_RELEASE}))

    def set_job(self, job_key: str, **values: object) -> None:
        with self.transaction() as connection:
            connection.execute(update(jobs).where(jobs.c.job_key == job_key).values(**values, updated_at=time.time()))

    def change_job(self, job_key: str, still: State, /, **values: object) -> bool:
        """The same, when the job is still in this state; whether it was."""
        here = (jobs.c.job_key == job_key) & (jobs.c.state == still)
        with self.transaction() as connection:
            done = connection.execute(update(jobs).where(here).values(**values, updated_at=time.time()))
        return bool(done.rowcount)

    def count_states(self) -> dict[tuple[str, str], int]:
        """(state, reason) → jobs, for metrics and `status`."""
        with self.transaction() as connection:
            rows = connection.execute(
                select(jobs.c.state, jobs.c.reason, func.count()).group_by(jobs.c.state, jobs.c.reason)
            ).all()
        return {(row[0], row[1]): row[2] for row in rows}

    def oldest_job(self, *states: State) -> float | None:
        """When the oldest job in these states was made, in UTC seconds; None when there is none."""
        with self.transaction() as connection:
            found = connection.execute(select(func.min(jobs.c.created_at)).where(jobs.c.state.in_(states))).scalar()
        return None if found is None else float(found)

    def retrying(self) -> dict[str, tuple[int, int]]:
        """Destination → (jobs whose last try to send failed, the most tries in a row)."""
        query = (
            select(jobs.c.destination, func.count(), func.max(jobs.c.attempt))
            .where(jobs.c.state == State.CLEARED, jobs.c.attempt > 0, jobs.c.reason != "")
            .group_by(jobs.c.destination)
        )
        with self.transaction() as connection:
            return {row[0]: (row[1], row[2]) for row in connection.execute(query).all()}

    def record_receipt(self, job_key: str, receipt: Receipt) -> None:
        """Note what the archive said of one instance; the last word stands, attempts add up."""
        with self.transaction() as connection:
            key = (outgoing.c.job_key == job_key) & (outgoing.c.name == receipt.name)
            before = connection.execute(select(outgoing.c.attempts).where(key)).scalar()
            values = {"status": receipt.status, "kind": receipt.kind, "at": time.time()}
            if before is None:
                connection.execute(
                    insert(outgoing).values(job_key=job_key, name=receipt.name, attempts=receipt.attempts, **values)
                )
            else:
                connection.execute(update(outgoing).where(key).values(attempts=before + receipt.attempts, **values))

    def receipts(self, job_key: str) -> dict[str, Receipt]:
        with self.transaction() as connection:
            rows = connection.execute(select(outgoing).where(outgoing.c.job_key == job_key)).all()
        return {row.name: Receipt(row.name, row.status, row.kind, row.attempts) for row in rows}


def job_of(row: object) -> JobRow:
    """A job out of a row."""
    values = dict(row)  # type: ignore[call-overload]
    values["state"] = State(values["state"])
    return JobRow(**values)
