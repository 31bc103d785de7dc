"""Running `scrub` again: what is decided is not done twice, what was mended is, and what was cut off goes on."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pydicom
import pytest
from scrubbing import Scrubbing, ends, process, slice_of, tree, write_study

import gateway.app.batch.journal
from gateway.app.batch.journal import Decision, Journal
from gateway.app.batch.scrub import Scrub
from gateway.errors import EnvironmentFault
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys
from gateway.settings import Home


@pytest.fixture
def scrub(home: Home, tmp_path: Path) -> Scrubbing:
    return Scrubbing(home, tmp_path / "dst")


def forbid_work(run: Scrub) -> None:
    def forbidden(*_arguments: object) -> None:
        raise AssertionError("this was decided before")

    run._clear = forbidden  # type: ignore[method-assign,assignment]


def test_what_was_decided_is_not_done_again(scrub: Scrubbing, tmp_path: Path) -> None:
    write_study(tmp_path / "src" / "a", 1, 2)
    write_study(tmp_path / "src" / "b", 2, 1, Modality="US")
    first = scrub(tmp_path / "src")
    assert ends(first) == [("held", "not_assessed"), ("sent", "")]
    assert not any(r.resumed for r in first)
    before, ledger = tree(scrub.target), scrub.home.ledger.read_bytes()
    again = scrub(tmp_path / "src", change=forbid_work)
    assert ends(again) == ends(first)
    assert all(r.resumed for r in again)
    assert [r.sent for r in again] == [r.sent for r in first]
    assert tree(scrub.target) == before
    assert scrub.home.ledger.read_bytes() == ledger


def test_what_is_new_is_done_beside_what_was_decided(scrub: Scrubbing, tmp_path: Path) -> None:
    write_study(tmp_path / "src" / "a", 1, 2)
    scrub(tmp_path / "src")
    write_study(tmp_path / "src" / "b", 2, 1)
    assert sorted((r.resumed, r.sent) for r in scrub(tmp_path / "src")) == [(False, 1), (True, 2)]


def test_a_late_instance_joins_its_study_under_the_same_mapping(scrub: Scrubbing, tmp_path: Path) -> None:
    _, second = write_study(tmp_path / "src", 1, 2)
    second.rename(tmp_path / "later.dcm")
    scrub(tmp_path / "src")
    before = tree(scrub.target)
    (tmp_path / "later.dcm").rename(second)
    (result,) = scrub(tmp_path / "src")
    assert (result.resumed, result.sent) == (False, 2)
    assert before.items() < tree(scrub.target).items()
    assert len({name.split("/")[0] for name in tree(scrub.target)}) == 1


def test_files_that_somebody_took_from_the_target_come_again_with_the_same_bytes(
    scrub: Scrubbing, tmp_path: Path
) -> None:
    write_study(tmp_path / "src", 1, 3)
    scrub(tmp_path / "src")
    before = tree(scrub.target)
    next(scrub.target.rglob("*.dcm")).unlink()
    (result,) = scrub(tmp_path / "src")
    assert not result.resumed
    assert tree(scrub.target) == before


def test_another_policy_is_other_work_and_what_the_first_one_held_is_history(
    scrub: Scrubbing, tmp_path: Path, home: Home
) -> None:
    import yaml

    from gateway.settings import SHIPPED_POLICIES

    write_study(tmp_path / "src", 1, 1, Modality="US")
    assert ends(scrub(tmp_path / "src")) == [("held", "not_assessed")]
    assert len(list(home.held.iterdir())) == 1
    policy = yaml.safe_load((SHIPPED_POLICIES / "research-basic.yaml").read_text())
    aspects = ["burned_in_text", "recognizable_features", "image_identity"]
    policy["gate"]["not_assessed"] = [{"aspects": aspects, "modality": ["US"], "reason": "a test", "approver": "tests"}]
    (tmp_path / "accepts.yaml").write_text(yaml.safe_dump(policy))
    mended = Scrubbing(home, scrub.target, policy=tmp_path / "accepts.yaml")
    assert ends(mended(tmp_path / "src")) == [("sent", "")]
    assert list(home.held.iterdir()) == []
    assert Ledger(home.ledger, scrub.keys.ledger).verify().sound


def test_a_file_that_was_mended_in_place_is_done_again_and_its_old_note_goes(
    scrub: Scrubbing, tmp_path: Path, home: Home
) -> None:
    (path,) = write_study(tmp_path / "src", 1, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:400])
    assert ends(scrub(tmp_path / "src")) == [("held", "unreadable_object")]
    path.write_bytes(whole)
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]
    assert list(home.held.iterdir()) == []


def test_file_meta_counts_a_file_with_another_transfer_syntax_is_other_work(scrub: Scrubbing, tmp_path: Path) -> None:
    (path,) = write_study(tmp_path / "src", 1, 1)
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.2\0"))
    assert ends(scrub(tmp_path / "src")) == [("held", "unreadable_object")]
    path.write_bytes(sound)
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]


def test_what_an_older_version_held_is_judged_again_and_what_it_sent_is_not(
    scrub: Scrubbing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path / "src" / "a", 1, 1)
    write_study(tmp_path / "src" / "b", 2, 1, Modality="US")
    scrub(tmp_path / "src")
    (journal,) = scrub.home.journal.glob("*.jsonl")
    journal.write_text(journal.read_text().replace(gateway.app.batch.journal.VERSION, "1.0"))
    assert sorted((str(r.state), r.resumed) for r in scrub(tmp_path / "src")) == [("held", False), ("sent", True)]


def test_other_bytes_under_a_name_that_was_sent_are_held_and_the_target_stays(
    scrub: Scrubbing, tmp_path: Path, home: Home
) -> None:
    """DESIGN.md invariant 4: what was sent is never sent again with other bytes."""
    (path,) = write_study(tmp_path / "src", 1, 1)
    scrub(tmp_path / "src")
    before = tree(scrub.target)
    ds = pydicom.dcmread(path)
    ds.KVP = "80"
    ds.save_as(path)
    (result,) = scrub(tmp_path / "src")
    assert (str(result.state), result.reason) == ("held", "folder_conflict")
    assert tree(scrub.target) == before
    shutil.move(scrub.target, tmp_path / "archived")
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]  # the conflict was about the target, not about the study


def test_half_written_files_of_a_killed_run_are_swept_and_nobody_elses(scrub: Scrubbing, tmp_path: Path) -> None:
    write_study(tmp_path / "src", 1, 1)
    scrub(tmp_path / "src")
    whole = next(scrub.target.rglob("*.dcm"))
    ours = whole.with_name(f"{whole.name}.0123abcd.part")
    ours.write_bytes(b"half")
    alone = scrub.target / "2.25.7" / "2.25.8.dcm.0123abcd.part"
    alone.parent.mkdir()
    alone.write_bytes(b"half")
    theirs = [scrub.target / "video.part", whole.with_name("notes.part"), whole.with_name("1.dcm.xyz.part")]
    for path in theirs:
        path.write_bytes(b"x")
    scrub(tmp_path / "src")
    assert not ours.exists()
    assert not alone.parent.exists()
    assert all(path.exists() for path in (*theirs, whole))


def test_a_target_belongs_to_one_run_at_a_time(scrub: Scrubbing, tmp_path: Path, home: Home, keys: Keys) -> None:
    write_study(tmp_path / "src", 1, 1)
    scrub.target.mkdir()
    with Journal.opened(home.journal, keys, scrub.target):
        with pytest.raises(EnvironmentFault, match="another `scrub` is writing into"):
            scrub(tmp_path / "src")
        other = Scrubbing(home, tmp_path / "dst2")
        assert ends(other(tmp_path / "src")) == [("sent", "")]
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]


def test_a_torn_or_damaged_journal_line_means_that_its_work_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    journal.record(Decision("k1", ("a",), "sent", written=("1/2.dcm",)))
    journal.record(Decision("k2", ("b",), "cleared"), Decision("k3", ("c",), "cleared"))
    whole = path.read_bytes()
    assert (path.stat().st_mode & 0o777) == 0o600
    for torn in (whole[:-1], whole[: len(whole) - 30]):
        path.write_bytes(torn)
        again = Journal(path)
        assert again.find("k1") == Decision("k1", ("a",), "sent", written=("1/2.dcm",))
        assert again.find("k2") is again.find("k3") is None  # decided together, so lost together
        again.record(Decision("k4", ("d",), "held", "no_route"))
        assert Journal(path).find("k4") is not None
    for damage in (b"{}\n", b"[1]\n", b"[{}]\n", b'[{"key": 1}]\n', b"\xff\n", b"null\n", b"[null]\n"):
        path.write_bytes(damage + whole)
        assert Journal(path).find("k1") is not None


def test_the_last_decision_about_a_piece_of_work_stands(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl")
    journal.record(Decision("k1", ("a", "b"), "held", "not_assessed"))
    journal.record(Decision("k1", ("a", "b"), "sent"))
    journal.record(Decision("k2", ("b", "c"), "held", "not_assessed"))
    again = Journal(tmp_path / "j.jsonl")
    assert again.find("k1") == Decision("k1", ("a", "b"), "sent")
    assert again.same_places(Decision("k3", ("c",), "held")) == {"k2"}
    assert again.same_places(Decision("k2", ("b",), "held")) == {"k1"}


@pytest.mark.timeout(600)
def test_killed_at_random_and_run_again_gives_what_an_uninterrupted_run_gives(home: Home, tmp_path: Path) -> None:
    """kill -9 at random points, then once to the end: byte for byte the same, and nothing of it half written."""
    source = tmp_path / "src"
    for person in range(16):
        write_study(source / str(person), person, 5, **({"Modality": "US"} if person % 8 == 7 else {}))
    slice_of(90, "1.2.90", 1, PatientID="").save_as(source / "nobody.dcm")
    whole = Scrubbing(home, tmp_path / "whole", workers=2)
    expected = ends(whole(source))
    assert expected.count(("sent", "")) == 14
    random_ = random.Random(20261130)
    target = tmp_path / "dst"
    kills = 0
    for number, files in enumerate(sorted(random_.sample(range(65), 6))):
        run = process(home, source, target)
        while run.poll() is None and len(list(target.glob("*/*"))) <= files:
            time.sleep(0.002)
        time.sleep(random_.uniform(0.0, 0.03))
        kills += run.poll() is None
        with contextlib.suppress(ProcessLookupError):
            if number % 2:
                run.kill()  # the workers must notice by themselves
            else:
                os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        for path in target.rglob("*.dcm"):
            assert path.read_bytes() == tree(whole.target)[str(path.relative_to(target))]
    assert kills >= 4
    last = process(home, source, target, "--json")
    out, said = last.communicate(timeout=120)
    assert last.returncode == 1, said.decode()
    told = json.loads(out)["studies"]
    assert sorted((study["state"], study["reason"]) for study in told) == expected
    assert any(study["resumed"] for study in told)
    assert tree(target) == tree(whole.target)
    assert {path.name for path in home.held.iterdir()} >= {s["key"] for s in told if s["state"] == "held"}
    assert not [path for path in home.held.iterdir() if not (path / "held.json").exists()]
    assert Ledger(home.ledger, whole.keys.ledger).verify().sound
