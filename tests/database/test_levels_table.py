"""At which level a study leaves is written once, on both databases, and binds what follows."""

from __future__ import annotations

from dataclasses import replace

from gateway.database import Database, JobRow

JOB = JobRow("j1", "s1", 1, "films", "demo", "cxr", "ab" * 32, "archive")


def test_the_first_to_leave_decides_and_another_level_is_refused(database: Database) -> None:
    assert database.standing_level(JOB) is None
    assert database.claim_level(replace(JOB, level=2))
    assert database.claim_level(replace(JOB, job_key="j2", level=2))  # another receiver, or the same one again
    assert not database.claim_level(replace(JOB, job_key="j3", level=1))
    assert database.standing_level(JOB) == (2, True)
    assert database.standing_level(replace(JOB, project="other")) is None


def test_another_issue_begins_there_and_may_be_stronger(database: Database) -> None:
    assert database.claim_level(replace(JOB, level=1))
    again = replace(JOB, issue=2)
    assert database.standing_level(again) == (1, False)
    assert database.claim_level(replace(again, level=2))
    assert database.standing_level(JOB) == (2, True)  # a late image of the first issue follows the last one
    assert not database.claim_level(replace(JOB, level=1))


def test_levels_are_those_of_a_policy(database: Database) -> None:
    assert database.claim_level(replace(JOB, level=3))
    other = replace(JOB, policy_digest="cd" * 32)
    assert database.standing_level(other) is None
    assert database.claim_level(other)
    assert database.standing_level(other) == (0, True)
