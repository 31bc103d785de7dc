"""Wishes of other processes: in order, carried out exactly once, and forgotten when they must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.database import Database, Job
from gateway.study import State

PLANT = "ZZSYNTH^LEAKTEST"


def a_job(database: Database) -> str:
    database.record_instance(study_key="s1", name="a.dcm", sop_key="sop1", size_bytes=1)
    database.route_study("s1", 1, [Job("j1", "s1", 1, "r", "p", "policy", "00" * 32, "archive")])
    return "j1"


def test_a_job_changes_together_with_the_intent_that_asked_for_it(database: Database) -> None:
    key = a_job(database)
    serial = database.add_intent(kind="reject", key=key, actor="dpo", reason="wrong body part")
    database.carry_out_on_job(serial, "done", key, {"state": State.REJECTED, "reason": "reviewer_rejected"})
    job, intent = database.job(key), database.intent(serial)
    assert job is not None
    assert intent is not None
    assert (job.state, job.reason, intent.outcome, intent.done_at is None) == (
        State.REJECTED,
        "reviewer_rejected",
        "done",
        False,
    )


def test_neither_changes_when_one_cannot(database: Database) -> None:
    key = a_job(database)
    serial = database.add_intent(kind="reject", key=key, actor="dpo", reason="wrong body part")
    with pytest.raises(Exception, match="no_such_column"):
        database.carry_out_on_job(serial, "done", key, {"state": State.REJECTED, "no_such_column": 1})
    job = database.job(key)
    assert job is not None
    assert job.state == State.QUEUED
    assert [intent.serial for intent in database.open_intents()] == [serial]


def test_a_study_without_jobs_changes_together_with_its_intent(database: Database) -> None:
    database.record_instance(study_key="s1", name="a.dcm", sop_key="sop1", size_bytes=1)
    serial = database.add_intent(kind="rerun", key="s1.1", actor="dpo", reason="a route was added")
    database.carry_out_on_study(serial, "done", "s1", 1, {"state": "received", "round": 2})
    study = database.study("s1", 1)
    assert study is not None
    assert (study.round, study.changed_at is not None) == (2, True)
    assert database.open_intents() == []


def test_only_intents_beyond_the_last_one_seen_are_given(database: Database) -> None:
    serials = [database.add_intent(kind="reject", key="j", actor="dpo", reason="why not") for _ in range(3)]
    assert [intent.serial for intent in database.open_intents(after=serials[0])] == serials[1:]


def test_a_withheld_reason_is_gone_from_the_files_too(tmp_path: Path) -> None:
    database = Database.in_home(tmp_path / "database.sqlite")
    serials = [
        database.add_intent(kind="reject", key="j", actor="dpo", reason=f"because of {PLANT} {n}") for n in range(50)
    ]
    assert any(PLANT.encode() in path.read_bytes() for path in tmp_path.iterdir())
    for serial in serials:
        database.withhold_intent(serial, "the reason names somebody")
    intent = database.intent(serials[0])
    assert intent is not None
    assert (intent.reason, intent.outcome) == ("", "the reason names somebody")
    assert [path.name for path in tmp_path.iterdir() if PLANT.encode() in path.read_bytes()] == []
    database.close()
