"""Legs of a job, and the translation of whatever happens in them.

    intake (study, generation) -> scrub -> gate -> forward        each of the last three per job
    decide (intent)                                               what a person decided about a held study
    retain (hour)                                                 originals that are past their time
    release (release)                                             studies that are judged together, when it is closed
    recall (recalled job)                                         the note that asks its receiver to give it up

A leg does its work through `Steps`, which writes the new state to our tables before it returns; running it twice gives
the same end (engine.md: steps are repeated after a crash). A leg that raises ends in a held or refused job, or in
another try: no exception reaches the engine, because the engine stores and logs exception texts in clear.
"""

from __future__ import annotations

import errno
import logging
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from sqlalchemy import exc

from gateway.errors import EnvironmentFault, Hold, Refuse, Retry, StudyError
from gateway.observe import log, origin

# The machine's trouble, not the study's: wait until a person has mended it.
MACHINE_ERRNOS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EROFS, errno.EIO}
)
MACHINE_PAUSE_S = 15.0
WORKER_LOST_LIMIT = 3
# What a database says about one statement; everything else it raises is about the database.
_STATEMENT_FAULTS = (exc.IntegrityError, exc.DataError, exc.ProgrammingError, exc.NotSupportedError)


class Leg(StrEnum):
    """Names are part of stored workflows: never reused for something else (engine.md condition 2)."""

    INTAKE = "intake"
    SCRUB = "scrub"
    GATE = "gate"
    FORWARD = "forward"
    DECIDE = "decide"
    RETAIN = "retain"
    RELEASE = "release"
    RECALL = "recall"


@dataclass(frozen=True, slots=True)
class Next:
    """What the engine enqueues: a leg of a job, of a study generation or of an intent, after how many seconds.

    `attempt` only makes the name new; `tries` counts those that failed for a reason of the study or of its archive.
    """

    leg: Leg
    key: str
    round: int
    attempt: int = 0
    generation: int = 0
    delay_s: float = 0.0
    tries: int = 0

    @property
    def prefix(self) -> str:
        """What all attempts of this leg share."""
        return f"{self.leg}/{self.key}/g{self.generation}/r{self.round}/a"

    @property
    def workflow_id(self) -> str:
        """Fixed and opaque; idempotence rests on it."""
        return f"{self.prefix}{self.attempt}"


class Steps(Protocol):
    """The work of each leg. Each returns what comes next, () at an end, and may raise StudyError."""

    def intake(self, study_key: str, generation: int) -> tuple[Next, ...]: ...
    def scrub(self, job_key: str) -> tuple[Next, ...]: ...
    def gate(self, job_key: str) -> tuple[Next, ...]: ...
    def forward(self, job_key: str) -> tuple[Next, ...]: ...
    def decide(self, serial: int) -> tuple[Next, ...]: ...
    def release(self, serial: int) -> tuple[Next, ...]: ...
    def recall(self, serial: int) -> tuple[Next, ...]: ...
    def retain(self) -> bool:
        """Some of the work of retention; True when there is more."""

    def fail(self, task: Next, error: StudyError) -> None:
        """Record a held or refused study or job, or an intent that cannot be carried out."""

    def lane(self, task: Next) -> str:
        """Forward legs of one lane share a limit, so that a silent archive stops nobody else's. Never empty."""

    def is_learned(self, task: Next) -> bool:
        """Whether a leg runs learned parts: a process with a GPU then does it."""

    def rank(self, task: Next) -> int:
        """Its place in its queue, from 1: legs of a smaller rank are taken up before those of a greater."""

    def is_open(self, task: Next) -> bool:
        """Whether what this leg sends may be sent now."""

    def pause_s(self, tries: int) -> float:
        """How long to wait after so many failed tries and one more."""

    def attempts_left(self, task: Next) -> bool:
        """False when a further try is not wanted: the job is then held with `gave_up`."""

    def note_attempt(self, task: Next, reason: str) -> None:
        """Make a pending retry visible in `status`."""

    def unforeseen(self, task: Next) -> None:
        """Count an exception nobody foresaw."""


def run_leg(steps: Steps, task: Next, room: AbstractContextManager[None] | None = None) -> tuple[Next, ...]:
    """Run one leg (in a `room` to work in) and return what comes next. Every exception becomes a state, a retry, or
    both; Stopping passes.
    """
    try:
        with room or nullcontext():
            return _work(steps, task)
    except Retry as error:
        return _retry(steps, task, error)
    except StudyError as error:
        return _end(steps, task, error)
    except BrokenProcessPool:
        return _retry(steps, task, Retry("worker_lost", at=task.leg), limit=WORKER_LOST_LIMIT)
    except MemoryError:
        return _end(steps, task, Hold("memory_exceeded", at=task.leg))
    except Exception as error:  # noqa: BLE001 - the one place: an unforeseen fault holds the study
        if not is_machine_trouble(error):
            return _unforeseen(steps, task, error)
        log("machine_trouble", level=logging.ERROR, stage=task.leg, job=task.key, exception=origin(error))
        return (_again(task, MACHINE_PAUSE_S),)


def is_machine_trouble(error: Exception) -> bool:
    """True for what a study is not to blame for: disk, files, database, a damaged ledger."""
    if isinstance(error, OSError):
        return error.errno in MACHINE_ERRNOS
    if isinstance(error, exc.DBAPIError):
        return not isinstance(error, _STATEMENT_FAULTS)
    return isinstance(error, EnvironmentFault | exc.TimeoutError)


def _work(steps: Steps, task: Next) -> tuple[Next, ...]:
    match task.leg:
        case Leg.INTAKE:
            return steps.intake(task.key, task.generation)
        case Leg.SCRUB:
            return steps.scrub(task.key)
        case Leg.GATE:
            return steps.gate(task.key)
        case Leg.FORWARD | Leg.RECALL if not steps.is_open(task):
            return ()  # our tables count it as due again once its destination is open
        case Leg.FORWARD:
            return steps.forward(task.key)
        case Leg.DECIDE:
            return steps.decide(int(task.key))
        case Leg.RELEASE:
            return steps.release(int(task.key))
        case Leg.RECALL:
            return steps.recall(int(task.key))
        case Leg.RETAIN:
            return (_again(task, 0.0),) if steps.retain() else ()


def _again(task: Next, delay_s: float) -> Next:
    return replace(task, attempt=task.attempt + 1, delay_s=delay_s)


def _retry(steps: Steps, task: Next, error: Retry, limit: int | None = None) -> tuple[Next, ...]:
    left = task.tries + 1 < limit if limit is not None else steps.attempts_left(task)
    if not left:
        return _end(steps, task, _given_up(error))
    try:
        steps.note_attempt(task, error.reason)
    except exc.SQLAlchemyError as failure:  # the note is a courtesy; the retry itself must not be lost
        log("note_failed", level=logging.WARNING, stage=task.leg, job=task.key, exception=origin(failure))
    delay_s = steps.pause_s(task.tries)
    log("retry", stage=task.leg, job=task.key, reason=error.reason, attempt=task.tries + 1, seconds=delay_s)
    return (replace(_again(task, delay_s), tries=task.tries + 1),)


def _given_up(error: Retry) -> StudyError:
    return Hold("stage_failed" if error.reason == "worker_lost" else "gave_up", at=error.reason)


def _end(steps: Steps, task: Next, error: StudyError) -> tuple[Next, ...]:
    log(
        "refused" if isinstance(error, Refuse) else "held",
        stage=task.leg,
        job=task.key,
        reason=error.reason,
        at=error.at,
    )
    try:
        steps.fail(task, error)
    except Exception as failure:  # noqa: BLE001 - the state could not be written: come back, do not lose the study
        log("hold_not_recorded", level=logging.ERROR, stage=task.leg, job=task.key, exception=origin(failure))
        return (_again(task, MACHINE_PAUSE_S),)
    return ()


def _unforeseen(steps: Steps, task: Next, error: Exception) -> tuple[Next, ...]:
    place = origin(error)
    log("unforeseen", level=logging.ERROR, stage=task.leg, job=task.key, exception=place)
    steps.unforeseen(task)
    return _end(steps, task, Hold("stage_failed", at=place))
