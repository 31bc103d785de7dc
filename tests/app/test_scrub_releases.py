"""A policy with `release:` clears and waits; the batch is judged by its people and closes as a whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from scrubbing import Scrubbing, ends, tree, with_release, write_study

from gateway.app.batch.records import Cleared
from gateway.app.batch.scrub import Scrub
from gateway.app.batch.studies import StudyResult
from gateway.app.handover import Handover
from gateway.errors import UsageError
from gateway.ledger import Ledger
from gateway.settings import Home


def only_hand_over(run: Scrub) -> None:
    def forbidden(*_arguments: object) -> None:
        raise AssertionError("it was cleared before")

    run._clear = forbidden  # type: ignore[method-assign,assignment]


def test_a_release_waits_is_judged_by_its_people_and_closes_as_a_whole(home: Home, tmp_path: Path) -> None:
    source = tmp_path / "src"
    for person in (1, 2):
        write_study(source / str(person), person, 2)
    write_study(source / "2b", 2, 1)  # a second study of the same person is no further person
    scrub = Scrubbing(home, tmp_path / "dst", policy=with_release(tmp_path, 3))
    assert ends(scrub(source)) == [("awaiting_release", "release_pending")] * 3
    assert tree(scrub.target) == {}

    results = scrub(source, close_release=True, change=only_hand_over)
    assert ends(results) == [("held", "too_few_subjects")] * 3
    assert {r.at for r in results} == {"2 of 3"}
    assert tree(scrub.target) == {}
    write_study(source / "3", 3, 1)
    results = scrub(source, close_release=True)
    assert ends(results) == [("sent", "")] * 4
    assert len(tree(scrub.target)) == 6
    assert list(home.held.iterdir()) == []
    ledger = Ledger(home.ledger, scrub.keys.ledger)
    (released,) = [line for line in ledger.lines() if line["event"] == "released"]
    assert (released["subjects"], released["min_subjects"], len(released["jobs"])) == (3, 3, 4)
    assert ledger.verify().sound
    again = scrub(source, close_release=True, change=only_hand_over)
    assert all(r.resumed for r in again)


def test_a_release_that_was_cut_off_while_it_was_sent_goes_on_without_being_judged_anew(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three are sent, then the run dies: the third alone would be too few people."""
    source = tmp_path / "src"
    for person in (1, 2, 3):
        write_study(source / str(person), person, 1)
    scrub = Scrubbing(home, tmp_path / "dst", policy=with_release(tmp_path, 3))

    class Cut(BaseException):
        pass

    send, sent = Handover.send, []

    def twice(self: Handover, study: Cleared) -> StudyResult:
        if len(sent) == 2:
            raise Cut
        sent.append(study)
        return send(self, study)

    with monkeypatch.context() as patched:
        patched.setattr(Handover, "send", twice)
        with pytest.raises(Cut):
            scrub(source, close_release=True)
    assert len(tree(scrub.target)) == 2
    assert ends(scrub(source)) == [("sent", "")] * 3
    assert len(tree(scrub.target)) == 3


def test_a_clearance_that_somebody_changed_is_not_used(home: Home, tmp_path: Path) -> None:
    source = tmp_path / "src"
    write_study(source, 1, 1)
    scrub = Scrubbing(home, tmp_path / "dst", policy=with_release(tmp_path, 1))
    (result,) = scrub(source)
    kept = home.held / result.key / "clearance.json"
    candidate = home.held / result.key / "00001.dcm"
    kept.write_text(kept.read_text().replace('"issuer":"gate"', '"issuer":"mine"'))
    candidate.write_bytes(candidate.read_bytes().replace(b"ACME", b"EVIL"))
    assert ends(scrub(source, close_release=True)) == [("sent", "")]
    (data,) = tree(scrub.target).values()
    assert b"EVIL" not in data  # it was cleared anew


def test_a_candidate_that_somebody_changed_is_held(home: Home, tmp_path: Path) -> None:
    source = tmp_path / "src"
    write_study(source, 1, 1)
    scrub = Scrubbing(home, tmp_path / "dst", policy=with_release(tmp_path, 1))
    (result,) = scrub(source)
    candidate = home.held / result.key / "00001.dcm"
    candidate.write_bytes(candidate.read_bytes().replace(b"ACME", b"EVIL"))
    assert ends(scrub(source, close_release=True)) == [("held", "clearance_broken")]
    assert tree(scrub.target) == {}


def test_checks_over_people_are_left_to_a_running_gateway(home: Home, tmp_path: Path) -> None:
    """A batch knows nothing of the releases before it, so it must not clear what only they could tell."""
    write_study(tmp_path / "src", 1, 1)
    path = with_release(tmp_path, 5)
    body = yaml.safe_load(path.read_text())
    body["gate"]["release"] = {"record_isolation": {"k": 5}}
    path.write_text(yaml.safe_dump(body))
    scrub = Scrubbing(home, tmp_path / "dst", policy=path)
    with pytest.raises(UsageError, match="in-releases has checks over people"):
        scrub(tmp_path / "src", close_release=True)
    assert tree(scrub.target) == {}
