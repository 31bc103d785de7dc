"""What the review page asks of the tables beyond the queue: wishes of a study, drawings that count, pseudonyms."""

from __future__ import annotations

from contextlib import AbstractContextManager

from sqlalchemy import Connection, select

from gateway.database.job import Intent
from gateway.database.tables import intents, issued, jobs, mapped

DONE = "done"
REDACT = "redact:"


class Reviews:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def intents_of(self, key: str) -> list[Intent]:
        """Everything that was ever wished for a job or study, in order."""
        query = select(intents).where(intents.c.key == key).order_by(intents.c.serial)
        with self.transaction() as connection:
            return [Intent(**row._mapping) for row in connection.execute(query).all()]

    def intents_with(self, outcome: str) -> list[Intent]:
        """Those that ended like this, in order."""
        query = select(intents).where(intents.c.outcome == outcome).order_by(intents.c.serial)
        with self.transaction() as connection:
            return [Intent(**row._mapping) for row in connection.execute(query).all()]

    def drawn(self, study_key: str, project: str) -> list[str]:
        """Ids of the drawings that were carried out for a study in a project, in order."""
        query = (
            select(intents.c.kind)
            .join(jobs, intents.c.key == jobs.c.job_key)
            .where(
                jobs.c.study_key == study_key,
                jobs.c.project == project,
                intents.c.kind.startswith(REDACT),
                intents.c.outcome == DONE,
            )
            .order_by(intents.c.serial)
        )
        with self.transaction() as connection:
            kinds = [str(row.kind) for row in connection.execute(query)]
        return list(dict.fromkeys(kind.split(":")[1] for kind in kinds))

    def projects(self) -> list[str]:
        """Those that any job was ever for."""
        with self.transaction() as connection:
            return sorted(str(row.project) for row in connection.execute(select(jobs.c.project).distinct()))

    def work_under(self, project: str, pseudonym_key: str) -> list[str]:
        """Keys of the work whose person got this pseudonym in this project."""
        person = select(issued.c.person_key).where(issued.c.project == project, issued.c.pseudonym_key == pseudonym_key)
        query = select(mapped.c.work_key).where(mapped.c.project == project, mapped.c.person_key.in_(person))
        with self.transaction() as connection:
            return sorted(str(row.work_key) for row in connection.execute(query))
