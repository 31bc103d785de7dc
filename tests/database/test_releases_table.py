"""Releases in the tables, on SQLite and PostgreSQL: who joins which, looks, and ends in one transaction."""

from __future__ import annotations

import threading

import pytest

from gateway.database import Database, Job, JobRow, NewMember
from gateway.study import State

WAITING = {"state": State.AWAITING_RELEASE}


def job(database: Database, number: int, *, digest: str = "a" * 64, destination: str = "archive") -> JobRow:
    """A job that was routed."""
    key = f"j{number}"
    database.record_instance(study_key=f"s{number}", name="1.dcm", sop_key=f"o{number}", size_bytes=1)
    database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
    database.route_study(f"s{number}", 1, [Job(key, f"s{number}", 1, "r", "demo", "lung", digest, destination)])
    row = database.job(key)
    assert row is not None
    return row


def join(database: Database, number: int, person: str = "", **how: str) -> str:
    row = job(database, number, **how)
    return database.join_release(row, WAITING, NewMember(person or f"p{number}", "day", f"j{number}/r1")).name


def end(database: Database, serial: int, becomes: str, keys: list[str], **of_jobs: object) -> None:
    database.close_release(serial)
    database.end_audit(serial, {"state": becomes}, keys, of_jobs or {"state": State.CLEARED})


def test_one_open_release_for_each_policy_digest_and_destination(database: Database) -> None:
    names = [
        join(database, 1),
        join(database, 2),
        join(database, 3, digest="b" * 64),
        join(database, 4, destination="second"),
    ]
    assert names == ["lung-1", "lung-1", "lung-2", "lung-3"]
    assert [row.job_key for row in database.members(1)] == ["j1", "j2"]
    first = database.job("j1")
    assert first is not None
    assert first.state == State.AWAITING_RELEASE


def test_joining_again_changes_nothing(database: Database) -> None:
    row = job(database, 1)
    for _ in range(2):
        database.join_release(row, WAITING, NewMember("p", "day", "j1/r1"))
    assert len(database.members(1)) == 1


def test_a_closed_release_takes_nobody(database: Database) -> None:
    join(database, 1)
    assert database.close_release(1)
    assert not database.close_release(1)
    assert join(database, 2) == "lung-2"


def test_people_are_counted_once_and_only_while_they_wait(database: Database) -> None:
    for number, person in ((1, "a"), (2, "a"), (3, "b")):
        join(database, number, person)
    assert database.waiting_people(1) == 2
    database.set_job("j3", state=State.REJECTED)
    assert database.waiting_people(1) == 1


def test_an_audit_ends_once_and_leaves_alone_what_no_longer_waits(database: Database) -> None:
    for number in (1, 2):
        join(database, number)
    database.set_job("j2", state=State.REJECTED)
    end(database, 1, "cleared", ["j1", "j2"])
    end(database, 1, "blocked", ["j1"], state=State.HELD)
    states = [row.state for key in ("j1", "j2") if (row := database.job(key)) is not None]
    assert states == [State.CLEARED, State.REJECTED]
    release = database.release(1)
    assert release is not None
    assert (release.state, release.looks) == ("cleared", 1)
    assert not database.all_sent(1)
    database.set_job("j1", state=State.HELD)
    assert not database.all_sent(1)
    database.set_job("j1", state=State.SENT)
    assert database.all_sent(1)


def test_earlier_tries_with_the_same_people_are_looks(database: Database) -> None:
    join(database, 1, "a")
    end(database, 1, "blocked", ["j1"], state=State.HELD)
    row = database.job("j1")
    assert row is not None
    database.join_release(row, WAITING, NewMember("a", "day", "j1/r2"))
    second = database.release_named("lung-2")
    assert second is not None
    assert (database.blocked_before(second), database.looks_at(second)) == (1, 1)
    assert database.release_of("j1") == second
    join(database, 5, "stranger", digest="c" * 64)
    other = database.release_named("lung-3")
    assert other is not None
    assert (database.blocked_before(other), database.looks_at(other)) == (0, 0)


def test_a_policy_that_was_edited_gets_no_fresh_look_at_the_same_people(database: Database) -> None:
    """A gate may be tried again after tuning on fresh people only, or by spending alpha (facts.md 4.4)."""
    join(database, 1, "a")
    end(database, 1, "blocked", ["j1"], state=State.HELD)
    join(database, 2, "a", digest="b" * 64)
    second = database.release_named("lung-2")
    assert second is not None
    assert (database.blocked_before(second), database.looks_at(second)) == (1, 1)


def test_what_was_released_before_counts_for_the_next(database: Database) -> None:
    for number in (1, 2):
        join(database, number)
    end(database, 1, "cleared", ["j1", "j2"])
    join(database, 3, digest="b" * 64)  # another version of the policy, by the same name
    second = database.release_named("lung-2")
    assert second is not None
    before = database.released_before(second)
    assert [row.job_key for row in before] == ["j1", "j2"]
    database.references_removed(before[0])
    database.set_job("j2", state=State.REJECTED)
    assert database.released_before(second) == []


def test_many_that_join_at_once_open_one_release(database: Database) -> None:
    rows = [job(database, number) for number in range(6)]
    threads = [
        threading.Thread(
            target=database.join_release, args=(row, WAITING, NewMember(row.job_key, "day", f"{row.job_key}/r1"))
        )
        for row in rows
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [row.name for row in database.releases_in()] == ["lung-1"]
    assert len(database.members(1)) == 6


@pytest.mark.parametrize("name", ["", "lung", "lung-", "lung-x", "lung-0", "-1", "lung-1234567890"])
def test_a_name_that_is_none_finds_nothing(database: Database, name: str) -> None:
    join(database, 1)
    assert database.release_named(name) is None
