"""What becomes of studies in `scrub`: cleared ones in the target under new names, others held with a note."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pydicom
import pytest
from planting import found_in
from scrubbing import Scrubbing, ends, slice_of, tree, write_study

from gateway.errors import REASONS
from gateway.ledger import Ledger
from gateway.pseudonyms import Pseudonyms
from gateway.settings import Home
from gateway.study import State


@pytest.fixture
def scrub(home: Home, tmp_path: Path) -> Scrubbing:
    return Scrubbing(home, tmp_path / "dst")


def ledger_of(scrub: Scrubbing) -> Ledger:
    return Ledger(scrub.home.ledger, scrub.keys.ledger)


def test_a_folder_of_studies_ends_in_the_target_under_keyed_names(scrub: Scrubbing, tmp_path: Path) -> None:
    originals = [*write_study(tmp_path / "src" / "a", 1, 3), *write_study(tmp_path / "src" / "b", 2, 2)]
    before = tree(tmp_path / "src")
    results = scrub(tmp_path / "src")
    assert ends(results) == [("sent", ""), ("sent", "")]
    assert sorted((r.instances, r.sent) for r in results) == [(2, 2), (3, 3)]
    names = Pseudonyms.of_project(scrub.keys.master, "demo")
    expected = set()
    for path in originals:
        ds = pydicom.dcmread(path)
        expected.add(f"{names.uid(ds.StudyInstanceUID)}/{names.uid(ds.SOPInstanceUID)}.dcm")
    assert tree(scrub.target).keys() == expected
    for data in tree(scrub.target).values():
        assert found_in(data) == []
    people = {pydicom.dcmread(scrub.target / name).PatientID for name in expected}
    assert people == {names.patient_id(f"LEAK{n:04d}", prefix="DEMO-") for n in (1, 2)}
    assert tree(tmp_path / "src") == before
    assert list(scrub.home.held.iterdir()) == []
    assert ledger_of(scrub).verify().sound
    assert [line["event"] for line in ledger_of(scrub).lines()].count("sent") == 2


def test_two_runs_into_two_targets_give_the_same_names_and_bytes(scrub: Scrubbing, tmp_path: Path) -> None:
    write_study(tmp_path / "src", 1, 3)
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]
    shutil.copytree(tmp_path / "src", tmp_path / "elsewhere" / "deeper")
    other = Scrubbing(scrub.home, tmp_path / "dst2", workers=2)
    assert ends(other(tmp_path / "elsewhere")) == [("sent", "")]
    assert tree(scrub.target) == tree(other.target)
    assert len(tree(scrub.target)) == 3


def test_another_project_gives_other_names(scrub: Scrubbing, tmp_path: Path) -> None:
    write_study(tmp_path / "src", 1, 1)
    scrub(tmp_path / "src")
    other = Scrubbing(scrub.home, tmp_path / "dst2", project="lung")
    other(tmp_path / "src")
    assert tree(scrub.target).keys().isdisjoint(tree(other.target).keys())


def test_a_single_file_is_a_source_too(scrub: Scrubbing, tmp_path: Path) -> None:
    path, _ = write_study(tmp_path / "src", 1, 2)
    assert ends(scrub(path)) == [("sent", "")]
    assert len(tree(scrub.target)) == 1


def test_an_empty_folder_gives_nothing(scrub: Scrubbing, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert scrub(tmp_path / "src") == []


def test_one_folder_with_everything_odd_in_it(scrub: Scrubbing, tmp_path: Path) -> None:
    """Each study has its own end, and none of them touches its neighbours."""
    source = tmp_path / "src"
    good = write_study(source / "good", 1, 2)
    shutil.copy(good[0], source / "again.dcm")  # the same instance once more: idempotent
    for number in (1, 2):  # one UID, two contents
        slice_of(3, "1.2.3", 1, StudyDescription=f"take {number}").save_as(source / f"conflict-{number}.dcm")
    slice_of(4, "1.2.4", 1).save_as(source / "mixed-1.dcm")
    slice_of(5, "1.2.4", 2).save_as(source / "mixed-2.dcm")
    slice_of(6, "1.2.5", 1, PatientID="").save_as(source / "nobody.dcm")
    slice_of(7, "1.2.6", 1, Modality="US").save_as(source / "picture.dcm")
    ds = slice_of(8, "1.2.7", 1)
    ds.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.1.3.10"
    del ds.SOPClassUID
    ds.save_as(source / "DICOMDIR")
    (source / "torn.dcm").write_bytes(good[0].read_bytes()[:300])
    (source / "notes.txt").write_text("hello")
    (source / "empty.dcm").write_bytes(b"")
    results = {str(r.file.relative_to(source)): r for r in scrub(source)}
    assert {name: (str(r.state), r.reason, r.instances) for name, r in results.items()} == {
        "again.dcm": ("sent", "", 3),
        "conflict-2.dcm": ("held", "conflicting_instance", 2),
        "mixed-1.dcm": ("held", "mixed_patients", 2),
        "nobody.dcm": ("held", "missing_patient_id", 1),
        "picture.dcm": ("held", "not_assessed", 1),
        "DICOMDIR": ("refused", "dicomdir", 1),
        "torn.dcm": ("held", "unreadable_object", 1),
        "notes.txt": ("refused", "not_dicom", 1),
        "empty.dcm": ("refused", "not_dicom", 1),
    }
    assert len(tree(scrub.target)) == 2
    notes = {path.parent.name: json.loads(path.read_bytes()) for path in scrub.home.held.glob("*/held.json")}
    assert notes.keys() == {r.key for r in results.values() if r.reason not in ("", "not_dicom")}
    assert all(note["reason"] in REASONS for note in notes.values())
    lines = {line["job"]: line for line in ledger_of(scrub).lines() if line["event"] in ("held", "refused")}
    assert lines.keys() == notes.keys()
    assert ledger_of(scrub).verify().sound


def test_what_is_held_names_no_value_and_no_file_of_the_source(scrub: Scrubbing, tmp_path: Path) -> None:
    """Also not where the source's file names are full of it: they are somebody's habit."""
    source = tmp_path / "src" / "ZZSYNTH_LEAKTEST"
    write_study(source, 1, 1, Modality="US", PatientID="LEAK0001")
    write_study(source / "LEAK0001", 1, 1, PatientID="LEAK0001")
    (source / "Leaktest.dcm").write_bytes((source / "LEAK0001" / "p1-1.dcm").read_bytes()[:400])
    assert ends(scrub(tmp_path / "src")) == [("held", "not_assessed"), ("held", "unreadable_object"), ("sent", "")]
    kept = [path for path in scrub.home.root.rglob("*") if path.is_file()]
    assert len(kept) > 6
    for path in kept:
        assert found_in(str(path.relative_to(scrub.home.root)).encode()) == []
        assert found_in(path.read_bytes()) == [], path


def test_the_gate_names_the_place_and_the_result_names_the_file(scrub: Scrubbing, tmp_path: Path, home: Home) -> None:
    """A policy that keeps a free text keeps the name in it: held, by place only."""
    import yaml

    from gateway.settings import SHIPPED_POLICIES

    policy = yaml.safe_load((SHIPPED_POLICIES / "research-basic.yaml").read_text())
    policy["header"]["keep"] = {"StudyDescription": "a test of the gate"}
    (tmp_path / "keeps.yaml").write_text(yaml.safe_dump({**policy, "name": "keeps"}))
    _, second = write_study(tmp_path / "src", 1, 2)
    ds = pydicom.dcmread(second)
    ds.StudyDescription = "for Leaktest Zzsynth"
    ds.save_as(second)
    run = Scrubbing(home, tmp_path / "dst", policy=tmp_path / "keeps.yaml")
    (result,) = run(tmp_path / "src")
    assert (result.state, result.reason, result.file) == (State.HELD, "residual_identifier", second)
    assert "0008,1030" in result.at
    note = json.loads((home.held / result.key / "held.json").read_bytes())
    assert any("0008,1030" in finding["where"] for finding in note["findings"])
    assert found_in((home.held / result.key / "held.json").read_bytes()) == []
    assert found_in(home.ledger.read_bytes()) == []
    assert tree(run.target) == {}


def test_many_small_files_are_done_and_counted_on_the_way(scrub: Scrubbing, tmp_path: Path) -> None:
    for person in range(60):
        write_study(tmp_path / "src" / str(person), person, 5)
    seen: list[tuple[str, int, int]] = []
    results = scrub(tmp_path / "src", report=lambda p: seen.append((p.phase, p.done, p.total)))
    assert ends(results) == [("sent", "")] * 60
    assert len(tree(scrub.target)) == 300
    assert ("examine", 128, 300) in seen
    assert seen[-1] == ("scrub", 300, 300)
    assert [done for phase, done, _ in seen if phase == "scrub"] == list(range(0, 301, 5))
