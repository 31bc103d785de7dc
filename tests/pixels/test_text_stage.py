"""The stage `burned_in_text` on single synthetic objects: what goes, what stays, what it says (cases.md 6, 7, 24)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pydicom import dcmread
from text_objects import CT, PLANT, RF, SHAPE, drawn, group_of, mask_of, run, save, stored, texture

from gateway.errors import Hold
from gateway.pixels.burned_in_text import BurnedInText


def test_text_goes_every_other_pixel_stays_and_the_header_says_so(tmp_path: Path) -> None:
    before = drawn()
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [before]))
    estimate, (step,) = run(BurnedInText(), group)
    after = stored(group[0].candidate)
    ink = mask_of(PLANT, SHAPE) > 0.3
    assert not after[ink].any()
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    around = np.ones(SHAPE, bool)
    around[rows[0] - 12 : rows[-1] + 13, max(0, columns[0] - 16) : columns[-1] + 17] = False
    assert np.array_equal(after[around], before[around])
    dataset = dcmread(group[0].candidate)
    assert dataset.BurnedInAnnotation == "NO"
    codes = [(item.CodeValue, item.CodingSchemeDesignator) for item in dataset.DeidentificationMethodCodeSequence]
    assert ("113101", "DCM") in codes
    assert step.counts["hint"] >= 1
    assert step.dropped == ""
    facts = json.dumps(dict(estimate.facts)).upper()
    assert not [word for word in ("ZZSYNTH", "LEAKTEST", "LEAK0001") if word in facts]


def test_a_clean_frame_is_not_touched_at_all(tmp_path: Path) -> None:
    frame = np.clip(texture((128, 128)), 0, 255).astype(np.uint8)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [frame]))
    before = group[0].candidate.read_bytes()
    _, (step,) = run(BurnedInText(), group)
    assert group[0].candidate.read_bytes() == before
    assert step.counts == {"frames": 1}


@pytest.mark.parametrize(
    "claims",
    [
        {"sop_class": CT, "BurnedInAnnotation": "NO", "ImageType": ["ORIGINAL", "PRIMARY", "AXIAL"], "Modality": "CT"},
        {"sop_class": RF, "Modality": "RF"},
    ],
    ids=["ct that says NO", "rf that says nothing"],
)
def test_what_the_header_claims_of_its_pixels_is_no_evidence(tmp_path: Path, claims: dict[str, object]) -> None:
    """cases.md 6, 7, 24."""
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [drawn()], **claims))  # type: ignore[arg-type]
    run(BurnedInText(), group)
    assert not stored(group[0].candidate)[mask_of(PLANT, SHAPE) > 0.3].any()


def test_pixels_that_cannot_be_decoded_hold(tmp_path: Path) -> None:
    path = save(tmp_path / "a.dcm", [drawn()])
    dataset = dcmread(path)
    dataset.PixelData = dataset.PixelData[:100]
    dataset.save_as(path)
    with pytest.raises(Hold) as caught:
        run(BurnedInText(), group_of(tmp_path, path))
    assert caught.value.reason == "pixels_unreadable"


def test_an_object_without_pixels_passes_by(tmp_path: Path) -> None:
    path = save(tmp_path / "a.dcm", [drawn()])
    dataset = dcmread(path)
    del dataset.PixelData
    dataset.save_as(path)
    group = group_of(tmp_path, path)
    before = group[0].candidate.read_bytes()
    _, (step,) = run(BurnedInText(unknown_device="hold"), group)
    assert step.counts == {}
    assert group[0].candidate.read_bytes() == before


def test_the_same_object_gives_the_same_estimate_and_the_same_bytes(tmp_path: Path) -> None:
    path = save(tmp_path / "a.dcm", [drawn()])
    one, two = tmp_path / "one", tmp_path / "two"
    outcomes = []
    for folder in (one, two):
        folder.mkdir()
        group = group_of(folder, path)
        estimate, _ = run(BurnedInText(), group)
        outcomes.append((dict(estimate.facts), group[0].candidate.read_bytes()))
    assert outcomes[0] == outcomes[1]
