"""Originals leave when their policy says so, and never those of a study that still has work to do. Time is given."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from houses import House, add_policy, edit, house, late, route_all, route_nobody, study

from gateway.app.person.retention import DAY_S, NEVER, Retention
from gateway.settings import Home
from gateway.study import State


@dataclass
class Clock:
    """The house some days from now."""

    made: House

    def after(self, days: float) -> bool:
        return Retention(self.made.parts).run(time.time() + days * DAY_S)

    def originals(self, key: str = "") -> int:
        return len(list((self.made.parts.spool.root / key).rglob("*.dcm")))


@pytest.fixture
def clock(home: Home, policies: Path) -> Iterator[Clock]:
    """research-basic keeps originals 30 days and held studies 90."""
    with house(home, policies) as made:
        yield Clock(made)


def retain(body: dict[str, object], **days: int) -> None:
    body["retain"] = {"originals_days": 30, "held_days": 90, "references_days": 365, **days}


def test_originals_of_a_sent_study_leave_after_originals_days(clock: Clock) -> None:
    key = clock.made.deliver(*study(3))
    for days in (0, 1.5, 29.9):
        assert not clock.after(days)
        assert clock.originals(key) == 3
    assert not clock.after(30.1)
    assert clock.originals(key) == 0
    line = clock.made.events(key)[-1]
    assert (line["event"], line["instances"]) == ("originals_removed", {"use": 3})
    assert all(row.removed_at is not None for row in clock.made.parts.database.instances_of(key))
    assert clock.made.ends(key) == [("research-archive", "sent", "")]


def test_removing_is_told_once_and_done_once(clock: Clock) -> None:
    key = clock.made.deliver(*study())
    for _ in range(3):
        clock.after(31)
    assert [line["event"] for line in clock.made.events(key)].count("originals_removed") == 1


def test_what_was_removed_is_still_known_as_a_duplicate_or_a_conflict(clock: Clock, target: Path) -> None:
    (ds,) = study()
    key = clock.made.deliver(ds)
    clock.after(31)
    sent = {path.name: path.read_bytes() for path in target.rglob("*.dcm")}
    clock.made.deliver(ds)
    assert clock.made.parts.database.generations(key)[-1].state == "duplicate"
    assert clock.originals(key) == 1
    clock.after(0)
    clock.after(1.1)
    assert clock.originals(key) == 1  # its study ended just now, as far as the given time tells
    clock.after(31)
    assert clock.originals(key) == 0
    ds.PixelData = bytes(reversed(ds.PixelData))
    clock.made.deliver(ds)
    assert clock.made.ends(key, 3) == [("", "held", "conflicting_instance")]
    clock.made.deliver(late(ds))
    assert clock.made.ends(key, 4) == [("research-archive", "sent", "")]
    assert {path.name: path.read_bytes() for path in target.rglob("*.dcm") if path.name in sent} == sent


def test_a_sweep_at_the_start_does_not_mind_removed_files(clock: Clock) -> None:
    key = clock.made.deliver(*study())
    clock.after(31)
    parts = clock.made.parts
    assert parts.spool.sweep(parts.database.spooled_names()) == 0
    assert not (parts.spool.root / key).exists()


def test_a_held_job_is_given_up_after_held_days_and_its_files_go_with_it(clock: Clock, policies: Path) -> None:
    edit(policies, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    clock.made.parts.policies.reload()
    (ds,) = study()
    key = clock.made.deliver(ds)
    job = clock.made.job(key)
    assert clock.made.ends(key) == [("research-archive", "held", "not_assessed")]
    candidates = clock.made.parts.home.work / job.job_key
    clock.after(89.9)
    assert (clock.originals(key), len(list(candidates.iterdir()))) == (1, 1)
    clock.after(90.1)
    assert clock.made.ends(key) == [("research-archive", "rejected", "retention_expired")]
    assert (clock.originals(key), candidates.exists()) == (0, False)
    rejected, removed = clock.made.events(key)[-2:]
    assert (rejected["event"], rejected["reason"], rejected["job"]) == ("rejected", "retention_expired", job.job_key)
    assert rejected["policy_digest"] == job.policy_digest
    assert removed["event"] == "originals_removed"
    assert clock.made.metric("deid_jobs_decided_total", state="rejected", reason="retention_expired") == 1
    # It counts as never received: what comes again begins anew.
    clock.made.deliver(ds)
    assert clock.made.ends(key, 2) == [("research-archive", "held", "not_assessed")]


def test_a_study_without_jobs_follows_the_defaults(clock: Clock, policies: Path) -> None:
    route_nobody(policies)
    edit(policies, "research-basic", lambda body: retain(body, originals_days=300, held_days=900))
    clock.made.parts.policies.reload()
    held, rejected = clock.made.deliver(*study()), clock.made.deliver(*study())
    clock.made.decide("reject", f"{rejected}.1", reason="wrong body part")
    clock.after(30.1)
    assert (clock.originals(held), clock.originals(rejected)) == (1, 0)
    clock.after(90.1)
    assert clock.originals(held) == 0
    assert clock.made.ends(held) == [("", "rejected", "retention_expired")]
    assert [line["event"] for line in clock.made.events(held)] == ["held", "rejected", "originals_removed"]


def test_the_longest_of_several_policies_decides_and_a_job_that_is_not_over_keeps_all(
    clock: Clock, policies: Path, tmp_path: Path
) -> None:
    add_policy(policies, "longer", lambda body: retain(body, originals_days=60))
    edit(policies, "destinations", lambda body: body.update(second=f"folder:{tmp_path}/second"))
    route_all(policies, ("one", "research-basic", "research-archive"), ("two", "longer", "second"))
    clock.made.parts.policies.reload()
    key = clock.made.deliver(*study())
    assert [end[1] for end in clock.made.ends(key)] == ["sent", "sent"]
    clock.after(59.9)
    assert clock.originals(key) == 1
    clock.after(60.1)
    assert clock.originals(key) == 0


@pytest.mark.parametrize("state", [State.QUEUED, State.SCRUBBED, State.CLEARED, State.AWAITING_RELEASE])
def test_nothing_of_a_job_that_waits_is_touched(clock: Clock, policies: Path, tmp_path: Path, state: State) -> None:
    edit(policies, "destinations", lambda body: body.update(second=f"folder:{tmp_path}/second"))
    route_all(policies, ("one", "research-basic", "research-archive"), ("two", "research-basic", "second"))
    clock.made.parts.policies.reload()
    key = clock.made.deliver(*study())
    waiting = clock.made.job(key, destination="second")
    clock.made.parts.database.set_job(waiting.job_key, state=state)
    (clock.made.parts.home.work / waiting.job_key / "00001.dcm").touch()
    clock.after(3000)
    assert clock.originals(key) == 1
    assert (clock.made.parts.home.work / waiting.job_key / "00001.dcm").exists()
    assert clock.made.job(key, destination="second").state == state


def test_a_held_job_beside_one_that_waits_is_given_up_and_the_originals_stay(
    clock: Clock, policies: Path, tmp_path: Path
) -> None:
    edit(policies, "destinations", lambda body: body.update(second=f"folder:{tmp_path}/second"))
    route_all(policies, ("one", "research-basic", "research-archive"), ("two", "research-basic", "second"))
    clock.made.parts.policies.reload()
    key = clock.made.deliver(*study())
    one, two = clock.made.job(key, destination="research-archive"), clock.made.job(key, destination="second")
    clock.made.parts.database.set_job(one.job_key, state=State.HELD, reason="gave_up", held_in="forward")
    clock.made.parts.database.set_job(two.job_key, state=State.AWAITING_RELEASE)
    clock.after(91)
    assert clock.made.ends(key) == [
        ("research-archive", "rejected", "retention_expired"),
        ("second", "awaiting_release", ""),
    ]
    assert clock.originals(key) == 1


def test_an_open_and_an_undecided_study_are_not_touched(clock: Clock) -> None:
    opened = clock.made.receive(*study())
    clock.after(3000)
    assert clock.originals(opened) == 1
    clock.made.close()
    clock.after(3000)
    assert clock.originals(opened) == 1


def test_generations_leave_on_their_own(clock: Clock, policies: Path) -> None:
    (ds,) = study()
    key = clock.made.deliver(ds)
    other = late(ds, PatientID="LEAK0002")
    clock.made.deliver(other)
    assert clock.made.ends(key, 2) == [("", "held", "mixed_patients")]
    clock.after(31)
    (left,) = (clock.made.parts.spool.root / key).iterdir()
    assert left.name == clock.made.parts.database.instances_of(key, 2)[0].name


def test_a_policy_whose_snapshot_is_gone_follows_the_defaults(clock: Clock, policies: Path) -> None:
    edit(policies, "research-basic", lambda body: retain(body, originals_days=300))
    clock.made.parts.policies.reload()
    key = clock.made.deliver(*study())
    for snapshot in clock.made.parts.home.policy_snapshots.iterdir():
        snapshot.unlink()
    clock.made.parts.policies._snapshot_text.cache_clear()
    clock.after(31)
    assert clock.originals(key) == 0


def test_much_work_is_done_in_pieces(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.app.person.retention.AT_ONCE", 2)
    for _ in range(5):
        clock.made.deliver(*study())
    assert [clock.after(31) for _ in range(3)] == [True, True, False]
    assert clock.originals() == 0


@pytest.mark.parametrize("step", ["append", "unlink", "mark_removed"])
def test_a_crash_between_any_two_steps_is_mended_by_the_next_run(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    key = clock.made.deliver(*study(2))
    parts = clock.made.parts
    where = {"append": type(parts.ledger), "unlink": Path, "mark_removed": type(parts.database)}[step]

    def crash(*_arguments: object, **_more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, step, crash)
        with pytest.raises(KeyboardInterrupt):
            clock.after(31)
    clock.after(31)
    assert clock.originals(key) == 0
    assert [line["event"] for line in clock.made.events(key)].count("originals_removed") == 1
    assert all(row.removed_at is not None for row in parts.database.instances_of(key))


@pytest.mark.parametrize("step", ["append", "set_job", "mark_removed"])
def test_giving_up_survives_a_crash_too(
    clock: Clock, policies: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    edit(policies, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    clock.made.parts.policies.reload()
    key = clock.made.deliver(*study())
    parts = clock.made.parts
    where = type(parts.ledger) if step == "append" else type(parts.database)

    def crash(*_arguments: object, **_more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, step, crash)
        with pytest.raises(KeyboardInterrupt):
            clock.after(91)
    clock.after(91)
    assert clock.originals(key) == 0
    assert clock.made.ends(key) == [("research-archive", "rejected", "retention_expired")]
    assert [line["event"] for line in clock.made.events(key)][-2:] == ["rejected", "originals_removed"]


def test_what_a_restore_brought_back_goes_again(clock: Clock, tmp_path: Path) -> None:
    key = clock.made.deliver(*study(2))
    folder = clock.made.parts.spool.root / key
    backup = {path: path.read_bytes() for path in folder.iterdir()}
    clock.after(31)
    folder.mkdir(exist_ok=True)
    for path, data in backup.items():
        path.write_bytes(data)
    Retention(clock.made.parts).after_restore()
    assert clock.originals(key) == 0
    for path, data in backup.items():
        path.write_bytes(data)
    spool = clock.made.parts.spool
    assert spool.sweep(clock.made.parts.database.spooled_names()) == 2  # as at a start


def test_a_person_may_ask_for_it_now(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    key = clock.made.deliver(*study(2))
    assert clock.made.decide("retain", "") == "done: nothing was due"
    monkeypatch.setattr("gateway.app.person.retention.DAY_S", -1.0)
    assert clock.made.decide("retain", "") == "done: 2 originals"
    assert clock.originals(key) == 0


def test_what_is_due_is_told_and_nothing_is_changed(clock: Clock, policies: Path) -> None:
    edit(policies, "research-basic", lambda body: retain(body, originals_days=20))
    clock.made.parts.policies.reload()
    sent = clock.made.deliver(*study())
    edit(policies, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    clock.made.parts.policies.reload()
    held = clock.made.deliver(*study(patient="LEAK0002"))
    edit(policies, "research-basic", lambda body: body.update(release={"min_subjects": 5}))
    now = time.time()
    found = {(one.kind, one.key): one.at for one in Retention(clock.made.parts).due()}
    job = clock.made.job(held)
    assert set(found) == {("originals", f"{sent}.1"), ("held", job.job_key), ("originals", f"{held}.1")}
    assert found["originals", f"{sent}.1"] == pytest.approx(now + 20 * DAY_S, abs=60)
    assert found["held", job.job_key] == pytest.approx(now + 90 * DAY_S, abs=60)
    assert found["originals", f"{held}.1"] == NEVER
    assert clock.originals() == 2


def test_an_open_release_keeps_its_originals_and_references(clock: Clock, policies: Path) -> None:
    edit(policies, "research-basic", lambda body: body.update(release={"min_subjects": 2}))
    clock.made.parts.policies.reload()
    key = clock.made.deliver(*study())
    clock.after(3000)
    assert (clock.originals(key), clock.made.ends(key)[0][1]) == (1, "awaiting_release")
    (due,) = Retention(clock.made.parts).due()
    assert (due.kind, due.at) == ("originals", NEVER)


def test_what_scrub_held_goes_after_held_days(clock: Clock) -> None:
    folder = clock.made.parts.home.held / ("ab" * 12)
    folder.mkdir()
    note = {"state": "held", "reason": "residual_text", "at": "", "policy": "x", "policy_digest": "0", "findings": []}
    (folder / "held.json").write_text(json.dumps(note))
    (folder / "00001.dcm").write_bytes(b"x")
    clock.after(89)
    assert folder.exists()
    (due,) = Retention(clock.made.parts).due()
    assert (due.kind, due.key) == ("scrubbed", folder.name)
    clock.after(91)
    assert not folder.exists()
    assert clock.made.events()[-1]["event"] == "held_removed"


def test_a_recalled_and_a_shadowed_study_are_over(clock: Clock, policies: Path) -> None:
    key = clock.made.deliver(*study())
    clock.made.decide("recall:study:113039", key)
    edit(policies, "research-basic", lambda body: body.update(forward={"shadow": True}))
    clock.made.parts.policies.reload()
    other = clock.made.deliver(*study(patient="LEAK0002"))
    assert clock.made.ends(other)[0][1] == "shadowed"
    clock.after(31)
    assert clock.originals() == 0
