"""What retention is shown: decided generations whose originals are still there, with the jobs that matter."""

from __future__ import annotations

import time

from gateway.database import Database, Job, Retained, RetainedJob
from gateway.study import State


def arrive(database: Database, study: str, *names: str) -> None:
    for name in names:
        database.record_instance(study_key=study, name=name, sop_key=f"sop-{name}", size_bytes=1)
    database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)


def job(key: str, study: str, generation: int = 1) -> Job:
    return Job(key, study, generation, "route", "project", "policy", "ab" * 32, "archive")


def soon() -> float:
    return time.time() + 60


def test_open_and_undecided_generations_are_not_shown(database: Database) -> None:
    database.record_instance(study_key="open", name="a", sop_key="s", size_bytes=1)
    assert database.retained(before=soon()) == []
    arrive(database, "undecided", "b")
    assert database.retained(before=soon()) == []


def test_a_decided_generation_is_shown_with_its_jobs_until_its_files_are_removed(database: Database) -> None:
    arrive(database, "s1", "a", "b")
    database.route_study("s1", 1, [job("j2", "s1"), job("j1", "s1")])
    database.set_job("j1", state=State.HELD, reason="gave_up", round=3)
    (found,) = database.retained(before=soon())
    rows = database.instances_of("s1")
    updated = [database.job(key).updated_at for key in ("j1", "j2")]  # type: ignore[union-attr]
    study = database.study("s1", 1)
    assert study is not None
    assert found == Retained(
        study_key="s1",
        generation=1,
        state="routed",
        round=1,
        changed_at=study.changed_at or 0.0,
        last_serial=rows[-1].serial,
        jobs=(
            RetainedJob("j1", State.HELD, "gave_up", 3, "ab" * 32, updated[0]),
            RetainedJob("j2", State.QUEUED, "", 1, "ab" * 32, updated[1]),
        ),
    )
    database.mark_removed([rows[0].serial])
    assert len(database.retained(before=soon())) == 1
    database.mark_removed([row.serial for row in rows])
    assert database.retained(before=soon()) == []
    assert all(row.removed_at is not None for row in database.instances_of("s1"))


def test_what_changed_after_the_moment_is_not_shown_and_the_oldest_comes_first(database: Database) -> None:
    for study in ("s1", "s2", "s3"):
        arrive(database, study, f"{study}-a")
        database.set_study(study, 1, state="held", reason="no_route")
        time.sleep(0.02)
    assert [found.study_key for found in database.retained(before=soon())] == ["s1", "s2", "s3"]
    assert all(found.jobs == () for found in database.retained(before=soon()))
    second = database.study("s2", 1)
    assert second is not None
    assert [found.study_key for found in database.retained(before=second.changed_at or 0.0)] == ["s1"]


def test_generations_are_shown_apart(database: Database) -> None:
    arrive(database, "s1", "a")
    database.route_study("s1", 1, [job("j1", "s1")])
    arrive(database, "s1", "b")
    database.route_study("s1", 2, [job("j2", "s1", 2)])
    shown = database.retained(before=soon())
    assert [(found.generation, [one.job_key for one in found.jobs]) for found in shown] == [(1, ["j1"]), (2, ["j2"])]
