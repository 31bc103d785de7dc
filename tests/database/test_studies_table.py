"""Studies, their generations, and when a generation closes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy.exc import IntegrityError

from gateway.database import Database

NEVER = {"quiet_s": 3600.0, "forced_s": 3600.0, "use_expected": False}


def arrive(database: Database, study: str = "s1", n: int = 0, *, sop: str = "", expected: int = 0) -> int:
    return database.record_instance(
        study_key=study, name=f"{n:04d}.dcm", sop_key=sop or f"sop{n}", size_bytes=100 + n, expected=expected
    )


def test_instances_of_one_study_share_a_generation_and_keep_their_order(database: Database) -> None:
    assert [arrive(database, n=n) for n in (3, 1, 2)] == [1, 1, 1]
    rows = database.instances_of("s1", 1)
    assert [row.name for row in rows] == ["0003.dcm", "0001.dcm", "0002.dcm"]
    assert [row.size_bytes for row in rows] == [103, 101, 102]
    assert {(row.sha256, row.use) for row in rows} == {("", "new")}


def test_a_late_instance_opens_the_next_generation(database: Database) -> None:
    arrive(database, n=1)
    assert database.close_complete(quiet_s=0, forced_s=3600, use_expected=False) == [("s1", 1)]
    assert [arrive(database, n=n) for n in (2, 3)] == [2, 2]
    assert [row.name for row in database.instances_of("s1", 1)] == ["0001.dcm"]
    assert [row.name for row in database.instances_of("s1", 2)] == ["0002.dcm", "0003.dcm"]
    assert len(database.instances_of("s1")) == 3
    first, second = database.study("s1", 1), database.study("s1", 2)
    assert first is not None
    assert first.closed_at is not None
    assert second is not None
    assert second.closed_at is None


def test_a_quiet_study_closes_and_one_that_still_receives_does_not(database: Database) -> None:
    arrive(database, "quiet", 1)
    time.sleep(0.3)
    arrive(database, "busy", 2)
    assert database.close_complete(quiet_s=0.2, forced_s=3600, use_expected=False) == [("quiet", 1)]
    assert database.close_complete(quiet_s=0.2, forced_s=3600, use_expected=False) == []
    time.sleep(0.3)
    assert database.close_complete(quiet_s=0.2, forced_s=3600, use_expected=False) == [("busy", 1)]


def test_a_study_that_never_gets_quiet_is_closed_by_force(database: Database) -> None:
    arrive(database, n=1)
    time.sleep(0.3)
    arrive(database, n=2)
    assert database.close_complete(quiet_s=3600, forced_s=3600, use_expected=False) == []
    assert database.close_complete(quiet_s=3600, forced_s=0.2, use_expected=False) == [("s1", 1)]


def test_a_clock_that_is_set_back_makes_no_study_wait_for_the_old_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    arrive(database, n=1)
    monkeypatch.setattr(time, "time", lambda: now)
    assert database.close_complete(quiet_s=30, forced_s=600, use_expected=False) == []
    monkeypatch.setattr(time, "time", lambda: now + 31)
    assert database.close_complete(quiet_s=30, forced_s=600, use_expected=False) == [("s1", 1)]


def test_a_study_closes_when_all_that_it_expects_is_there(database: Database) -> None:
    arrive(database, n=1, expected=2)
    assert database.close_complete(quiet_s=3600, forced_s=3600, use_expected=True) == []
    arrive(database, n=2, sop="sop1", expected=2)  # the first one again: still one object of two
    assert database.close_complete(quiet_s=3600, forced_s=3600, use_expected=True) == []
    arrive(database, n=3, expected=2)
    assert database.close_complete(**NEVER) == []
    assert database.close_complete(quiet_s=3600, forced_s=3600, use_expected=True) == [("s1", 1)]


def test_a_follow_up_stays_open_until_the_generation_before_it_is_decided(database: Database) -> None:
    arrive(database, n=1)
    assert database.close_complete(quiet_s=0, forced_s=3600, use_expected=False) == [("s1", 1)]
    arrive(database, n=2, expected=2)
    assert database.close_complete(quiet_s=0, forced_s=0, use_expected=True) == []
    arrive(database, n=3)
    database.set_study("s1", 1, state="held", reason="no_route")
    assert database.close_complete(quiet_s=0, forced_s=3600, use_expected=False) == [("s1", 2)]
    assert [row.name for row in database.instances_of("s1", 2)] == ["0002.dcm", "0003.dcm"]


def test_what_was_rejected_does_not_count_towards_what_is_expected(database: Database) -> None:
    for n in (1, 2):
        arrive(database, n=n, expected=2)
    assert database.close_complete(quiet_s=3600, forced_s=3600, use_expected=True) == [("s1", 1)]
    database.set_study("s1", 1, state="rejected")
    arrive(database, n=3, sop="sop1", expected=2)
    assert database.close_complete(quiet_s=3600, forced_s=3600, use_expected=True) == []
    arrive(database, n=4, sop="sop2", expected=2)
    assert database.close_complete(quiet_s=3600, forced_s=3600, use_expected=True) == [("s1", 2)]


def test_studies_are_counted_by_state_and_reason(database: Database) -> None:
    for study in ("s1", "s2", "s3"):
        arrive(database, study)
    database.set_study("s2", 1, state="held", reason="no_route")
    assert database.count_studies("received", "held") == {("received", ""): 2, ("held", "no_route"): 1}
    assert database.count_studies("rejected") == {}


def test_an_instance_that_does_not_tell_a_count_leaves_the_one_that_was_told(database: Database) -> None:
    arrive(database, n=1, expected=7)
    arrive(database, n=2)
    row = database.study("s1", 1)
    assert row is not None
    assert row.expected == 7


def test_a_study_without_an_expected_count_is_not_closed_by_it(database: Database) -> None:
    arrive(database, n=1)
    assert database.close_complete(quiet_s=3600, forced_s=3600, use_expected=True) == []


def test_the_counts_of_studies_are_not_mixed_up(database: Database) -> None:
    arrive(database, "one", 1, expected=2)
    arrive(database, "two", 2, expected=1)
    assert database.close_complete(quiet_s=3600, forced_s=3600, use_expected=True) == [("two", 1)]


def test_a_closed_generation_is_unrouted_until_it_is_routed_or_decided(database: Database) -> None:
    for study in ("open", "closed", "routed", "held"):
        arrive(database, study)
    database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
    arrive(database, "open", 1)
    database.set_study("open", 1, state="held", reason="no_route")
    database.set_study("routed", 1, routed_at=time.time(), state="routed")
    database.set_study("held", 1, state="held", reason="no_route")
    assert [(row.study_key, row.generation) for row in database.unrouted()] == [("closed", 1)]
    assert {(row.study_key, row.reason) for row in database.studies_in("held")} == {
        ("open", "no_route"),
        ("held", "no_route"),
    }
    assert database.studies_in("refused") == []


def test_intake_fills_in_what_it_found(database: Database) -> None:
    arrive(database, n=1)
    arrive(database, n=2)
    one, two = database.instances_of("s1")
    database.set_instances([{"serial": two.serial, "sha256": "ab" * 32, "patient_key": "p1", "use": "duplicate"}])
    assert database.instances_of("s1") == [one, replace(two, sha256="ab" * 32, patient_key="p1", use="duplicate")]
    database.set_instances([{"serial": one.serial, "use": "use"}, {"serial": two.serial, "use": "conflict"}])
    assert [(row.use, row.patient_key) for row in database.instances_of("s1")] == [("use", ""), ("conflict", "p1")]


def test_a_generation_of_duplicates_joins_the_one_it_repeats(database: Database) -> None:
    for n in (1, 2):
        arrive(database, n=n, sop="same")
        database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
        if n == 1:
            database.set_study("s1", 1, state="held")
    arrive(database, "other", 3)
    assert [row.generation for row in database.generations("s1")] == [1, 2]
    database.merge_generation("s1", 2, 1)
    # The number stays taken: the engine would take a later generation 2 for work that it has done.
    assert [(row.generation, row.state) for row in database.generations("s1")] == [(1, "held"), (2, "duplicate")]
    arrive(database, n=4)
    assert [row.generation for row in database.generations("s1")] == [1, 2, 3]
    assert [(row.name, row.generation, row.use) for row in database.instances_of("s1")] == [
        ("0001.dcm", 1, "new"),
        ("0002.dcm", 1, "duplicate"),
        ("0004.dcm", 3, "new"),
    ]
    assert len(database.spooled_names()) == 4


def test_what_was_never_received_is_not_there(database: Database) -> None:
    assert database.study("s1", 1) is None
    assert database.instances_of("s1") == []
    assert database.spooled_names() == frozenset()


def test_one_name_in_one_study_is_recorded_once(database: Database) -> None:
    arrive(database, n=1)
    with pytest.raises(IntegrityError):
        arrive(database, n=1)
    assert len(database.instances_of("s1")) == 1  # the failed transaction left nothing


def test_eight_receivers_at_once_lose_nothing_and_open_one_generation(database: Database) -> None:
    def receive(n: int) -> int:
        return arrive(database, f"study{n % 4}", n)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(receive, range(96))) == {1}
    assert len(database.spooled_names()) == 96
    assert {row.sop_key for study in range(4) for row in database.instances_of(f"study{study}")} == {
        f"sop{n}" for n in range(96)
    }


def test_closing_while_eight_receivers_write_puts_every_instance_into_one_generation(database: Database) -> None:
    def receive(n: int) -> int:
        return arrive(database, n=n)

    closed: list[tuple[str, int]] = []

    def close_and_decide() -> None:
        for study, generation in database.close_complete(quiet_s=0, forced_s=0.001, use_expected=False):
            closed.append((study, generation))
            database.set_study(study, generation, state="routed")

    with ThreadPoolExecutor(8) as pool:
        told = [pool.submit(receive, n) for n in range(80)]
        while not all(future.done() for future in told):
            close_and_decide()
    time.sleep(0.01)
    close_and_decide()
    generations = [future.result() for future in told]
    last = max(generations)
    assert closed == [("s1", n) for n in range(1, last + 1)]  # each closed once, in order
    for n, generation in enumerate(generations):
        assert f"{n:04d}.dcm" in {row.name for row in database.instances_of("s1", generation)}
    assert sum(len(database.instances_of("s1", n)) for n in range(1, last + 1)) == 80
