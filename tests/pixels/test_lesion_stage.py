"""Whole studies through `lesion_preserving`: the lesion stays, the rest is new, what is in doubt is held."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from numpy.typing import NDArray
from pydicom.dataset import Dataset
from scipy import ndimage

from gateway.errors import Hold
from gateway.gate import Pair
from gateway.gate.encoding import judge_encoding
from gateway.pixels import Instance, Work, run_stage
from gateway.pixels.lesion_preserving import LesionPreserving
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from gateway.study import Outcome, Step
from tests.lesion_series import CARD, instances, modality_of, structures, write_card, write_study
from tests.lesion_studies import MM, lesion_of

POLICY = Policy(name="lesion", header=HeaderPolicy(), gate=GatePolicy(study={}))
PERSON = 1
Volume = NDArray[np.generic]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_card(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_study(tmp_path_factory.mktemp("study"), PERSON)


def run(group: list[Instance], models: Path, store: Path, seed: bytes = b"s" * 32, **parameters: Any) -> list[Step]:
    stage = LesionPreserving(**{"card": CARD, **parameters})
    return run_stage("lesion_preserving", stage, group, Work(POLICY, seed, models), store)


def volumes(paths: list[Path]) -> dict[str, Volume]:
    """Stored values by series description, slices from feet to head."""
    found: dict[str, list[Dataset]] = {}
    for path in paths:
        dataset = pydicom.dcmread(path)
        if dataset.Modality == "MR":
            found.setdefault(str(dataset.SeriesDescription), []).append(dataset)
    return {
        name: np.stack([one.pixel_array for one in sorted(slices, key=lambda one: float(one.ImagePositionPatient[2]))])
        for name, slices in found.items()
    }


@pytest.fixture(scope="module")
def done(
    models: Path, study: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[Instance], list[Step]]:
    """The study as it comes: run once, looked at by several tests."""
    folder = tmp_path_factory.mktemp("done")
    group = instances(study, folder / "out")
    return group, run(group, models, folder / "estimates")


def test_the_lesion_stays_voxel_by_voxel_and_the_rest_of_the_head_is_new(
    done: tuple[list[Instance], list[Step]],
) -> None:
    group, steps = done
    before = volumes([one.original for one in group])
    after = volumes([one.candidate for one in group])
    lesion = lesion_of(PERSON)
    kept = ndimage.distance_transform_edt(~lesion, sampling=MM) <= 2.0
    assert before.keys() == after.keys() == {"T1", "FLAIR"}
    for name in before:
        np.testing.assert_array_equal(after[name][kept], before[name][kept])
        head = (before[name] > 0) & ~kept
        assert (after[name] != before[name])[head].mean() > 0.9
        assert after[name].max() <= before[name].max()
        assert after[name].dtype == before[name].dtype
    assert sum(step.counts.get("kept", 0) for step in steps) == 2 * kept.sum()
    assert not any(step.dropped for step in steps)


def test_both_sequences_get_the_same_new_head(done: tuple[list[Instance], list[Step]]) -> None:
    after = volumes([one.candidate for one in done[0]])
    np.testing.assert_array_equal(after["T1"] > 0, after["FLAIR"] > 0)


def test_the_header_says_what_was_done_and_the_rest_of_it_stays(done: tuple[list[Instance], list[Step]]) -> None:
    group, _ = done
    for one in group:
        before, after = pydicom.dcmread(one.original), pydicom.dcmread(one.candidate)
        if before.Modality == "SEG":
            assert one.candidate.read_bytes() == one.original.read_bytes()
            continue
        assert after.ImageType == ["DERIVED", "PRIMARY", "OTHER"]
        assert after.SyntheticData == "YES"
        assert CARD in after.DerivationDescription
        assert "Not for diagnosis" in after.DerivationDescription
        equipment = after.ContributingEquipmentSequence[-1]
        assert equipment.PurposeOfReferenceCodeSequence[0].CodeValue == "109104"
        assert after.ImageComments.startswith("NOT FOR DIAGNOSIS")
        for keyword in (
            *("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "SliceThickness", "RescaleSlope"),
            *("RescaleIntercept", "BitsStored", "PixelRepresentation", "WindowCenter", "WindowWidth", "SOPInstanceUID"),
        ):
            assert after[keyword] == before[keyword]


def test_what_it_writes_is_sound(done: tuple[list[Instance], list[Step]]) -> None:
    pairs = [Pair(one.name, one.original, one.candidate) for one in done[0]]
    verdict = judge_encoding(pairs)
    assert {finding.rule for finding in verdict.findings} <= {"does not say YES", "no method stated"}  # the header's
    assert verdict.outcome is Outcome.HOLD


def test_the_same_study_twice_gives_the_same_bytes_and_another_key_another_head(
    models: Path, study: list[Path], tmp_path: Path, done: tuple[list[Instance], list[Step]]
) -> None:
    again, other = (instances(study, tmp_path / name) for name in ("again", "other"))
    run(again, models, tmp_path / "estimates")
    run(other, models, tmp_path / "estimates", seed=b"t" * 32)
    assert [one.candidate.read_bytes() for one in again] == [one.candidate.read_bytes() for one in done[0]]
    assert (volumes([one.candidate for one in other])["T1"] != volumes([one.candidate for one in again])["T1"]).any()


def test_the_estimate_holds_no_pixel_of_the_original(models: Path, study: list[Path], tmp_path: Path) -> None:
    run(instances(study, tmp_path / "out"), models, tmp_path / "estimates")
    (stored,) = (tmp_path / "estimates").glob("*/arrays.npz")
    with np.load(stored) as arrays:
        for name in ("T1", "FLAIR"):
            kept = arrays[f"a_kept_{name}"]
            assert kept.any()
            assert not arrays[f"a_stored_{name}"][kept].any()


@pytest.mark.parametrize("lesion", ["latent", "style"])
def test_a_decoded_lesion_is_not_the_original_s(models: Path, study: list[Path], tmp_path: Path, lesion: str) -> None:
    group = instances(study, tmp_path / "out")
    run(group, models, tmp_path / "estimates", lesion=lesion)
    before, after = (volumes(paths)["T1"] for paths in ([g.original for g in group], [g.candidate for g in group]))
    assert (after != before)[lesion_of(PERSON)].mean() > 0.9


# -- what holds ---------------------------------------------------------------------------------------------------


def held(group: list[Instance], models: Path, tmp_path: Path, **parameters: Any) -> Hold:
    before = [one.candidate.read_bytes() for one in group]
    with pytest.raises(Hold) as hold:
        run(group, models, tmp_path / "estimates", **parameters)
    assert [one.candidate.read_bytes() for one in group] == before
    return hold.value


def changed(study: list[Path], folder: Path, change: Callable[[Dataset], None]) -> list[Path]:
    """Copies of the study's objects, each changed."""
    folder.mkdir()
    out = []
    for number, path in enumerate(study):
        dataset = pydicom.dcmread(path)
        change(dataset)
        out.append(folder / f"{number:04d}.dcm")
        dataset.save_as(out[-1])
    return out


def test_a_study_without_a_mask_is_held(models: Path, study: list[Path], tmp_path: Path) -> None:
    images = [path for path in study if modality_of(path) == "MR"]
    assert held(instances(images, tmp_path / "out"), models, tmp_path).reason == "lesion_mask_missing"


def test_an_empty_mask_is_held(models: Path, study: list[Path], tmp_path: Path) -> None:
    def empty(dataset: Dataset) -> None:
        if dataset.Modality == "SEG":
            dataset.PixelData = bytes(len(dataset.PixelData))

    group = instances(changed(study, tmp_path / "in", empty), tmp_path / "out")
    assert held(group, models, tmp_path).reason == "lesion_mask_empty"


def test_a_segment_that_is_no_lesion_is_no_mask(models: Path, study: list[Path], tmp_path: Path) -> None:
    def brain(dataset: Dataset) -> None:
        for segment in dataset.get("SegmentSequence", ()):
            segment.SegmentLabel = "brain"
            segment.SegmentedPropertyCategoryCodeSequence[0].CodeValue = "123037004"
            segment.SegmentedPropertyTypeCodeSequence[0].CodeValue = "12738006"

    paths = changed(study, tmp_path / "in", brain)
    assert held(instances(paths, tmp_path / "out"), models, tmp_path).reason == "lesion_mask_missing"
    group = instances(paths, tmp_path / "named")
    run(group, models, tmp_path / "estimates", labels=("Brain",))  # the policy says that it is one
    assert group[0].candidate.read_bytes() != group[0].original.read_bytes()


def test_a_mask_in_another_space_is_held(models: Path, study: list[Path], tmp_path: Path) -> None:
    def elsewhere(dataset: Dataset) -> None:
        if dataset.Modality == "SEG":
            dataset.FrameOfReferenceUID = "2.25.99"

    group = instances(changed(study, tmp_path / "in", elsewhere), tmp_path / "out")
    assert held(group, models, tmp_path).reason == "lesion_mask_unusable"


def test_a_study_of_another_kind_is_held(models: Path, study: list[Path], tmp_path: Path) -> None:
    """The same head at a third of its size: no adult's."""

    def shrunk(dataset: Dataset) -> None:
        if dataset.Modality == "MR":
            dataset.PixelSpacing = [float(one) / 3 for one in dataset.PixelSpacing]
            dataset.ImagePositionPatient = [float(one) / 3 for one in dataset.ImagePositionPatient]
        else:
            shared = dataset.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0]
            shared.PixelSpacing = [float(one) / 3 for one in shared.PixelSpacing]
            for group in dataset.PerFrameFunctionalGroupsSequence:
                place = group.PlanePositionSequence[0]
                place.ImagePositionPatient = [float(one) / 3 for one in place.ImagePositionPatient]

    hold = held(instances(changed(study, tmp_path / "in", shrunk), tmp_path / "out"), models, tmp_path)
    assert hold.reason == "outside_domain"
    assert "head x (mm)" in hold.at


def test_a_card_that_is_not_there_holds(study: list[Path], tmp_path: Path) -> None:
    assert held(instances(study, tmp_path / "out"), tmp_path, tmp_path).reason == "card_unusable"


# -- what shows the old anatomy -----------------------------------------------------------------------------------


def with_localiser(study: list[Path], folder: Path) -> list[Path]:
    folder.mkdir()
    dataset = pydicom.dcmread(next(path for path in study if modality_of(path) == "MR"))
    dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = "2.25.7"
    dataset.SeriesInstanceUID, dataset.SeriesDescription = "2.25.8", "localizer"
    dataset.save_as(folder / "localiser.dcm")
    return [*study, folder / "localiser.dcm"]


def test_one_untouched_picture_holds_or_is_left_out(models: Path, study: list[Path], tmp_path: Path) -> None:
    paths = with_localiser(study, tmp_path / "in")
    hold = held(instances(paths, tmp_path / "out"), models, tmp_path)
    assert hold.reason == "lesion_surroundings"
    steps = run(instances(paths, tmp_path / "again"), models, tmp_path / "estimates", uncovered="drop")
    assert [bool(step.dropped) for step in steps] == [False] * len(study) + [True]


def test_a_series_in_another_space_does_not_stay(models: Path, study: list[Path], tmp_path: Path) -> None:
    def moved(dataset: Dataset) -> None:
        if dataset.get("SeriesDescription") == "FLAIR":
            dataset.FrameOfReferenceUID = "2.25.98"

    group = instances(changed(study, tmp_path / "in", moved), tmp_path / "out")
    hold = held(group, models, tmp_path)
    assert (hold.reason, "another frame of reference" in hold.at) == ("lesion_surroundings", True)


def test_a_series_on_a_grid_of_its_own_shows_the_same_new_head_and_its_own_lesion(
    models: Path, study: list[Path], tmp_path: Path
) -> None:
    """FLAIR as it was, T1 without its outer columns: what both show of the new head is the same."""

    def cut(dataset: Dataset) -> None:
        if dataset.get("SeriesDescription") == "T1":
            dataset.PixelData = np.ascontiguousarray(dataset.pixel_array[:, 2:-2]).tobytes()
            dataset.Columns -= 4
            x, y, z = dataset.ImagePositionPatient
            dataset.ImagePositionPatient = [float(x) + 2 * MM[2], y, z]

    group = instances(changed(study, tmp_path / "in", cut), tmp_path / "out")
    run(group, models, tmp_path / "estimates")
    before, after = (volumes(some) for some in ([g.original for g in group], [g.candidate for g in group]))
    kept = ndimage.distance_transform_edt(~lesion_of(PERSON), sampling=MM) <= 2.0
    np.testing.assert_array_equal(after["FLAIR"][kept], before["FLAIR"][kept])
    inner = kept[:, :, 2:-2]
    np.testing.assert_array_equal(after["T1"][inner], before["T1"][inner])
    np.testing.assert_array_equal(after["T1"] > 0, (after["FLAIR"] > 0)[:, :, 2:-2])
    head = (before["T1"] > 0) & ~inner
    assert (after["T1"] != before["T1"])[head].mean() > 0.9


def test_an_icon_of_the_old_head_goes(models: Path, study: list[Path], tmp_path: Path) -> None:
    def icon(dataset: Dataset) -> None:
        if dataset.Modality == "MR":
            small = Dataset()
            small.Rows = small.Columns = 2
            small.SamplesPerPixel, small.PhotometricInterpretation = 1, "MONOCHROME2"
            small.BitsAllocated, small.BitsStored, small.HighBit, small.PixelRepresentation = 8, 8, 7, 0
            small.PixelData = b"\1\2\3\4"
            dataset.IconImageSequence = [small]

    group = instances(changed(study, tmp_path / "in", icon), tmp_path / "out")
    run(group, models, tmp_path / "estimates")
    assert not any("IconImageSequence" in pydicom.dcmread(one.candidate) for one in group)


def outlined(image: Dataset, middle: int) -> list[np.ndarray]:
    """A square of 40 mm about the lesion's middle on three slices, in LPS mm."""
    _, y, x = (float(one) for one in ndimage.center_of_mass(lesion_of(PERSON)))
    start = np.array([float(one) for one in image.ImagePositionPatient])
    out = []
    for number in range(middle - 1, middle + 2):
        centre = start + np.array([x * MM[2], y * MM[1], number * MM[0]])
        out.append(centre + np.array([[-20, -20, 0], [20, -20, 0], [20, 20, 0], [-20, 20, 0]], float))
    return out


def test_contours_are_a_mask_and_go_along_when_they_draw_the_lesion_alone(
    models: Path, study: list[Path], tmp_path: Path
) -> None:
    images = [path for path in study if modality_of(path) == "MR"]
    first = min(map(pydicom.dcmread, images), key=lambda one: float(one.ImagePositionPatient[2]))
    middle = round(ndimage.center_of_mass(lesion_of(PERSON))[0])
    polygons = outlined(first, middle)
    for name, others in {"alone": {}, "both": {"Brainstem": polygons}}.items():
        folder = tmp_path / name
        folder.mkdir()
        structures(first, {"GTV": polygons, **others}).save_as(folder / "rt.dcm", enforce_file_format=True)
        group = instances([*images, folder / "rt.dcm"], folder / "out")
        steps = run(group, models, folder / "estimates", uncovered="drop")
        assert bool(steps[-1].dropped) is (name == "both")
        before, after = (volumes(some)["T1"] for some in ([g.original for g in group], [g.candidate for g in group]))
        z, y, x = (round(one) for one in ndimage.center_of_mass(lesion_of(PERSON)))
        square = np.s_[middle - 1 : middle + 2, y - 2 : y + 3, x - 2 : x + 3]  # 40 mm of 8 mm
        np.testing.assert_array_equal(after[square], before[square])
        outside = before[z] > 0
        outside[y - 5 : y + 6, x - 5 : x + 6] = False
        assert (after[z] != before[z])[outside].mean() > 0.9


def test_a_study_that_shows_nothing_passes_untouched(models: Path, tmp_path: Path, pydicom_files: list[Path]) -> None:
    plan = next(path for path in pydicom_files if path.name == "rtplan.dcm")
    shutil.copy(plan, tmp_path / "plan.dcm")
    group = instances([tmp_path / "plan.dcm"], tmp_path / "out")
    (step,) = run(group, models, tmp_path / "estimates")
    assert not step.dropped
    assert group[0].candidate.read_bytes() == plan.read_bytes()
