"""Work on the engine: fixed ids, retries that outlive a restart, lanes, and a stop that loses nothing (engine.md)."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from engine_cases import Script, Store, wait_for

from gateway.errors import Hold, Retry, Stopping
from gateway.flow import Leg, Next
from gateway.flow import legs as legs_module

PLANT = "ZZSYNTH^LEAKTEST"


def intake(key: str) -> Next:
    return Next(Leg.INTAKE, key, 1, 0, 1)


def test_a_study_goes_through_all_its_legs_once(store: Store) -> None:
    script = Script()
    engine = store.engine(script)
    for key in ("s1", "s2", "s3"):
        engine.enqueue(intake(key))
    wait_for(lambda: script.ended("s1", "s2", "s3"))
    assert sorted(script.ran) == sorted(
        (leg, key) for leg in ("intake", "scrub", "gate", "forward") for key in ("s1", "s2", "s3")
    )
    wait_for(lambda: set(store.statuses().values()) == {"SUCCESS"})
    assert set(store.statuses()) == {
        f"{leg}/{key}/g{1 if leg == 'intake' else 0}/r1/a0"
        for leg in ("intake", "scrub", "gate", "forward")
        for key in ("s1", "s2", "s3")
    }


def test_enqueuing_the_same_leg_many_times_at_once_does_it_once(store: Store) -> None:
    script = Script()
    engine = store.engine(script)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(engine.enqueue, [intake("s1")] * 24))
    wait_for(lambda: script.ended("s1"))
    engine.enqueue(intake("s1"))  # and once more when it is over
    time.sleep(0.6)
    assert [script.count(leg, "s1") for leg in ("intake", "scrub", "gate", "forward")] == [1, 1, 1, 1]


def test_a_delayed_retry_survives_a_restart_and_comes_at_its_time(store: Store) -> None:
    script = Script()
    script.pause = 3.0

    def down() -> None:
        raise Retry("archive_unreachable")

    script.act["forward", "s1"] = down
    engine = store.engine(script)
    engine.enqueue(Next(Leg.FORWARD, "s1", 1))
    wait_for(lambda: script.noted["s1"] == 1)
    wait_for(lambda: "DELAYED" in store.statuses().values())
    engine.stop()
    del script.act["forward", "s1"]
    store.engine(script)
    wait_for(lambda: script.count("forward", "s1") == 2)
    first, second = script.times["forward", "s1"]
    assert 3.0 <= second - first < 15.0
    assert store.statuses().keys() == {"forward/s1/g0/r1/a0", "forward/s1/g0/r1/a1"}


def test_an_archive_that_stays_down_ends_in_a_held_job_after_the_limit(embedded: Store) -> None:
    script = Script()
    script.limit = 3

    def down() -> None:
        raise Retry("archive_unreachable")

    script.act["forward", "s1"] = down
    engine = embedded.engine(script)
    engine.enqueue(Next(Leg.FORWARD, "s1", 1))
    wait_for(lambda: "s1" in script.failed)
    assert (script.failed["s1"].reason, script.failed["s1"].at) == ("gave_up", "archive_unreachable")
    assert (script.count("forward", "s1"), script.noted["s1"]) == (3, 2)


def test_a_silent_archive_stops_nobody_elses_forward(embedded: Store) -> None:
    script = Script()
    hung, most = threading.Event(), threading.Semaphore(0)
    running: list[int] = []

    def hang() -> None:
        with script.lock:
            running.append(1)
        most.release()
        hung.wait(30)
        with script.lock:
            running.pop()

    for n in range(9):
        script.lanes[f"dead{n}"] = "dead"
        script.act["forward", f"dead{n}"] = hang
    engine = embedded.engine(script)
    try:
        for n in range(9):
            engine.enqueue(Next(Leg.FORWARD, f"dead{n}", 1))
        for _ in range(4):
            assert most.acquire(timeout=10)
        for n in range(3):
            engine.enqueue(Next(Leg.FORWARD, f"good{n}", 1))
        wait_for(lambda: script.ended("good0", "good1", "good2"), seconds=8)
        time.sleep(0.5)
        assert len(running) == 4  # of one lane no more at once
    finally:
        hung.set()
    wait_for(lambda: script.ended(*(f"dead{n}" for n in range(9))))


def test_decisions_are_carried_out_one_after_the_other_in_their_order(store: Store) -> None:
    script = Script()
    inside: list[str] = []

    def alone() -> None:
        inside.append("in")
        assert len(inside) == 1
        time.sleep(0.05)
        inside.pop()

    for serial in range(1, 7):
        script.act["decide", str(serial)] = alone
    engine = store.engine(script)
    for serial in range(1, 7):
        engine.enqueue(Next(Leg.DECIDE, str(serial), 1))
    wait_for(lambda: len(script.ran) == 6)
    assert [key for _, key in script.ran] == ["1", "2", "3", "4", "5", "6"]
    assert script.failed == {}


def test_stop_lets_a_running_leg_end_and_the_next_start_goes_on_from_there(store: Store) -> None:
    script = Script()
    script.act["scrub", "s1"] = lambda: time.sleep(1.0)
    engine = store.engine(script)
    engine.enqueue(Next(Leg.SCRUB, "s1", 1))
    wait_for(lambda: script.count("scrub", "s1") == 1)
    engine.stop()
    assert script.count("forward", "s1") == 0
    store.engine(script)
    wait_for(lambda: script.ended("s1"))
    assert script.count("scrub", "s1") == 1  # it had ended, so it is not repeated


def test_a_leg_that_a_stop_cuts_off_is_repeated_by_the_next_start(store: Store) -> None:
    script = Script()
    cut = threading.Event()

    def long() -> None:
        if cut.wait(30):
            raise Stopping

    script.act["scrub", "s1"] = long
    script.due["s1"] = Next(Leg.SCRUB, "s1", 1)
    engine = store.engine(script)
    wait_for(lambda: script.count("scrub", "s1") == 1)
    engine.stop(timeout_s=1)
    cut.set()
    time.sleep(0.3)
    assert store.statuses() == {"scrub/s1/g0/r1/a0": "PENDING"}
    assert script.failed == {}
    script.act.clear()
    store.engine(script)
    wait_for(lambda: script.ended("s1"))
    assert script.count("scrub", "s1") == 2
    wait_for(lambda: set(store.statuses().values()) == {"SUCCESS"})


def test_nothing_of_an_exception_is_in_the_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legs_module, "MACHINE_PAUSE_S", 0.1)
    script = Script()
    once: set[str] = set()

    def raising(error: Exception, key: str, *, again: bool) -> None:
        if again or key not in once:
            once.add(key)
            raise error

    errors: dict[str, tuple[Exception, bool]] = {
        "unforeseen": (ValueError(PLANT), True),
        "machine": (OSError(28, PLANT), False),
        "hold": (Hold("no_route", at="(0010,0010)"), True),
        "retry": (Retry("archive_unreachable", at="(0010,0020)"), False),
        "group": (ExceptionGroup(PLANT, [KeyError(PLANT)]), True),
    }
    for key, (error, again) in errors.items():
        script.act["scrub", key] = lambda e=error, k=key, a=again: raising(e, k, again=a)  # type: ignore[misc]
    engine = store.engine(script)
    for key in errors:
        engine.enqueue(Next(Leg.SCRUB, key, 1))
    wait_for(lambda: script.failed.keys() == {"unforeseen", "hold", "group"})
    wait_for(lambda: script.ended("machine", "retry"))
    engine.stop()
    text = store.everything()
    assert "scrub/unforeseen" in text  # the search can find
    for word in (PLANT, "ZZSYNTH", "0010,0010", "0010,0020", "Traceback"):
        assert word not in text
    assert set(store.statuses().values()) == {"SUCCESS"}


def test_a_lost_worker_is_no_blame_for_later_tries_of_another_kind(store: Store) -> None:
    """`tries` travels with the workflow: it is there again after a restart."""
    script = Script()
    script.limit = 3

    def down() -> None:
        raise Retry("archive_unreachable")

    script.act["forward", "s1"] = down
    engine = store.engine(script)
    engine.enqueue(replace(Next(Leg.FORWARD, "s1", 1), attempt=9, tries=2))
    wait_for(lambda: "s1" in script.failed)
    assert script.count("forward", "s1") == 1
