"""Instances that a stage leaves out: the rest of the study goes on, and everybody is told (cases.md 10)."""

from __future__ import annotations

from pathlib import Path

import pydicom
from houses import House, study
from pydicom.dataset import FileDataset
from scrubbing import Scrubbing, ends, slice_of, tree, write_study

from gateway.ledger import Ledger
from gateway.settings import Home

LABEL = {"Modality": "SM", "ImageType": ["ORIGINAL", "PRIMARY", "LABEL", "NONE"]}


def as_label(ds: FileDataset) -> FileDataset:
    for keyword, value in LABEL.items():
        setattr(ds, keyword, value)
    return ds


def test_a_study_is_sent_without_its_label(gateway_house: House, target: Path) -> None:
    *rest, label = study(3)
    key = gateway_house.deliver(*rest, as_label(label))
    assert [(state, reason) for _, state, reason in gateway_house.ends(key)] == [("sent", "")]
    assert len(tree(target)) == 2
    cleared = next(line for line in gateway_house.events(key) if line["event"] == "cleared")
    assert len(cleared["steps"]["dropped"]) == 1
    assert cleared["steps"]["header@1"]["dropped"] == 1
    assert len(cleared["sha256"]) == 2


def test_a_study_of_nothing_but_labels_is_held(gateway_house: House, target: Path) -> None:
    key = gateway_house.deliver(*map(as_label, study(2)))
    assert [(state, reason) for _, state, reason in gateway_house.ends(key)] == [("held", "no_instances")]
    assert tree(target) == {}


def test_scrub_leaves_the_same_instances_out(home: Home, tmp_path: Path) -> None:
    scrub = Scrubbing(home, tmp_path / "dst")
    (path, *_) = write_study(tmp_path / "src", 1, 2)
    label = slice_of(1, "2.25.5", 9)

    first = pydicom.dcmread(path)
    label.StudyInstanceUID, label.SeriesInstanceUID = first.StudyInstanceUID, first.SeriesInstanceUID
    as_label(label).save_as(tmp_path / "src" / "label.dcm", enforce_file_format=True)
    (result,) = scrub(tmp_path / "src")
    assert (str(result.state), result.reason, result.instances, result.sent) == ("sent", "", 3, 2)
    assert len(tree(scrub.target)) == 2
    lines = Ledger(home.ledger, scrub.keys.ledger).lines()
    assert next(line for line in lines if line["event"] == "cleared")["steps"]["header@1"]["dropped"] == 1
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]


def test_scrub_holds_a_study_of_which_nothing_is_left(home: Home, tmp_path: Path) -> None:
    scrub = Scrubbing(home, tmp_path / "dst")
    write_study(tmp_path / "src", 1, 2, **LABEL)
    assert ends(scrub(tmp_path / "src")) == [("held", "no_instances")]
    assert tree(scrub.target) == {}
