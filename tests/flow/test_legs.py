"""Whatever a leg raises becomes a state, a retry, or both; nothing of its text travels."""

from __future__ import annotations

import errno
import io
from concurrent.futures.process import BrokenProcessPool

import pytest
from sqlalchemy.exc import DatabaseError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from gateway.errors import REASONS, Disposition, Drop, EnvironmentFault, Hold, Refuse, Retry, Stopping, StudyError
from gateway.flow import Leg, Next, run_leg
from gateway.observe import start_logging

PLANT = "ZZSYNTH^LEAKTEST"


class Scripted:
    """Steps that raise what they are told to."""

    def __init__(self, error: Exception | None, *, attempts: int = 3, fail_error: Exception | None = None) -> None:
        self.error = error
        self.attempts = attempts
        self.fail_error = fail_error
        self.failed: list[StudyError] = []
        self.noted: list[str] = []
        self.unforeseen_count = 0

    def _act(self) -> tuple[Next, ...]:
        if self.error:
            raise self.error
        return (Next(Leg.GATE, "job", 1),)

    def intake(self, study_key: str, generation: int) -> tuple[Next, ...]:
        return self._act()

    def scrub(self, job_key: str) -> tuple[Next, ...]:
        return self._act()

    def gate(self, job_key: str) -> tuple[Next, ...]:
        return self._act()

    def forward(self, job_key: str) -> tuple[Next, ...]:
        return self._act()

    def decide(self, serial: int) -> tuple[Next, ...]:
        return self._act()

    def release(self, serial: int) -> tuple[Next, ...]:
        return self._act()

    def recall(self, serial: int) -> tuple[Next, ...]:
        return self._act()

    def retain(self) -> bool:
        return len(self._act()) == 0

    def rank(self, task: Next) -> int:
        return 1

    def is_open(self, task: Next) -> bool:
        return True

    def lane(self, task: Next) -> str:
        return "archive"

    def fail(self, task: Next, error: StudyError) -> None:
        if self.fail_error:
            raise self.fail_error
        self.failed.append(error)

    def pause_s(self, attempt: int) -> float:
        return 7.0 * (attempt + 1)

    def attempts_left(self, task: Next) -> bool:
        return task.attempt + 1 < self.attempts

    def note_attempt(self, task: Next, reason: str) -> None:
        self.noted.append(reason)

    def unforeseen(self, task: Next) -> None:
        self.unforeseen_count += 1


FORWARD = Next(Leg.FORWARD, "job", 2)


@pytest.mark.parametrize("leg", [leg for leg in Leg if leg is not Leg.RETAIN])
def test_a_leg_that_works_hands_on_what_comes_next(leg: Leg) -> None:
    assert run_leg(Scripted(None), Next(leg, "7", 1)) == (Next(Leg.GATE, "job", 1),)


def test_retention_comes_again_while_there_is_more_to_do() -> None:
    steps = Scripted(None)
    assert run_leg(steps, Next(Leg.RETAIN, "490000", 1)) == ()
    steps.retain = lambda: True  # type: ignore[method-assign]
    assert run_leg(steps, Next(Leg.RETAIN, "490000", 1)) == (Next(Leg.RETAIN, "490000", 1, attempt=1),)


def test_a_hold_ends_the_leg_and_is_recorded_with_its_reason() -> None:
    steps = Scripted(Hold("no_route"))
    assert run_leg(steps, Next(Leg.INTAKE, "study", 1)) == ()
    assert [error.reason for error in steps.failed] == ["no_route"]


def test_what_needs_more_memory_than_a_worker_may_take_is_held_at_once_under_its_own_reason() -> None:
    steps = Scripted(MemoryError())
    assert run_leg(steps, Next(Leg.SCRUB, "job", 1)) == ()
    assert [(type(error), error.reason, error.at) for error in steps.failed] == [(Hold, "memory_exceeded", "scrub")]
    assert steps.unforeseen_count == 0


def test_a_refusal_is_recorded_as_a_refusal() -> None:
    steps = Scripted(Refuse("dicomdir"))
    assert run_leg(steps, FORWARD) == ()
    assert isinstance(steps.failed[0], Refuse)


def test_a_retry_comes_back_under_the_next_attempt_after_its_pause() -> None:
    steps = Scripted(Retry("archive_unreachable"))
    assert run_leg(steps, FORWARD) == (Next(Leg.FORWARD, "job", 2, attempt=1, delay_s=7.0, tries=1),)
    assert steps.noted == ["archive_unreachable"]
    assert not steps.failed


def test_the_last_attempt_holds_the_study_and_says_what_it_was_waiting_for() -> None:
    steps = Scripted(Retry("archive_unreachable"))
    assert run_leg(steps, Next(Leg.FORWARD, "job", 2, attempt=2, tries=2)) == ()
    assert (steps.failed[0].reason, steps.failed[0].at) == ("gave_up", "archive_unreachable")


def test_a_lost_worker_is_tried_three_times_then_held() -> None:
    steps = Scripted(BrokenProcessPool("gone"), attempts=99)
    assert run_leg(steps, Next(Leg.SCRUB, "job", 1, tries=1))[0].tries == 2
    assert run_leg(steps, Next(Leg.SCRUB, "job", 1, tries=2)) == ()
    assert (steps.failed[0].reason, steps.failed[0].at) == ("stage_failed", "worker_lost")


def test_what_the_machine_was_to_blame_for_is_no_try_of_the_study() -> None:
    task = Next(Leg.SCRUB, "job", 1, attempt=7, tries=1)
    (again,) = run_leg(Scripted(OSError(errno.ENOSPC, "no space")), task)
    assert (again.attempt, again.tries) == (8, 1)
    (again,) = run_leg(Scripted(BrokenProcessPool("gone")), again)
    assert (again.attempt, again.tries) == (9, 2)


def test_a_leg_that_is_cut_off_by_the_end_of_the_process_leaves_no_trace() -> None:
    steps = Scripted(Stopping())  # type: ignore[arg-type]
    with pytest.raises(Stopping):
        run_leg(steps, Next(Leg.SCRUB, "job", 1))
    assert (steps.failed, steps.noted, steps.unforeseen_count) == ([], [], 0)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "no space"),
        EnvironmentFault("ledger"),
        OperationalError("select", {}, Exception("locked")),
        DatabaseError("select", {}, Exception("the image is malformed")),
        InterfaceError("select", {}, Exception("connection is closed")),
        PoolTimeout("no connection is free"),
        OSError(errno.EAGAIN, "no more processes"),
    ],
)
def test_trouble_of_the_machine_waits_and_never_ends_a_study(error: Exception) -> None:
    steps = Scripted(error, attempts=1)
    (again,) = run_leg(steps, Next(Leg.SCRUB, "job", 1, attempt=500))
    assert again.attempt == 501
    assert again.delay_s > 0
    assert not steps.failed


@pytest.mark.parametrize(
    "error",
    [
        ValueError(PLANT),
        KeyError(PLANT),
        FileNotFoundError(errno.ENOENT, PLANT),
        IntegrityError("insert", {"name": PLANT}, Exception(PLANT)),
    ],
)
def test_an_unforeseen_exception_holds_the_study_without_its_text(error: Exception) -> None:
    stream = io.StringIO()
    start_logging(stream)
    steps = Scripted(error)
    assert run_leg(steps, Next(Leg.GATE, "job", 1)) == ()
    assert steps.failed[0].reason == "stage_failed"
    assert type(error).__name__ in steps.failed[0].at
    assert PLANT not in steps.failed[0].at + str(steps.failed[0]) + stream.getvalue()
    assert steps.unforeseen_count == 1


def test_a_hold_that_cannot_be_recorded_comes_back_instead_of_vanishing() -> None:
    steps = Scripted(Hold("no_route"), fail_error=OperationalError("update", {}, Exception(PLANT)))
    (again,) = run_leg(steps, Next(Leg.INTAKE, "study", 1))
    assert again.attempt == 1


def test_workflow_ids_are_fixed_and_differ_by_everything_that_matters() -> None:
    tasks = [
        Next(leg, key, round_, attempt, generation)
        for leg in Leg
        for key in ("a", "b")
        for round_ in (1, 2)
        for attempt in (0, 1)
        for generation in (0, 1)
    ]
    assert len({task.workflow_id for task in tasks}) == len(tasks)
    assert Next(Leg.GATE, "k", 2, 1, 3).workflow_id == "gate/k/g3/r2/a1"


def test_every_reason_has_words_and_a_hint_and_survives_a_pool() -> None:
    import pickle

    kinds = {Disposition.HOLD: Hold, Disposition.RETRY: Retry, Disposition.REFUSE: Refuse, Disposition.DROP: Drop}
    for code, reason in REASONS.items():
        assert reason.says
        assert reason.hint
        error = kinds[reason.disposition](code, at="(0010,0010)")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.reason, copy.at) == (type(error), code, "(0010,0010)")
