"""Releases when something goes wrong: a crash, a rejection meanwhile, a damaged reference, a policy that is gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from houses import House, edit, house
from releasing import LINKABILITY, film, judged

from gateway.app.person.retention import DAY_S, Retention
from gateway.app.release import releases
from gateway.app.release.references import FOLDER, read_members
from gateway.gate import ReleaseJudgement
from gateway.settings import Home
from gateway.study import State

ISOLATION: dict[str, Any] = {"record_isolation": {"k": 2}}
NAME = "research-basic-1"


class Crash(BaseException):
    pass


def deliver(made: House, people: range, **how: Any) -> list[str]:
    return [made.job(made.deliver(film(person, **how))).job_key for person in people]


def close(made: House, reason: str = "the month is over") -> str:
    return made.decide("close", NAME, reason=reason)


def states(made: House) -> list[str]:
    return sorted(str(job.state) for job in made.parts.database.jobs_in())


def told(made: House) -> list[str]:
    return [line["event"] for line in made.events() if line["event"].startswith("release_")]


def test_what_the_ledger_says_of_a_release_stands_when_a_crash_repeats_the_audit(
    home: Home, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second audit may see other data (a card was replaced, references went): it must not decide anew."""
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        deliver(made, range(2))
        database = type(made.parts.database)

        def crash(*_given: object) -> None:
            raise Crash

        blocked = ReleaseJudgement((), "record_isolation", "by a leak")
        with monkeypatch.context() as patched:
            patched.setattr(database, "end_audit", crash)
            patched.setattr(releases, "judge_members", lambda *_given: blocked)
            with pytest.raises(Crash):
                close(made)
        made.settle()
        assert told(made) == ["release_closed", "release_blocked"]
        assert states(made) == ["held", "held"]
        (release,) = made.parts.database.releases_in()
        assert (release.state, release.reason, release.at) == ("blocked", "record_isolation", "by a leak")


def test_of_two_processes_that_judge_a_release_the_first_line_in_the_ledger_stands(
    home: Home, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was taken for dead and was not: its line is there when the other one is through."""
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        deliver(made, range(2))

        def meanwhile(*_given: object) -> ReleaseJudgement:
            (release,) = made.parts.database.releases_in()
            waiting = made.parts.database.members(release.serial, State.AWAITING_RELEASE)
            blocked = ReleaseJudgement((), "record_isolation", "by a leak")
            releases.Releasing(made.parts)._tell("release_blocked", release, waiting, blocked)
            return ReleaseJudgement(())

        with monkeypatch.context() as patched:
            patched.setattr(releases, "judge_members", meanwhile)
            close(made)
        made.settle()
        assert told(made) == ["release_closed", "release_blocked"]
        assert states(made) == ["held", "held"]


def test_a_study_that_is_rejected_during_the_audit_does_not_leave_too_few_people(
    home: Home, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        keys = deliver(made, range(2))
        judge = releases.judge_members

        def slow(*given: Any) -> ReleaseJudgement:
            made.parts.database.set_job(keys[0], state=State.REJECTED, reason="reviewer_rejected")
            return judge(*given)

        monkeypatch.setattr(releases, "judge_members", slow)
        assert close(made) == "done"
        assert states(made) == ["awaiting_release", "rejected"]
        (release,) = made.parts.database.releases_in()
        assert (release.state, release.reason) == ("open", "too_few_subjects")
        assert "release_cleared" not in told(made)


def test_references_of_an_open_release_outlive_their_days(home: Home, policies: Path) -> None:
    with house(home, judged(policies, LINKABILITY)) as made:
        deliver(made, range(1))
        files = sorted((home.root / FOLDER).rglob("*.emb"))
        (row,) = made.parts.database.members(1)
        stray = files[0].with_name("0" * 30 + ".emb")  # what no member knows of is purged all the same
        stray.write_bytes(files[0].read_bytes())
        Retention(made.parts).run(row.joined_at + 400 * DAY_S)
        assert sorted((home.root / FOLDER).rglob("*.emb")) == files
        assert len(read_members(home.root, made.parts.keys.master, [row], [])) == 1


def test_a_damaged_reference_blocks_the_release_and_is_named(home: Home, policies: Path) -> None:
    with house(home, judged(policies, LINKABILITY)) as made:
        keys = deliver(made, range(50))
        (row, *_) = made.parts.database.members(1)
        assert row.job_key in keys
        for path in (home.root / FOLDER).rglob("*.emb"):
            path.write_bytes(path.read_bytes()[:-1] + b"\0\0")
        assert close(made) == "done"
        (release,) = made.parts.database.releases_in()
        assert (release.state, release.reason) == ("blocked", "no_identity_evidence")
        assert release.at == f"{row.job_key}: its references are damaged"


def test_a_release_whose_policy_is_gone_is_closed_and_its_studies_begin_again(home: Home, policies: Path) -> None:
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        (key,) = deliver(made, range(1))
        for path in home.policy_snapshots.iterdir():
            path.unlink()
    with house(home, policies) as made:
        assert close(made) == "done"
        assert (made.parts.database.job(key).state, made.parts.database.job(key).reason) == (  # type: ignore[union-attr]
            State.HELD,
            "policy_withdrawn",
        )
        assert made.decide("rerun", key) == "done"
        assert states(made) == ["awaiting_release"]


def test_a_study_that_waits_under_an_older_policy_begins_again_under_the_one_of_now(home: Home, policies: Path) -> None:
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        (old,) = deliver(made, range(1))
    edit(policies, "research-basic", lambda body: body.update(retain={"originals_days": 31}))
    with house(home, policies) as made:
        (new,) = deliver(made, range(1, 2))
        assert [made.parts.database.waiting_people(n) for n in (1, 2)] == [1, 1]  # neither will ever close
        assert made.decide("rerun", old) == "done"
        assert [made.parts.database.waiting_people(n) for n in (1, 2)] == [0, 2]
        assert made.decide("close", "research-basic-2") == "done"
        assert states(made) == ["sent", "sent"]
        assert made.decide("rerun", new) == "not held: it is sent"


def test_the_reason_for_closing_a_release_names_nobody_in_it(home: Home, policies: Path) -> None:
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        deliver(made, range(2), PatientName="Zwyssig^Ottilia")
        assert close(made, "Ottilia Zwyssig wants hers back").startswith("the reason names something")
        assert states(made) == ["awaiting_release"] * 2
        assert "Zwyssig" not in json.dumps(list(made.events()))
        with made.parts.database.transaction() as connection:
            rows = connection.exec_driver_sql("SELECT reason FROM intents").all()
        assert "Zwyssig" not in str(rows)
        assert close(made) == "done"
