"""The face goes, the brain stays, everything else is bit-exact (cases.md 64); what is in doubt is held."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pydicom
import pytest
from head_series import (
    block_volume,
    head_volume,
    instances,
    to_template,
    truth,
    values_of,
    write_enhanced,
    write_series,
)
from scipy import ndimage

from gateway.errors import Hold
from gateway.frames import KEYWORDS, Changes, transcode
from gateway.pixels import deface_find
from gateway.pixels.deface import Deface
from gateway.pixels.estimates import run_stage
from gateway.pixels.head_alignment import Alignment, align
from gateway.pixels.head_template import head_template
from gateway.pixels.stage import Estimate, Instance

WORK: Any = SimpleNamespace(policy=SimpleNamespace(digest="d"), seed=b"s" * 32, level=None, follow_up=False)
VOLUME = head_volume()
FAR = ndimage.distance_transform_edt(~head_template().brain) * 2 > 20  # mm: slices are thick, and the brain wins
FACE = ndimage.binary_erosion(head_template().face & head_template().head, iterations=3) & FAR


@pytest.fixture(scope="module")
def alignment() -> Alignment:
    found = align(VOLUME, hounsfield=False)
    assert found is not None
    return found


@pytest.fixture
def aligned(alignment: Alignment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every volume is where VOLUME is: alignment itself is tested once."""
    monkeypatch.setattr(deface_find, "align", lambda volume, hounsfield: alignment)


def deface(group: list[Instance], **parameters: Any) -> tuple[Estimate, list[Any]]:
    stage = Deface(**parameters)
    estimate = stage.estimate(group, WORK)
    return estimate, stage.apply(group, WORK, estimate)


def series(tmp_path: Path, **more: Any) -> list[Instance]:
    return instances(write_series(VOLUME, tmp_path / "in", **more), tmp_path / "out")


def both(group: list[Instance]) -> tuple[np.ndarray, np.ndarray]:
    return values_of([one.original for one in group]), values_of([one.candidate for one in group])


def test_a_head_is_found_where_it_is(alignment: Alignment) -> None:
    """The synthetic head is the template itself, moved: every corner of it is found to 4 mm, the voxel."""
    corners = np.array([[x, y, z, 1] for x in (-70, 70) for y in (-90, 90) for z in (-40, 120)], float).T
    error = (alignment.to_template @ corners - to_template() @ corners)[:3]
    assert np.linalg.norm(error, axis=0).max() < 4.0


@pytest.mark.usefixtures("aligned")
@pytest.mark.parametrize("mode", ["remove", "blur", "reface"])
def test_the_face_goes_and_no_voxel_of_the_brain_changes(tmp_path: Path, mode: str) -> None:
    group = series(tmp_path)
    deface(group, mode=mode)
    before, after = both(group)
    changed = before != after
    assert not changed[truth(head_template().brain, VOLUME)].any()
    assert changed[truth(FACE, VOLUME)].mean() > 0.97
    if mode == "remove":
        assert (after[truth(FACE, VOLUME)] < 60).mean() > 0.99  # air; the face was 300 and more


@pytest.mark.usefixtures("aligned")
def test_what_is_not_face_or_ear_stays_bit_for_bit(tmp_path: Path) -> None:
    group = series(tmp_path)
    deface(group)
    before, after = both(group)
    ears = ndimage.maximum_filter(head_template().ears, size=(7, 7, 11))  # their roots: 6 mm, and 10 mm into the head
    near = truth(ndimage.binary_dilation(head_template().face | ears, iterations=4), VOLUME)
    assert (before != after).any()
    assert not (before != after)[~near].any()


@pytest.mark.usefixtures("aligned")
def test_ears_stay_when_the_policy_says_so(tmp_path: Path) -> None:
    group = series(tmp_path)
    deface(group, ears=False)
    before, after = both(group)
    ears = head_template().ears & ~ndimage.binary_dilation(head_template().face, iterations=4)
    assert not (before != after)[truth(ears, VOLUME)].any()


@pytest.mark.usefixtures("aligned")
def test_the_roots_of_the_ears_go_too(tmp_path: Path) -> None:
    """People's ears begin further in than the template's: what lies 4 to 8 mm inwards of them goes, and no brain."""
    group = series(tmp_path)
    deface(group)
    before, after = both(group)
    template = head_template()
    ears = ndimage.binary_erosion(template.ears, np.ones((5, 5, 1), bool))  # their middle: slices are of 8 mm
    roots = (np.roll(ears, 3, axis=2) | np.roll(ears, -3, axis=2)) & ~template.ears & template.head & FAR
    assert roots.sum() > 300
    assert (before != after)[truth(roots, VOLUME)].mean() > 0.95
    assert not (before != after)[truth(template.brain, VOLUME)].any()


@pytest.mark.usefixtures("aligned")
def test_the_header_tells_what_was_done(tmp_path: Path) -> None:
    """PS3.15 E.3.2: Recognizable Visual Features NO, and code 113102 of CID 7050."""
    group = series(tmp_path)
    deface(group)
    for instance in group:
        dataset = pydicom.dcmread(instance.candidate)
        assert dataset.RecognizableVisualFeatures == "NO"
        assert [item.CodeValue for item in dataset.DeidentificationMethodCodeSequence] == ["113102"]
        original = pydicom.dcmread(instance.original)
        for keyword in ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "BitsStored", "Rows"):
            assert dataset[keyword] == original[keyword]


@pytest.mark.usefixtures("aligned")
@pytest.mark.parametrize("name", ["jpeg-ls-lossless", "rle", "jpeg-2000-lossless"])
def test_a_compressed_series_stays_in_its_transfer_syntax(tmp_path: Path, name: str) -> None:
    paths = write_series(VOLUME, tmp_path / "in")
    for path in paths:
        transcode(path, path, KEYWORDS[name], Changes())
    group = instances(paths, tmp_path / "out")
    deface(group)
    assert {pydicom.dcmread(one.candidate).file_meta.TransferSyntaxUID for one in group} == {KEYWORDS[name]}
    before, after = both(group)
    assert (before != after)[truth(FACE, VOLUME)].mean() > 0.97


@pytest.mark.usefixtures("aligned")
def test_an_enhanced_object_loses_the_same_voxels_as_single_slices(tmp_path: Path) -> None:
    slices, whole = series(tmp_path), instances([write_enhanced(VOLUME, tmp_path / "enhanced")], tmp_path / "whole")
    deface(slices)
    _, steps = deface(whole)
    _, single = both(slices)
    frames = pydicom.dcmread(whole[0].candidate).pixel_array[::-1]
    changed = frames != pydicom.dcmread(whole[0].original).pixel_array[::-1]
    assert np.array_equal(frames, single)
    assert steps[0].counts["voxels"] == changed.sum()


@pytest.mark.usefixtures("aligned")
def test_every_series_of_the_frame_of_reference_loses_the_same_face(tmp_path: Path) -> None:
    """A sagittal series of the same patient, and single planes: one mask for all."""
    paths = write_series(VOLUME, tmp_path / "in")
    sagittal = write_series(VOLUME, tmp_path / "in", series="b", axis=2)
    localiser = write_series(VOLUME, tmp_path / "in", series="c", axis=2)[26:27]
    group = instances([*paths, *sagittal, *localiser], tmp_path / "out")
    estimate, steps = deface(group)
    before, after = both(group[: len(paths)])
    _, other = both(group[len(paths) : -1])
    axial, across = before != after, (values_of(sagittal) != other).transpose(1, 2, 0)
    assert (axial ^ across).sum() < 0.05 * axial.sum()  # slices of 8 and of 4 mm see its edge differently
    assert steps[-1].counts["voxels"] > 300
    assert len(estimate.arrays) == 3


def with_change(path: Path, change: Callable[[pydicom.Dataset], None]) -> Path:
    dataset = pydicom.dcmread(path)
    change(dataset)
    dataset.save_as(path)
    return path


def screenshot(dataset: pydicom.Dataset) -> None:
    del dataset.ImagePositionPatient
    dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = "1.2.3.4"
    dataset.SeriesInstanceUID = "1.2.3"


@pytest.mark.usefixtures("aligned")
def test_a_screenshot_beside_a_head_holds_the_study_or_is_left_out(tmp_path: Path) -> None:
    paths = write_series(VOLUME, tmp_path / "in")
    extra = with_change(write_series(VOLUME, tmp_path / "shot")[14], screenshot)
    group = instances([*paths, extra], tmp_path / "out")
    with pytest.raises(Hold, match=r"geometry_unsuitable: .* without a place"):
        deface(group)
    _, steps = deface(group, uncovered="drop")
    assert [step.dropped for step in steps[-2:]] == ["", "uncovered"]


@pytest.mark.usefixtures("aligned")
def test_contours_drawn_on_a_head_are_uncovered(tmp_path: Path) -> None:
    """The outline of the body in a structure set is a face (DESIGN.md invariant 6)."""

    def contours(dataset: pydicom.Dataset) -> None:
        screenshot(dataset)
        for keyword in ("Rows", "Columns", "PixelData"):
            delattr(dataset, keyword)
        dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.481.3"
        dataset.ROIContourSequence = [pydicom.Dataset()]

    paths = write_series(VOLUME, tmp_path / "in")
    drawn = with_change(write_series(VOLUME, tmp_path / "shot")[14], contours)
    with pytest.raises(Hold, match="shapes that may follow a face"):
        deface(instances([*paths, drawn], tmp_path / "out"))


@pytest.mark.usefixtures("aligned")
def test_what_the_header_calls_a_knee_is_a_head_all_the_same(tmp_path: Path) -> None:
    group = series(tmp_path)
    for instance in group:
        with_change(instance.original, lambda dataset: setattr(dataset, "BodyPartExamined", "KNEE"))
    deface(group)
    before, after = both(group)
    assert (before != after)[truth(FACE, VOLUME)].mean() > 0.97


def test_a_trunk_passes_untouched_with_its_evidence(tmp_path: Path) -> None:
    group = instances(write_series(block_volume(), tmp_path / "in"), tmp_path / "out")
    estimate, steps = deface(group)
    assert estimate.facts["evidence"] == [{"judged": "none", "size": "impossible"}]
    assert all(one.candidate.read_bytes() == one.original.read_bytes() for one in group)
    assert not any(step.counts for step in steps)


def test_a_trunk_that_its_header_calls_a_head_is_held(tmp_path: Path) -> None:
    group = instances(write_series(block_volume(), tmp_path / "in"), tmp_path / "out")
    with_change(group[5].original, lambda dataset: setattr(dataset, "SeriesDescription", "AX T1 BRAIN"))
    with pytest.raises(Hold, match="face_not_found"):
        deface(group)


def test_a_head_that_cannot_be_aligned_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deface_find, "align", lambda volume, hounsfield: None)
    with pytest.raises(Hold, match="face_not_found"):
        deface(series(tmp_path))


def test_an_alignment_that_misses_the_head_is_held(
    tmp_path: Path, alignment: Alignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = alignment.to_patient.copy()
    moved[:3, 3] += (0, 35, 0)
    wrong = Alignment(moved, alignment.nmi, alignment.share)
    monkeypatch.setattr(deface_find, "align", lambda volume, hounsfield: wrong)
    with pytest.raises(Hold, match="face_not_found"):
        deface(series(tmp_path))


@pytest.mark.usefixtures("aligned")
def test_a_missing_slice_is_held_with_the_reason(tmp_path: Path) -> None:
    paths = write_series(VOLUME, tmp_path / "in")
    with pytest.raises(Hold, match="geometry_unsuitable"):
        deface(instances(paths[:20] + paths[21:], tmp_path / "out"))


@pytest.mark.usefixtures("aligned")
def test_a_replay_gives_the_same_bytes_and_estimates_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write_series(VOLUME, tmp_path / "in")
    first, second = (instances(paths, tmp_path / name) for name in ("one", "two"))
    run_stage("deface", Deface(), first, WORK, tmp_path / "store")
    monkeypatch.setattr(Deface, "estimate", lambda *_: pytest.fail("estimated again"))
    run_stage("deface", Deface(), second, WORK, tmp_path / "store")
    assert [one.candidate.read_bytes() for one in first] == [one.candidate.read_bytes() for one in second]
