"""Jobs, what they sent, and what other processes want."""

from __future__ import annotations

import time

import pytest
from sqlalchemy.exc import IntegrityError

from gateway.database import Database, Job
from gateway.study import FINAL_STATES, Receipt, State


def make(key: str = "j1", study: str = "s1", generation: int = 1) -> Job:
    return Job(
        job_key=key,
        study_key=study,
        generation=generation,
        route="ct",
        project="lung",
        policy="research-basic",
        policy_digest="ab" * 32,
        destination="archive",
        subject="6S6GV9YQ2FF1XFS3",
    )


def add(database: Database, job: Job) -> bool:
    """Receive, close and route a study with this one job."""
    if job.generation > len(database.generations(job.study_key)):
        name = f"{job.generation:04d}.dcm"
        got = database.record_instance(study_key=job.study_key, name=name, sop_key="sop", size_bytes=1)
        assert got == job.generation
        database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
    return database.route_study(job.study_key, job.generation, [job])


def test_a_job_begins_queued_with_all_that_routing_decided(database: Database) -> None:
    assert add(database, make())
    row = database.job("j1")
    assert row is not None
    assert (row.state, row.reason, row.attempt, row.round) == (State.QUEUED, "", 0, 1)
    assert {name: getattr(row, name) for name in Job.__slots__} == {
        name: getattr(make(), name) for name in Job.__slots__
    }
    assert database.job("another") is None


def test_a_study_is_routed_to_all_its_targets_once(database: Database) -> None:
    database.record_instance(study_key="s1", name="0001.dcm", sop_key="sop", size_bytes=1)
    database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
    assert database.route_study("s1", 1, [make("j1"), make("j2")])
    database.set_job("j1", state=State.SENT)
    assert not database.route_study("s1", 1, [make("j1"), make("j2"), make("j3")])  # a replayed leg
    assert [(job.job_key, job.state) for job in database.jobs_of("s1", 1)] == [
        ("j1", State.SENT),
        ("j2", State.QUEUED),
    ]
    study = database.study("s1", 1)
    assert study is not None
    assert study.state == "routed"
    assert study.routed_at is not None
    assert database.unrouted() == []


def test_routing_fails_whole_or_not_at_all(database: Database) -> None:
    add(database, make("taken", "s2"))
    database.record_instance(study_key="s1", name="0001.dcm", sop_key="sop", size_bytes=1)
    database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
    with pytest.raises(IntegrityError):
        database.route_study("s1", 1, [make("j1"), make("taken")])
    assert database.jobs_of("s1", 1) == []
    assert [row.study_key for row in database.unrouted()] == ["s1"]


def test_a_study_that_never_came_is_not_routed(database: Database) -> None:
    assert not database.route_study("s1", 1, [make()])
    assert database.jobs_in() == []


def test_jobs_are_found_by_state_oldest_first_and_by_study(database: Database) -> None:
    for n, state in enumerate([State.SENT, State.HELD, State.QUEUED, State.HELD]):
        assert add(database, make(f"j{n}", f"s{n % 2}", 1 + n // 2))
        database.set_job(f"j{n}", state=state, reason="no_route" if state is State.HELD else "")
        time.sleep(0.01)
    assert [job.job_key for job in database.jobs_in()] == ["j0", "j1", "j2", "j3"]
    assert [job.job_key for job in database.jobs_in(State.HELD)] == ["j1", "j3"]
    assert [job.job_key for job in database.jobs_in(State.QUEUED, State.SENT)] == ["j0", "j2"]
    assert [job.job_key for job in database.jobs_of("s1", 2)] == ["j3"]
    assert database.count_states() == {("sent", ""): 1, ("queued", ""): 1, ("held", "no_route"): 2}


def test_a_job_is_unfinished_until_it_is_final_or_waits_for_its_release(database: Database) -> None:
    for state in State:
        add(database, make(state.value, state.value))
        database.set_job(state.value, state=state)
    unfinished = {job.state for job in database.unfinished_jobs()}
    assert unfinished == set(State) - FINAL_STATES - {State.AWAITING_RELEASE}
    assert unfinished == {State.RECEIVED, State.QUEUED, State.SCRUBBED, State.CLEARED}


def test_a_change_moves_the_time_of_the_last_change(database: Database) -> None:
    add(database, make())
    before = database.job("j1")
    time.sleep(0.02)
    database.set_job("j1", at="(0010,0010)", held_in="gate", attempt=3, round=2)
    after = database.job("j1")
    assert before is not None
    assert after is not None
    assert (after.at, after.held_in, after.attempt, after.round) == ("(0010,0010)", "gate", 3, 2)
    assert after.created_at == before.created_at
    assert after.updated_at > before.updated_at


def test_receipts_add_up_and_the_last_word_stands(database: Database) -> None:
    database.record_receipt("j1", Receipt("0001", -1, "failure"))
    database.record_receipt("j1", Receipt("0001", 0xA700, "failure", attempts=2))
    database.record_receipt("j1", Receipt("0001", 0x0000, "success"))
    database.record_receipt("j1", Receipt("0002", 0xB000, "warning"))
    database.record_receipt("j2", Receipt("0001", 0xC000, "failure"))
    assert database.receipts("j1") == {
        "0001": Receipt("0001", 0x0000, "success", attempts=4),
        "0002": Receipt("0002", 0xB000, "warning", attempts=1),
    }
    assert database.receipts("j2") == {"0001": Receipt("0001", 0xC000, "failure")}
    assert database.receipts("j3") == {}


def test_wishes_are_carried_out_in_order_and_once(database: Database) -> None:
    first = database.add_intent(kind="release", key="j1", actor="dpo", reason="looked at it")
    second = database.add_intent(kind="reject", key="j2", actor="dpo", reason="wrong patient")
    assert first < second
    assert [(i.serial, i.kind, i.key) for i in database.open_intents()] == [
        (first, "release", "j1"),
        (second, "reject", "j2"),
    ]
    database.finish_intent(first, "released")
    assert [i.serial for i in database.open_intents()] == [second]
    done = database.intent(first)
    assert done is not None
    assert (done.outcome, done.actor, done.reason) == ("released", "dpo", "looked at it")
    assert done.done_at is not None
    assert database.intent(second + 1) is None


def test_studies_that_wait_for_the_machine_are_counted_once(database: Database) -> None:
    assert database.count_waiting() == 0
    for study in ("sent", "released", "held", "two targets"):
        add(database, make(study, study))
    database.route_study("two targets", 1, [make("two targets", "two targets"), make("second", "two targets")])
    assert database.count_waiting() == 4
    for job, state in (("sent", State.SENT), ("released", State.AWAITING_RELEASE), ("held", State.HELD)):
        database.set_job(job, state=state)
    assert database.count_waiting() == 1
    for study in ("open", "unrouted", "sent"):  # the last one's next generation
        database.record_instance(study_key=study, name="9.dcm", sop_key="late", size_bytes=1)
    assert database.count_waiting() == 4
    database.set_study("unrouted", 1, state="held", reason="no_route")
    assert database.count_waiting() == 3
