"""The closed loop of a study: levels in order, each attempt told and stricter, the first that passes is kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from houses import House, Inline, edit, house
from levelled import LEVELS, veiled
from releasing import film
from scrubbing import Scrubbing, ends

from gateway.app.batch.scrub import Scrub
from gateway.app.policy.registry import registry_of
from gateway.app.review.cases import CaseFiles
from gateway.app.status import read_status
from gateway.database import Database
from gateway.errors import PolicyError
from gateway.ledger import Ledger
from gateway.policy import explain_policy, load_policy
from gateway.settings import Home
from gateway.study import State


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch, home: Home, policies: Path) -> Iterator[House]:
    with house(home, veiled(monkeypatch, home, policies)) as made:
        yield made


def sent(target: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in target.rglob("*.dcm")}


def attempts(made: House, key: str) -> list[tuple[str, Any, Any]]:
    """(event, level, attempt) of the ledger's lines that tell a level."""
    return [(line["event"], line["level"], line["attempt"]) for line in made.events(key) if "level" in line]


def test_the_first_level_that_passes_is_kept_and_every_attempt_is_told(loop: House, target: Path) -> None:
    key = loop.deliver(film(1))
    job = loop.job(key)
    assert (job.state, job.level, job.round) == (State.SENT, 2, 3)
    assert attempts(loop, key) == [("escalated", 1.0, 1), ("escalated", 0.9, 2), ("cleared", 0.0, 3)]
    lines = [line for line in loop.events(key) if "level" in line]
    assert [line.get("next_level") for line in lines] == [0.9, 0.0, None]
    scores = [next(v["scores"] for v in line["verdicts"] if v["check"] == "same_scan") for line in lines]
    # The k-th look holds below k times what the first holds below: another chance to pass by luck asks for more.
    assert [one["hold_below_p"] for one in scores] == pytest.approx([0.02, 0.04, 0.06])
    assert [one["smallest_p"] < one["hold_below_p"] for one in scores] == [True, True, False]
    assert "LEAK" not in json.dumps(lines)
    for level, result in (("1", "escalated"), ("0.9", "escalated"), ("0", "passed")):
        assert loop.metric("deid_level_attempts_total", policy="research-basic", level=level, result=result) == 1
    assert len(sent(target)) == 1
    status = read_status(loop.parts.home, loop.parts.settings)
    assert status.as_json()["levels"] == [{"policy": "research-basic", "level": "0", "studies": 1}]
    case = CaseFiles(loop.parts, lambda call, _hold: call()).case(job.job_key)
    assert case is not None
    assert case.level == "0 of veil, attempt 3 of 3"


def test_a_study_that_no_level_helps_is_held_with_how_many_were_tried(
    monkeypatch: pytest.MonkeyPatch, home: Home, policies: Path, target: Path
) -> None:
    with house(home, veiled(monkeypatch, home, policies, attempts=2)) as made:
        key = made.deliver(film(1))
        job = made.job(key)
        assert (job.state, job.reason, job.held_in, job.level) == (State.HELD, "no_level_passed", "gate", 1)
        assert job.at.startswith("2 of 3 levels tried; 00001 image")
        (line,) = [line for line in made.events(key) if line["event"] == "held"]
        assert (line["reason"], line["attempt"]) == ("no_level_passed", 2)
        # Once more under the same policy is the same level, the same bytes and the same end.
        assert made.decide("rerun", job.job_key) == "done"
        assert (made.job(key).reason, made.job(key).level) == ("no_level_passed", 1)
        assert [level for _, level, _ in attempts(made, key)] == [1.0]
        # Under another policy it begins with the first of its levels.
        edit(policies, "research-basic", lambda body: body["escalate"].update(levels=[0.0], max_attempts=1))
        made.parts.policies.reload()
        assert made.decide("rerun", job.job_key) == "done"
        assert (made.job(key).state, made.job(key).level) == (State.SENT, 0)
    assert len(sent(target)) == 1


@pytest.mark.parametrize("change", [{"Modality": "US"}, {"ImageComments": "to be sent to LEAK0001^ANNA"}])
def test_what_a_stronger_level_cannot_change_holds_at_once(
    monkeypatch: pytest.MonkeyPatch, home: Home, policies: Path, change: dict[str, str]
) -> None:
    """A modality that no card knows is no evidence; a name in the header stays a name, whatever the pixels are."""

    def keep(body: dict[str, Any]) -> None:
        body["header"]["keep"] = {"ImageComments": "a test"}
        body["gate"]["not_assessed"][0]["modality"] = ["CR", "US"]

    with house(home, veiled(monkeypatch, home, policies, change=keep)) as made:
        key = made.deliver(film(1, **change))
        job = made.job(key)
        assert (job.state, job.level) == (State.HELD, 0)
        assert job.reason in {"no_identity_evidence", "residual_identifier"}
        assert attempts(made, key) == []


def test_a_crash_between_attempts_changes_neither_level_nor_bytes(
    monkeypatch: pytest.MonkeyPatch, home: Home, policies: Path, target: Path, tmp_path: Path
) -> None:
    veiled(monkeypatch, home, policies)
    with house(home, policies) as made:  # keys and tables that both runs begin with
        ds = film(1)
    shutil.copytree(home.root, tmp_path / "second")
    with house(home, policies) as made:
        made.deliver(ds)
        expected = sent(target)
        wanted = attempts(made, made.parts.keys.opaque("study", str(ds.StudyInstanceUID)))
    shutil.rmtree(target)
    crashes = iter([True, True, False, False])
    whole = Database.escalate_job

    def dies(self: Database, job: Any) -> bool:
        if next(crashes):
            raise KeyboardInterrupt  # after the ledger's line, before the table's row
        return whole(self, job)

    monkeypatch.setattr(Database, "escalate_job", dies)
    second = Home(tmp_path / "second")
    for left in (1, 1, 0):
        with house(second, policies) as made:
            key = made.receive(ds) if left and not made.parts.database.jobs_in() else ""
            try:
                made.settle()
            except KeyboardInterrupt:
                continue
    key = made.parts.keys.opaque("study", str(ds.StudyInstanceUID))
    assert sent(target) == expected
    assert len(expected) == 1
    with house(second, policies) as made:
        assert attempts(made, key) == wanted


def test_late_images_keep_to_the_level_at_which_their_study_left(loop: House, target: Path) -> None:
    first = film(1)
    key = loop.deliver(first)
    more = film(1, visit=0, StudyInstanceUID=first.StudyInstanceUID, SeriesInstanceUID=first.SeriesInstanceUID)
    loop.deliver(more)
    job = loop.job(key, 2)
    assert (job.state, job.level) == (State.SENT, 2)
    assert [line["level"] for line in loop.events(key) if line["event"] == "cleared"] == [0.0, 0.0]
    assert len([line for line in loop.events(key) if line["event"] == "escalated"]) == 2  # of the first generation
    assert len(sent(target)) == 2


def test_what_left_at_one_level_never_leaves_at_another(loop: House) -> None:
    """Two receivers of one study: a release of the one had it made stronger, while the other has it already."""
    key = loop.receive(film(1))
    for _ in range(7):
        loop.close()
        loop.run_once()
    job = loop.job(key)
    assert (job.state, job.level) == (State.CLEARED, 2)
    assert loop.parts.database.claim_level(replace(job, level=1))
    loop.settle()
    held = loop.job(key)
    assert (held.state, held.reason, held.at) == (State.HELD, "another_level_sent", "level 0")
    assert loop.decide("rerun", job.job_key) == "done"
    assert loop.job(key).level == 1  # and there it is found, and stays
    assert (loop.job(key).state, loop.job(key).reason) == (State.HELD, "no_level_passed")


def test_what_is_issued_anew_begins_at_the_level_that_was_recalled(loop: House, target: Path) -> None:
    key = loop.deliver(film(1))
    job = loop.job(key)
    assert loop.decide("recall:study:113039", key, reason="asked for by the archive").startswith("done")
    assert loop.decide("reissue", job.job_key, reason="asked for by the archive").startswith("done")
    (new,) = [one for one in loop.parts.database.jobs_of(key, 1) if one.issue == 2]
    assert (new.state, new.level) == (State.SENT, 2)
    assert [line["level"] for line in loop.events(key) if line["event"] == "cleared"] == [0.0, 0.0]
    assert len(sent(target)) == 2


@pytest.mark.parametrize(
    ("escalate", "release", "says"),
    [
        ({"levels": [0.9, 0.9]}, {}, "levels go one way"),
        ({"levels": [0.9, 0.5, 0.7]}, {}, "levels go one way"),
        ({"max_attempts": 4}, {}, "max_attempts is larger than the number of levels"),
        ({"stage": "hidden_pixels"}, {}, "escalate names hidden_pixels, which is not under pixels"),
        (None, {"min_subjects": 3, "on_fail": "escalate"}, "on_fail: escalate needs a stage that has levels"),
        ({}, {"same_scan": 0.1}, "at attempt 3 it would hold 30% of studies without a trace"),
    ],
)
def test_a_loop_that_cannot_work_does_not_load(
    monkeypatch: pytest.MonkeyPatch, home: Home, policies: Path, escalate: Any, release: dict[str, Any], says: str
) -> None:
    def change(body: dict[str, Any]) -> None:
        if escalate is None:
            del body["escalate"]
            body["release"] = release
        elif "same_scan" in release:
            body["gate"]["study"]["same_scan"]["hold_below_p"] = release["same_scan"]
        else:
            body["escalate"].update(escalate)

    veiled(monkeypatch, home, policies, change=change)
    with pytest.raises(PolicyError) as error:
        load_policy(policies / "research-basic.yaml", registry_of(home.root / "models"))
    assert says in str(error.value)


def test_a_policy_with_levels_tells_them(monkeypatch: pytest.MonkeyPatch, home: Home, policies: Path) -> None:
    veiled(monkeypatch, home, policies)
    policy = load_policy(policies / "research-basic.yaml", registry_of(home.root / "models"))
    assert policy.attempts == len(LEVELS)
    assert policy.looks == 1  # no release, so none is judged again
    assert policy.as_file()["escalate"]["levels"] == list(LEVELS)
    told = " ".join(explain_policy(policy))
    assert "veil is tried at levels 1, 0.9, 0, at most 3 times; the first that passes is kept" in told


def test_the_command_scrub_goes_the_same_way(
    monkeypatch: pytest.MonkeyPatch, home: Home, policies: Path, tmp_path: Path
) -> None:
    veiled(monkeypatch, home, policies)

    def here(run: Scrub) -> None:
        run.workers.close()
        run.workers = Inline()  # type: ignore[assignment]

    found, gone, late = (tmp_path / name for name in ("found", "gone", "late"))
    ds = film(1)
    for folder, one in ((found, film(2)), (gone, ds), (late, film(1, StudyInstanceUID=ds.StudyInstanceUID))):
        folder.mkdir()
        one.save_as(folder / "one.dcm", enforce_file_format=True)
    run = Scrubbing(home, tmp_path / "out", policies / "research-basic.yaml")
    assert ends(run(gone, change=here)) == [("sent", "")]
    assert ends(run(late, change=here)) == [("sent", "")]
    lines = Ledger(home.ledger, run.keys.ledger).lines()
    told = [(line["event"], line["level"]) for line in lines if "level" in line]
    # The late image keeps to the level at which its study left.
    assert told == [("escalated", 1.0), ("escalated", 0.9), ("cleared", 0.0), ("cleared", 0.0)]
    edit(policies, "research-basic", lambda body: body["escalate"].update(max_attempts=2))
    assert ends(run(found, change=here)) == [("held", "no_level_passed")]
