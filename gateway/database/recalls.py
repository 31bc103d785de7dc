"""As what each job left, and what was asked of its receivers since: recalls, their notes, and later issues."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, Connection, and_, func, insert, select, update

from gateway.database.job import Intent, Job, JobRow
from gateway.database.jobs import job_of
from gateway.database.tables import intents, issued, jobs, mapped, outgoing, recalled, recalls, reissued, shipments
from gateway.study import State

NONE, DUE, SENT, FAILED = "none", "due", "sent", "failed"  # of a rejection note


@dataclass(frozen=True, slots=True)
class Shipment:
    """As what a job leaves. `sealed_pseudonym`: encrypted; `series`: name of an instance -> new Series Instance UID."""

    job_key: str
    sealed_pseudonym: str
    study_uid: str
    series: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RecallRow:
    """One recall. `key` names the release of a scope `release`, else it is an opaque key."""

    serial: int
    intent: int
    scope: str
    key: str
    code: str
    actor: str
    reason: str
    created_at: float


@dataclass(frozen=True, slots=True)
class RecalledRow:
    """A job of a recall. `note`: none (the receiver takes none), due, sent, failed."""

    serial: int
    recall: int
    job_key: str
    destination: str
    instances: int
    note: str
    reason: str
    at: str
    attempt: int
    round: int
    changed_at: float


class Recalls:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    # -- as what it left ------------------------------------------------------------------------------------------

    def keep_shipment(self, shipment: Shipment) -> None:
        """Note it before anything of it leaves; the same again changes nothing."""
        values = {**asdict(shipment), "series": json.dumps(dict(shipment.series), sort_keys=True)}
        with self.transaction() as connection:
            here = shipments.c.job_key == shipment.job_key
            if connection.execute(select(shipments.c.job_key).where(here)).first() is None:
                connection.execute(insert(shipments).values(**values))
            else:
                connection.execute(update(shipments).where(here).values(**values))

    def shipment(self, job_key: str) -> Shipment | None:
        with self.transaction() as connection:
            row = connection.execute(select(shipments).where(shipments.c.job_key == job_key)).first()
        return Shipment(row.job_key, row.sealed_pseudonym, row.study_uid, json.loads(row.series)) if row else None

    def answered_at(self, job_key: str) -> dict[str, float]:
        """When the receiver last answered for each instance, by its name; UTC seconds."""
        with self.transaction() as connection:
            rows = connection.execute(select(outgoing.c.name, outgoing.c.at).where(outgoing.c.job_key == job_key)).all()
        return {row.name: row.at for row in rows}

    # -- which jobs are meant -------------------------------------------------------------------------------------

    def jobs_of_members(self, members: Sequence[str]) -> list[JobRow]:
        return self._jobs(jobs.c.job_key.in_(members))

    def jobs_of_study(self, study_key: str) -> list[JobRow]:
        """Of all its generations."""
        return self._jobs(jobs.c.study_key == study_key)

    def jobs_of_pseudonym(self, pseudonym_key: str) -> list[JobRow]:
        """`pseudonym_key` is the keyed hash of project and pseudonym."""
        person = and_(issued.c.person_key == mapped.c.person_key, issued.c.project == mapped.c.project)
        work = select(mapped.c.work_key).join(issued, person).where(issued.c.pseudonym_key == pseudonym_key)
        return self._jobs(jobs.c.job_key.in_(work))

    def jobs_of_people(self, person_keys: Iterable[str]) -> list[JobRow]:
        """Of people in every project."""
        work = select(mapped.c.work_key).where(mapped.c.person_key.in_(sorted(person_keys)))
        return self._jobs(jobs.c.job_key.in_(work))

    def _jobs(self, which: ColumnElement[bool]) -> list[JobRow]:
        with self.transaction() as connection:
            rows = connection.execute(select(jobs).where(which).order_by(jobs.c.created_at, jobs.c.job_key)).all()
        return [job_of(row._mapping) for row in rows]

    def study_sent_as(self, study_uid: str) -> str:
        """The key of the study that left under this Study Instance UID, "" when none did."""
        query = select(jobs.c.study_key).join(shipments, shipments.c.job_key == jobs.c.job_key)
        with self.transaction() as connection:
            return str(connection.execute(query.where(shipments.c.study_uid == study_uid)).scalar() or "")

    def person_under(self, pseudonym_key: str) -> str:
        """The keyed name of the person that this pseudonym was given to, "" for nobody."""
        query = select(issued.c.person_key).where(issued.c.pseudonym_key == pseudonym_key)
        with self.transaction() as connection:
            return str(connection.execute(query).scalar() or "")

    # -- recalls --------------------------------------------------------------------------------------------------

    def add_recall(
        self,
        intent: Intent,
        about: tuple[str, str, str],
        found: Sequence[tuple[JobRow, int, str]],
        stopped: Sequence[str],
    ) -> int:
        """Write a recall down and finish the intent that asked for it, in one transaction; its serial.

        `about`: scope, key, code. `found`: job, how many instances its receiver has, state of its note. `stopped`: jobs
        that were about to be sent; they are held.
        """
        scope, key, code = about
        now = time.time()
        with self.transaction() as connection:
            known = connection.execute(select(recalls.c.serial).where(recalls.c.intent == intent.serial)).scalar()
            if known is not None:
                return int(known)
            values = {"intent": intent.serial, "scope": scope, "key": key, "code": code}
            told = {"actor": intent.actor, "reason": intent.reason, "created_at": now}
            serial = int(
                connection.execute(insert(recalls).values(**values, **told).returning(recalls.c.serial)).scalar_one()
            )
            for job, instances, note in found:
                row = {"recall": serial, "job_key": job.job_key, "destination": job.destination}
                connection.execute(insert(recalled).values(**row, instances=instances, note=note, changed_at=now))
                change = {"state": State.RECALLED, "reason": "", "at": "", "held_in": "", "attempt": 0}
                connection.execute(update(jobs).where(jobs.c.job_key == job.job_key).values(**change, updated_at=now))
            held = {"state": State.HELD, "reason": "recalled", "at": "", "held_in": "release", "attempt": 0}
            for job_key in stopped:
                about_to = and_(jobs.c.job_key == job_key, jobs.c.state == State.CLEARED)
                connection.execute(update(jobs).where(about_to).values(**held, updated_at=now))
            done = f"done: recall {serial}"
            connection.execute(
                update(intents).where(intents.c.serial == intent.serial).values(done_at=now, outcome=done)
            )
        return serial

    def recalls(self) -> list[RecallRow]:
        """All of them, oldest first."""
        with self.transaction() as connection:
            rows = connection.execute(select(recalls).order_by(recalls.c.serial)).all()
        return [RecallRow(**row._mapping) for row in rows]

    def recall(self, serial: int) -> RecallRow | None:
        with self.transaction() as connection:
            row = connection.execute(select(recalls).where(recalls.c.serial == serial)).first()
        return RecallRow(**row._mapping) if row else None

    def recalled_in(self, recall: int) -> list[RecalledRow]:
        return self._recalled(recalled.c.recall == recall)

    def recalled_jobs(self, job_keys: Iterable[str]) -> list[RecalledRow]:
        """Whatever was recalled of these jobs."""
        return self._recalled(recalled.c.job_key.in_(sorted(job_keys)))

    def recalled_one(self, serial: int) -> RecalledRow | None:
        found = self._recalled(recalled.c.serial == serial)
        return found[0] if found else None

    def notes(self, *states: str) -> list[RecalledRow]:
        """Of every recall, those whose rejection note is in one of these states."""
        return self._recalled(recalled.c.note.in_(states))

    def set_recalled(self, serial: int, **values: object) -> None:
        with self.transaction() as connection:
            connection.execute(
                update(recalled).where(recalled.c.serial == serial).values(**values, changed_at=time.time())
            )

    def _recalled(self, which: ColumnElement[bool]) -> list[RecalledRow]:
        with self.transaction() as connection:
            rows = connection.execute(select(recalled).where(which).order_by(recalled.c.serial)).all()
        return [RecalledRow(**row._mapping) for row in rows]

    # -- issues ---------------------------------------------------------------------------------------------------

    def issues_of(self, project: str, study_key: str) -> dict[str, int]:
        """Keyed hash of an original UID -> the number of its last issue, of what was issued anew."""
        which = and_(reissued.c.project == project, reissued.c.study_key == study_key)
        with self.transaction() as connection:
            rows = connection.execute(select(reissued.c.uid_key, reissued.c.issue).where(which)).all()
        return {row.uid_key: row.issue for row in rows}

    def add_issues(self, issues: Sequence[tuple[Job, Iterable[str]]], serial: int, outcome: str) -> None:
        """Jobs that issue studies anew, each with keyed hashes of the UIDs that its number enters, and the end of the
        intent that asked for them, in one transaction.
        """
        now = time.time()
        with self.transaction() as connection:
            for job, uid_keys in issues:
                which = and_(reissued.c.project == job.project, reissued.c.study_key == job.study_key)
                known = {row.uid_key for row in connection.execute(select(reissued.c.uid_key).where(which))}
                for key in sorted(uid_keys):
                    row = {"project": job.project, "study_key": job.study_key, "uid_key": key, "issue": job.issue}
                    same = and_(which, reissued.c.uid_key == key)
                    connection.execute(
                        update(reissued).where(same).values(issue=job.issue)
                        if key in known
                        else insert(reissued).values(**row)
                    )
                values = {**asdict(job), "state": State.QUEUED, "created_at": now, "updated_at": now}
                connection.execute(insert(jobs).values(**values))
            ended = {"done_at": now, "outcome": outcome[:128]}
            connection.execute(update(intents).where(intents.c.serial == serial).values(**ended))

    def last_issue(self, job: JobRow) -> int:
        """The number of the newest issue of what this job sends to its receiver."""
        same = and_(
            jobs.c.study_key == job.study_key,
            jobs.c.generation == job.generation,
            jobs.c.project == job.project,
            jobs.c.destination == job.destination,
            jobs.c.policy == job.policy,
        )
        with self.transaction() as connection:
            return int(connection.execute(select(func.max(jobs.c.issue)).where(same)).scalar_one())

    def last_number(self, project: str, study_key: str) -> int:
        """The highest issue of a study in a project, whoever received it."""
        query = select(func.max(jobs.c.issue)).where(jobs.c.project == project, jobs.c.study_key == study_key)
        with self.transaction() as connection:
            return int(connection.execute(query).scalar_one())
