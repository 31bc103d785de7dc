"""The course of a study: which leg the state of our tables asks for."""

from __future__ import annotations

import time
from collections.abc import Callable

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


def pending(
    database: Database, lets: Callable[[Next, str], bool], rank: Callable[[str], int], *, older_than_s: float = 0.0
) -> list[Next]:
    """Every leg that our tables say is due, for a restart and for the reconciler; jobs in the order of their `rank`.
    `lets`: whether a leg may send to this destination now.
    """
    now = time.time()

    def is_old(changed_at: float) -> bool:  # or of a time that is still to come, before the clock was set back
        return not now - older_than_s < changed_at <= now

    due = [
        Next(Leg.INTAKE, study.study_key, study.round, 0, study.generation)
        for study in database.unrouted()
        if study.closed_at is not None and is_old(max(study.closed_at, study.changed_at or 0.0))
    ]
    for job in sorted(database.unfinished_jobs(), key=lambda job: rank(job.route)):
        if is_old(job.updated_at):
            due.extend(leg for leg in next_leg(job) if lets(leg, job.destination))
    due.extend(decide_leg(intent.serial) for intent in database.open_intents() if is_old(intent.created_at))
    notes = [row for row in database.notes(DUE) if is_old(row.changed_at)]
    due.extend(note_leg(row) for row in notes if lets(note_leg(row), row.destination))
    for release in database.releases_in(AUDITING, CLEARED):
        settled = release.state == CLEARED and not database.all_sent(release.serial)
        if is_old(release.updated_at) and not settled:
            due.append(release_leg(release))
    return due
