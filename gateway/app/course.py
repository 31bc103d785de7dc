"""The course of a study: which leg the state of our tables asks for."""

from __future__ import annotations

import time

from gateway.database import Database, JobRow, RecalledRow, ReleaseRow
from gateway.database.recalls import DUE
from gateway.database.releases import AUDITING, CLEARED
from gateway.flow import Leg, Next
from gateway.study import State

_LEGS = {State.QUEUED: Leg.SCRUB, State.SCRUBBED: Leg.GATE, State.CLEARED: Leg.FORWARD}


def next_leg(job: JobRow) -> tuple[Next, ...]:
    """What a job's state asks for; () when it waits for a person, or is at its end."""
    leg = _LEGS.get(job.state)
    return (Next(leg, job.job_key, job.round, job.attempt, tries=job.attempt),) if leg else ()


def decide_leg(serial: int) -> Next:
    """The leg that carries out an intent."""
    return Next(Leg.DECIDE, str(serial), 1)


def release_leg(release: ReleaseRow) -> Next:
    """The leg that judges a closed release, or says that a cleared one was sent."""
    return Next(Leg.RELEASE, str(release.serial), release.round)


def note_leg(row: RecalledRow) -> Next:
    """The leg that sends a rejection note."""
    return Next(Leg.RECALL, str(row.serial), row.round, row.attempt, tries=row.attempt)


def pending(database: Database, *, older_than_s: float = 0.0) -> list[Next]:
    """Every leg that our tables say is due, for a restart and for the reconciler."""
    before = time.time() - older_than_s
    due = [
        Next(Leg.INTAKE, study.study_key, study.round, 0, study.generation)
        for study in database.unrouted()
        if study.closed_at is not None and max(study.closed_at, study.changed_at or 0.0) <= before
    ]
    for job in database.unfinished_jobs():
        if job.updated_at <= before:
            due.extend(next_leg(job))
    due.extend(decide_leg(intent.serial) for intent in database.open_intents() if intent.created_at <= before)
    due.extend(note_leg(row) for row in database.notes(DUE) if row.changed_at <= before)
    for release in database.releases_in(AUDITING, CLEARED):
        settled = release.state == CLEARED and not database.all_sent(release.serial)
        if release.updated_at <= before and not settled:
            due.append(release_leg(release))
    return due
