"""Nouns of the tables: a job, a job with its state, an intent."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.study import State


@dataclass(frozen=True, slots=True)
class Job:
    """What routing decided: everything a leg needs, and nothing that identifies."""

    job_key: str
    study_key: str
    generation: int
    route: str
    project: str
    policy: str
    policy_digest: str
    destination: str
    subject: str = ""
    issue: int = 1  # of what this job sends; enters instance and series UIDs


@dataclass(frozen=True, slots=True)
class JobRow(Job):
    """A job with its state. `at` is a tag path or a file name of ours; `held_in` the room that held it; `level` says
    which of the levels of `escalate` is tried, from 0.
    """

    state: State = State.QUEUED
    reason: str = ""
    at: str = ""
    held_in: str = ""
    attempt: int = 0
    round: int = 1
    created_at: float = 0.0
    updated_at: float = 0.0
    clearance: str = ""
    verdicts: str = ""
    steps: str = ""
    level: int = 0


@dataclass(frozen=True, slots=True)
class Intent:
    """A wish that another process wrote down for the engine process: release or reject a job or study."""

    serial: int
    kind: str
    key: str
    actor: str
    reason: str
    created_at: float
    done_at: float | None = None
    outcome: str = ""
