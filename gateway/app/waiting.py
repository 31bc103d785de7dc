"""What waits for a person: studies held before routing, held jobs, and what `scrub` held. Read without the engine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from gateway.database import Database, JobRow, StudyRow
from gateway.settings import Home, Settings
from gateway.study import Finding, State

BATCH = "scrub"  # the stage of what the command `scrub` held; a leg of `serve` has the same name
NOTE = "held.json"


@dataclass(frozen=True, slots=True)
class Waiting:
    """One held study. `since` is in UTC seconds, `at` a place in our terms, never a value. `batch`: the command `scrub`
    held it, and no row is there that a decision could change.
    """

    key: str
    state: str
    stage: str
    reason: str
    since: float
    at: str = ""
    policy: str = ""
    policy_digest: str = ""
    destination: str = ""
    findings: tuple[Finding, ...] = ()
    batch: bool = False


def everything_held(home: Home, settings: Settings) -> list[Waiting]:
    """All of it, oldest first."""
    database = Database.in_home(home.database, settings.database_url)
    try:
        found = [study_waiting(row) for row in database.studies_in("held")]
        found += [job_waiting(row) for row in database.jobs_in(State.HELD, State.AWAITING_RELEASE)]
    finally:
        database.close()
    found += [waiting for waiting in batches(home) if waiting.state != State.REFUSED]
    return sorted(found, key=lambda waiting: waiting.since)


def one_held(home: Home, settings: Settings, key: str) -> Waiting | None:
    """The study or job of a key, whatever its state is by now; None when there never was one."""
    database = Database.in_home(home.database, settings.database_url)
    try:
        job = database.job(key)
        if job is not None:
            return job_waiting(job)
        study_key, _, generation = key.partition(".")
        if generation.isdecimal() and len(generation) < 10:
            study = database.study(study_key, int(generation))
            if study is not None and not database.jobs_of(study_key, study.generation):
                return study_waiting(study)
    finally:
        database.close()
    return next((waiting for waiting in batches(home) if waiting.key == key), None)


def batches(home: Home) -> list[Waiting]:
    """What `scrub` held or refused, by the notes beside the candidates."""
    notes = home.held.glob(f"*/{NOTE}")
    return [waiting for waiting in map(_batch, notes) if waiting is not None]


def _batch(note: Path) -> Waiting | None:
    """None for a note that vanishes meanwhile or was damaged: the study is then done again by the next `scrub`."""
    try:
        body = json.loads(note.read_bytes())
        return Waiting(
            key=note.parent.name,
            state=body["state"],
            stage=BATCH,
            reason=body["reason"],
            since=note.stat().st_mtime,
            at=body["at"],
            policy=body["policy"],
            policy_digest=body["policy_digest"],
            findings=tuple(Finding(**finding) for finding in body["findings"]),
            batch=True,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def study_waiting(row: StudyRow) -> Waiting:
    """A study that never became a job is listed and decided by its key and generation."""
    return Waiting(f"{row.study_key}.{row.generation}", row.state, "intake", row.reason, row.first_at)


def job_waiting(row: JobRow) -> Waiting:
    return Waiting(
        key=row.job_key,
        state=str(row.state),
        stage=row.held_in or "-",
        reason=row.reason,
        since=row.created_at,
        at=row.at,
        policy=row.policy,
        policy_digest=row.policy_digest,
        destination=row.destination,
        findings=tuple(
            Finding(**finding) for verdict in json.loads(row.verdicts or "[]") for finding in verdict["findings"]
        ),
    )
