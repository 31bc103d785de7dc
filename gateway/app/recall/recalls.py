"""Recall: which receivers have what of a release, a study or a person, and asking them to give it up.

Writing a recall down changes what it is about in one transaction: jobs of which a receiver has something are recalled,
those that were about to be sent are held. Then each receiver that takes rejection notes (`rejection_notes: true` in
destinations.yaml) is sent one for each study; the others are told by the manifest (`recall show`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from gateway.app.account import identity
from gateway.app.course import note_leg
from gateway.app.notes import NAMES_SOMEBODY, names_somebody
from gateway.app.parts import Parts
from gateway.app.person.consent import rules_of, subject_of
from gateway.app.sending import delivered, options_of
from gateway.app.shipments import pseudonym_of
from gateway.database import Intent, JobRow, RecalledRow, RecallRow, Shipment
from gateway.database import releases as of_release
from gateway.database.recalls import DUE, FAILED, NONE, SENT
from gateway.durable import make_folder
from gateway.errors import Hold, StudyError
from gateway.flow import Next
from gateway.forward import forward, open_transport
from gateway.forward.rejection_note import TITLES, Note, write_note
from gateway.gate.rejection_note import clear_note
from gateway.observe import log
from gateway.pseudonyms import Pseudonyms, derive
from gateway.study import Clearance, Receipt, State

RECALL, NOTES = "recall", "notes"  # kinds of intents: recall:<scope>:<code>, notes
RELEASE, STUDY, PSEUDONYM, SUBJECT = SCOPES = ("release", "study", "pseudonym", "subject")
FOLDER = "recalls"  # in the home: the notes, which hold new UIDs only
NOTHING_THERE = "no receiver has anything of it"
BEFORE = "all that receivers have of it was recalled before; see `deid-gateway recall list`"


class Recalling:
    """Carries out one wish or one note at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def carry_out(self, intent: Intent) -> tuple[Next, ...]:
        """A recall, or its notes once more. What is not possible is told in the intent's outcome."""
        if intent.kind == NOTES:
            return self._notes_again(intent)
        database = self._parts.database
        _, scope, code = intent.kind.split(":")
        jobs = self._jobs(scope, intent.key)
        with_something = [(job, delivered(database.receipts(job.job_key))) for job in jobs]
        found = [(job, names) for job, names in with_something if names and job.state != State.RECALLED]
        if not found or code not in TITLES:
            refusal = BEFORE if any(names for _, names in with_something) else NOTHING_THERE
            database.finish_intent(intent.serial, refusal if code in TITLES else f"unknown code; {', '.join(TITLES)}")
            return ()
        if names_somebody(self._parts, (job.study_key for job in jobs), intent.reason):
            database.withhold_intent(intent.serial, NAMES_SOMEBODY)
            return ()
        stopped = [job.job_key for job, names in with_something if not names and job.state == State.CLEARED]
        serial = self._write_down(intent, (scope, intent.key, code), found, stopped)
        self._settle_releases([job for job, _ in found])
        log("recalled", kind=scope, count=len(found))
        return tuple(note_leg(row) for row in database.recalled_in(serial) if row.note == DUE)

    def _jobs(self, scope: str, key: str) -> list[JobRow]:
        database = self._parts.database
        if scope == RELEASE:
            release = database.release_named(key)
            members = database.members(release.serial) if release is not None else []
            return database.jobs_of_members([member.job_key for member in members])
        if scope == STUDY:
            return database.jobs_of_study(key)
        if scope == PSEUDONYM:
            return database.jobs_of_pseudonym(key)
        policies = self._parts.policies.current.policies.values()
        return database.jobs_of_people(self._parts.mapper.names_of(subject_of(key).person_key, rules_of(policies)))

    def _write_down(
        self,
        intent: Intent,
        about: tuple[str, str, str],
        found: list[tuple[JobRow, frozenset[str]]],
        stopped: list[str],
    ) -> int:
        p, (scope, key, code) = self._parts, about
        rows = [(job, len(names), self._note_of(job)) for job, names in found]
        p.ledger.append(
            "recalled",
            f"intent/{intent.serial}",
            scope=scope,
            key=key,
            code=code,
            actor=intent.actor,
            reason_given=intent.reason,
            stopped=stopped,
            studies=len({job.study_key for job, _ in found}),
        )
        for job, instances, note in rows:
            told = {"destination": job.destination, "instances": instances, "issue": job.issue, "note": note}
            p.ledger.append("job_recalled", f"recall/{intent.serial}/{job.job_key}", **identity(job), **told)
        serial = p.database.add_recall(intent, about, rows, stopped)
        p.metrics.decided.labels(str(State.RECALLED), "").inc(len(rows))
        return serial

    def _note_of(self, job: JobRow) -> str:
        """Whether its receiver is sent a note. What left before this gateway wrote down series has none."""
        destination = self._parts.policies.current.destinations.get(job.destination)
        takes = destination is not None and destination.rejection_notes
        return DUE if takes and self._parts.database.shipment(job.job_key) is not None else NONE

    def _settle_releases(self, jobs: list[JobRow]) -> None:
        """A release of which nothing is left at a receiver, or on its way to one, is recalled."""
        database = self._parts.database
        found = {release.serial: release for job in jobs if (release := database.release_of(job.job_key)) is not None}
        for release in found.values():
            standing = database.members(release.serial, State.SENT, State.CLEARED)
            if not standing and release.state in (of_release.CLEARED, of_release.SENT):
                database.set_release(release.serial, state=of_release.RECALLED)

    def _notes_again(self, intent: Intent) -> tuple[Next, ...]:
        """Notes that failed, and those of receivers that take them by now."""
        database, legs = self._parts.database, []
        for row in database.recalled_in(int(intent.key)) if intent.key.isdecimal() else ():
            job = database.job(row.job_key)
            if row.note == FAILED or (row.note == NONE and job is not None and self._note_of(job) == DUE):
                database.set_recalled(row.serial, note=DUE, reason="", at="", attempt=0, round=row.round + 1)
                legs.append(database.recalled_one(row.serial))
        database.finish_intent(intent.serial, f"done: {len(legs)} notes" if legs else "no note of it is to be sent")
        return tuple(note_leg(row) for row in legs if row is not None)

    # -- notes ----------------------------------------------------------------------------------------------------

    def send_note(self, serial: int) -> tuple[Next, ...]:
        """Make, judge and send one note. Raises Retry or Hold."""
        p = self._parts
        row = p.database.recalled_one(serial)
        if row is None or row.note != DUE:
            return ()
        destination = p.policies.current.destinations.get(row.destination)
        if destination is None:
            raise Hold("destination_unknown")
        clearance, path = self._cleared_note(row)
        name = clearance.instances[0].name
        receipts: list[Receipt] = []
        forward(
            clearance,
            {name: path},
            seal_key=p.keys.seal,
            transport=open_transport(destination.url, options_of(p, destination)),
            done=frozenset(),
            on_receipt=receipts.append,
        )
        told = {"recall": row.recall, "job": row.job_key, "destination": row.destination}
        p.ledger.append("recall_told", f"recall_told/{row.serial}/r{row.round}", **told)
        p.database.set_recalled(row.serial, note=SENT, reason="", at="")
        log("recall_told", job=row.job_key, destination=row.destination)
        return ()

    def _cleared_note(self, row: RecalledRow) -> tuple[Clearance, Path]:
        p = self._parts
        recall, job = p.database.recall(row.recall), p.database.job(row.job_key)
        shipment = p.database.shipment(row.job_key)
        if recall is None or job is None or shipment is None:
            raise Hold("stage_failed", at="what was sent is not known")
        about = Clearance.from_json(job.clearance)
        there = sorted(delivered(p.database.receipts(row.job_key)))
        note = note_of(p.keys.master, recall, job, shipment, about, there)
        name = hashlib.sha256(note.instance_uid.encode()).hexdigest()[:32]
        path = make_folder(p.home.root / FOLDER) / f"{name}.dcm"
        write_note(note, path)
        cleared = p.workers.run(judge_note, path, about, there, shipment, note.pseudonym, p.keys.seal)
        return cleared, path

    def fail(self, serial: int, error: StudyError) -> None:
        """The note could not be sent: a person looks, and asks again (`recall send`)."""
        p = self._parts
        row = p.database.recalled_one(serial)
        if row is not None and row.note == DUE:
            told = {"recall": row.recall, "job": row.job_key, "reason": error.reason, "at": error.at}
            p.ledger.append("recall_not_told", f"recall_not_told/{row.serial}/r{row.round}", **told)
            p.database.set_recalled(row.serial, note=FAILED, reason=error.reason, at=error.at[:256])


def judge_note(
    path: Path, about: Clearance, there: list[str], shipment: Shipment, pseudonym: str, seal_key: bytes
) -> Clearance:
    """The gate on a note, in a worker."""
    return clear_note(
        path,
        name="note",
        about=about,
        delivered=there,
        pseudonym=pseudonym,
        study_uid=shipment.study_uid,
        series_uids=frozenset(shipment.series.values()),
        seal_key=seal_key,
    )


def note_of(
    master: bytes, recall: RecallRow, job: JobRow, shipment: Shipment, about: Clearance, there: list[str]
) -> Note:
    """What the note about a job says; the same whenever it is asked. Another content has another UID."""
    uids = Pseudonyms(derive(master, "rejection notes"))
    content = "/".join((str(recall.serial), job.job_key, recall.code, *there))
    instances = [(one, shipment.series[one.name]) for one in about.instances if one.name in set(there)]
    return Note(
        pseudonym=pseudonym_of(shipment, master),
        study_uid=shipment.study_uid,
        series_uid=uids.uid(f"series/{job.job_key}"),
        instance_uid=uids.uid(f"instance/{content}"),
        code=recall.code,
        made_at=recall.created_at,
        instances=instances,
    )


def recalled_again(parts: Parts, job_key: str) -> tuple[Next, ...]:
    """More of a job arrived while it was being recalled: its receiver is told of that as well."""
    for row in parts.database.recalled_jobs([job_key]):
        if row.note in (SENT, DUE):
            parts.database.set_recalled(row.serial, note=DUE, attempt=0, round=row.round + 1)
    return tuple(note_leg(row) for row in parts.database.recalled_jobs([job_key]) if row.note == DUE)
