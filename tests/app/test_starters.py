"""Starter policies load, say what they are for, and do it: from a file to cleared bytes, by `scrub`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pydicom
import pytest
from head_series import FRAME, head_volume, truth, write_series
from pydicom.data import get_testdata_file
from scrubbing import Scrubbing

from gateway.app.batch.studies import StudyResult
from gateway.app.policy.registry import REGISTRY
from gateway.app.policy.starters import STARTERS, begin, starters
from gateway.errors import PolicyError, UsageError
from gateway.learn import write_dicom
from gateway.pixels.head_template import head_template
from gateway.policy import load_policy
from gateway.settings import SHIPPED_POLICIES, Home
from models.cohorts import synthetic_chest, synthetic_fundus

NAMES = sorted(path.stem for path in STARTERS.glob("*.yaml"))


def scrub(home: Home, folder: Path, starter: str) -> list[StudyResult]:
    """`folder`/in through a starter into `folder`/out."""
    return Scrubbing(home, folder / "out", str(STARTERS / f"{starter}.yaml"))(folder / "in")


def test_there_are_these() -> None:
    assert NAMES == ["brain-lesion", "ct-header", "cxr-adjustable", "fundus-adjustable", "head-mr-deface"]
    assert starters() == {
        "brain-lesion": "MR of brain tumours whose anatomy around the lesion is generated.",
        "ct-header": "CT of the body, headers only.",
        "cxr-adjustable": "Frontal chest films made anew: what identifies is blocked, and a trained card makes a new "
        "picture from the rest.",
        "fundus-adjustable": "Colour photographs of the fundus made anew: what identifies is blocked, and a trained "
        "card makes a new picture.",
        "head-mr-deface": "MR and CT of the head without the face.",
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_loads_under_its_name_and_explains_itself(name: str) -> None:
    path = STARTERS / f"{name}.yaml"
    policy = load_policy(path, REGISTRY)
    assert policy.name == name
    assert policy.gate.study["residual_identifiers"].max == 0
    text = path.read_text()
    assert text.startswith("# yaml-language-server: $schema=../schema.json\n")
    comment = text[: text.index("\nname:")]
    for word in ("# For ", "# Not for", "# Held ", "# To do "):
        assert word in comment or word.replace("# Not", "#         Not") in comment
    for entry in policy.gate.not_assessed:
        assert "TO BE CONFIRMED" in entry.approver
        assert len(entry.reason) > 40


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_of_ones_own_is_the_starter_under_another_name(name: str, tmp_path: Path) -> None:
    path = begin("brain-2026", name, tmp_path, REGISTRY)
    assert path == tmp_path / "brain-2026.yaml"
    mine, theirs = load_policy(path, REGISTRY), load_policy(STARTERS / f"{name}.yaml", REGISTRY)
    assert mine.name == "brain-2026"
    assert {**mine.as_file(), "name": name} == theirs.as_file()
    before, after = (STARTERS / f"{name}.yaml").read_text().splitlines(), path.read_text().splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert [b for _, b in changed] == ["# yaml-language-server: $schema=schema.json", "name: brain-2026"]


@pytest.mark.parametrize(
    ("name", "starter"), [("x", "ct-heder"), ("Bad Name", "ct-header"), ("routes", "ct-header"), ("taken", "ct-header")]
)
def test_nothing_is_written_over_and_nothing_unknown_is_begun(name: str, starter: str, tmp_path: Path) -> None:
    (tmp_path / "taken.yaml").write_text("name: taken\n")
    with pytest.raises(UsageError):
        begin(name, starter, tmp_path, REGISTRY)
    (tmp_path / "other.yaml").write_text("extends: []\nname: 'mine'\n")
    with pytest.raises(PolicyError, match="has a policy named mine already"):
        begin("mine", "ct-header", tmp_path, REGISTRY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.yaml", "taken.yaml"]
    with pytest.raises(UsageError, match="no folder"):
        begin("mine", "ct-header", tmp_path / "absent", REGISTRY)


def test_starters_are_not_policies_of_the_shipped_folder() -> None:
    assert STARTERS.parent == SHIPPED_POLICIES
    assert not {path.stem for path in SHIPPED_POLICIES.glob("*.yaml")} & set(NAMES)


def test_ct_header_clears_a_ct_with_its_pixels_untouched(tmp_path: Path, home: Home) -> None:
    """The example that pydicom carries, with a person planted into it."""
    ds = pydicom.dcmread(str(get_testdata_file("CT_small.dcm")))
    ds.PatientName, ds.PatientID = "ZZSYNTH^LEAKTEST", "LEAK0001"
    ds.StudyDescription, ds.SeriesDescription = "ABDOMEN ZZSYNTH LEAKTEST", "PORTAL VENOUS"
    pixels = ds.PixelData
    (tmp_path / "in").mkdir()
    ds.save_as(tmp_path / "in/a.dcm")
    results = scrub(home, tmp_path, "ct-header")
    assert [(str(one.state), one.reason) for one in results] == [("sent", "")]
    (path,) = (tmp_path / "out").rglob("*.dcm")
    out = pydicom.dcmread(path)
    assert out.PixelData == pixels
    assert out.PatientID.startswith("CT-")
    assert out.StudyDescription.startswith("ABDOMEN")
    assert out.SeriesDescription == "PORTAL VENOUS"
    assert b"LEAK" not in path.read_bytes()


def test_ct_header_holds_what_it_does_not_judge(tmp_path: Path, home: Home) -> None:
    ds = pydicom.dcmread(str(get_testdata_file("CT_small.dcm")))
    ds.Modality = "OT"
    (tmp_path / "in").mkdir()
    ds.save_as(tmp_path / "in/a.dcm")
    (one,) = scrub(home, tmp_path, "ct-header")
    assert (str(one.state), one.reason) == ("held", "not_assessed")


def test_head_mr_deface_takes_the_face_and_leaves_the_brain(tmp_path: Path, home: Home) -> None:
    """A synthetic head (the template, nodded and moved): cleared, the brain bit for bit, the face gone."""
    volume = head_volume()
    for path in write_series(volume, tmp_path / "in"):
        ds = pydicom.dcmread(path)
        ds.PatientName, ds.PatientID, ds.StudyID = "ZZSYNTH^LEAKTEST", "LEAK0002", "1"
        ds.save_as(path)
    results = scrub(home, tmp_path, "head-mr-deface")
    assert [(str(one.state), one.reason, one.at) for one in results] == [("sent", "", "")]
    before, after = (
        np.stack([ds.pixel_array for ds in sorted(some, key=lambda ds: float(ds.ImagePositionPatient[2]))])
        for some in (_read(tmp_path / "in"), _read(tmp_path / "out"))
    )
    changed = before != after
    template = head_template()
    brain, face = truth(template.brain, volume), truth(template.face & template.head, volume)
    assert not changed[brain].any()
    assert changed[face].mean() > 0.5
    assert all(ds.FrameOfReferenceUID != FRAME for ds in _read(tmp_path / "out"))


def test_cxr_adjustable_makes_a_film_anew_and_holds_what_is_none(tmp_path: Path, home: Home) -> None:
    """A film of somebody whom the card that ships was not trained on, and a slice of a CT that says it is a film."""
    people = synthetic_chest(2, 1, seed=999)
    write_dicom(people.of(people.subjects[:1]), tmp_path / "in")
    (film,) = _read(tmp_path / "in")
    slice_ = pydicom.dcmread(str(get_testdata_file("CT_small.dcm")))
    (tmp_path / "other/in").mkdir(parents=True)
    for name in ("SOPClassUID", "Modality", "BodyPartExamined", "ViewPosition"):
        setattr(slice_, name, film.get(name))
    slice_.file_meta.MediaStorageSOPClassUID = film.SOPClassUID
    slice_.save_as(tmp_path / "other/in/a.dcm")
    results = scrub(home, tmp_path, "cxr-adjustable") + scrub(home, tmp_path / "other", "cxr-adjustable")
    assert [(str(one.state), one.reason) for one in results] == [("sent", ""), ("held", "outside_domain")]
    (out,) = _read(tmp_path / "out")
    before, after = film.pixel_array.astype(float), out.pixel_array.astype(float)
    assert (out.SyntheticData, out.PatientID.startswith("CXR-")) == ("YES", True)
    assert after.shape == before.shape
    assert (before != after).mean() > 0.9
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.5  # a chest film still


def test_fundus_adjustable_makes_photographs_anew_and_holds_what_is_none(tmp_path: Path, home: Home) -> None:
    """Both eyes of strangers, in colour; a photograph without colour; a chest film."""
    drawn = synthetic_fundus(4, 1, seed=999, size=96, eyes="RL")
    # A patient whose name is "fundus" is held: the word stands in the card's name, which the output states.
    renamed = tuple(replace(one, subject=one.subject.replace("fundus", "stranger")) for one in drawn)
    people = replace(drawn, scans=renamed)
    write_dicom(people.of(people.subjects[1:3]), tmp_path / "in")  # a right eye and a left one
    photographs = {one.ImageLaterality: one for one in _read(tmp_path / "in")}
    grey = tuple(replace(one, load_colour=None) for one in people.of(people.subjects[:1]))
    write_dicom(replace(people, scans=grey), tmp_path / "grey/in")
    films = synthetic_chest(1, 1, seed=999)
    write_dicom(films, tmp_path / "film/in")
    results = scrub(home, tmp_path, "fundus-adjustable")
    results += [one for name in ("grey", "film") for one in scrub(home, tmp_path / name, "fundus-adjustable")]
    assert [(str(one.state), one.reason) for one in results] == [("sent", "")] * 2 + [("held", "no_picture")] * 2
    out = {one.ImageLaterality: one for one in _read(tmp_path / "out")}
    assert set(out) == {"R", "L"}
    for side, one in out.items():
        before, after = photographs[side].pixel_array.astype(float), one.pixel_array.astype(float)
        assert (one.SyntheticData, one.ImageType[0], one.PatientID[:4]) == ("YES", "DERIVED", "EYE-")
        assert (one.PhotometricInterpretation, one.SamplesPerPixel, one.BitsStored) == ("RGB", 3, 8)
        assert after.shape == before.shape
        inside = before.max(-1) > 20
        assert (before != after)[inside].mean() > 0.9
        assert after[~inside].mean() < after[inside].mean() / 4  # the frame stays dark
        red, green, blue = after[inside].mean(0)
        assert red > green > blue  # a fundus still
        halves = np.sort(after[24:72, 8:88].mean(-1).reshape(48, 2, 40).transpose(1, 0, 2).reshape(2, -1))
        brightest = halves[:, -60:].mean(1)  # the disc, which is towards the nose: on the right of a right eye
        assert brightest.argmax() == (side == "R")


def _read(folder: Path) -> list[pydicom.FileDataset]:
    return [pydicom.dcmread(path) for path in folder.rglob("*") if path.is_file()]
