"""A face that is still there holds; what has none passes with what was looked at as its evidence (cases.md 64)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pydicom
import pytest
from head_series import base, block_volume, head_volume, truth, write_enhanced, write_series
from scipy import ndimage

from gateway.gate.face_detector import find_face
from gateway.gate.face_picture import SEEN, face_score
from gateway.gate.face_surface import level_of, surface
from gateway.gate.reading import Pair
from gateway.gate.residual_face import ResidualFace
from gateway.pixels.head_template import head_template
from gateway.study import Outcome, Verdict
from gateway.volumes import Volume

POLICY: Any = SimpleNamespace()
HEAD = head_volume()
FACE = truth(ndimage.binary_dilation(head_template().face, iterations=2), HEAD)
FACELESS = Volume(np.where(FACE, 3, HEAD.values).astype(np.float32), HEAD.affine)


def pairs(originals: list[Path], candidates: list[Path]) -> list[Pair]:
    return [Pair(f"{n:04d}", *both) for n, both in enumerate(zip(originals, candidates, strict=True))]


def judged(originals: list[Path], candidates: list[Path], **parameters: Any) -> Verdict:
    return ResidualFace(**parameters).judge(pairs(originals, candidates), POLICY)


def rules(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.findings}


def test_a_face_that_nobody_removed_holds(tmp_path: Path) -> None:
    verdict = judged([write_enhanced(HEAD, tmp_path / "a")], [write_enhanced(HEAD, tmp_path / "b")])
    assert verdict.outcome is Outcome.HOLD
    assert verdict.reason == "residual_face"
    assert "a face is seen in the surface" in rules(verdict)
    assert "the surface of the original's face is in place" in rules(verdict)
    assert (verdict.assessed["faces_before"], verdict.assessed["faces_after"]) == (1, 1)


@pytest.mark.parametrize("single", [False, True])
def test_a_head_without_its_face_passes(tmp_path: Path, *, single: bool) -> None:
    if single:
        before, after = (write_series(one, tmp_path / name) for one, name in ((HEAD, "a"), (FACELESS, "b")))
    else:
        before, after = [write_enhanced(HEAD, tmp_path / "a")], [write_enhanced(FACELESS, tmp_path / "b")]
    verdict = judged(before, after)
    assert (verdict.outcome, verdict.findings) == (Outcome.PASS, ())
    assert (verdict.assessed["faces_before"], verdict.assessed["faces_after"]) == (1, 0)


def test_a_face_in_ct_is_seen_and_its_removal_too() -> None:
    volume = head_volume("CT")
    face = find_face(volume, hounsfield=True)
    assert face is not None
    assert face.is_seen
    gone = find_face(Volume(np.where(FACE, -1000, volume.values).astype(np.float32), volume.affine), hounsfield=True)
    assert gone is None or not gone.is_seen


def test_the_same_head_from_behind_is_no_face() -> None:
    behind = find_face(Volume(np.ascontiguousarray(HEAD.values[:, ::-1]), HEAD.affine), hounsfield=False)
    assert behind is None or not behind.is_seen


def test_a_face_that_was_only_smoothed_holds(tmp_path: Path) -> None:
    soft = Volume(np.where(FACE, ndimage.gaussian_filter(HEAD.values, 0.7), HEAD.values), HEAD.affine)
    verdict = judged([write_enhanced(HEAD, tmp_path / "a")], [write_enhanced(soft, tmp_path / "b")])
    assert verdict.reason == "residual_face"


def test_an_average_face_in_place_of_the_own_one_is_told_from_it(tmp_path: Path) -> None:
    """With `average_face` another face may be seen, the original's may not. Here the faces are one, so it holds."""
    verdict = judged([write_enhanced(HEAD, tmp_path / "a")], [write_enhanced(HEAD, tmp_path / "b")], average_face=True)
    assert "the surface of the original's face is in place" in rules(verdict)


def test_a_study_without_a_head_passes_with_its_evidence(tmp_path: Path) -> None:
    trunk = write_series(block_volume(), tmp_path / "a")
    verdict = judged(trunk, trunk)
    assert verdict.outcome is Outcome.PASS
    assert verdict.assessed["volumes"] == 1
    assert verdict.assessed["faces_before"] == 0


def test_a_plane_through_the_face_that_was_forgotten_holds(tmp_path: Path) -> None:
    """The volume is clean, its localiser is not: one untouched plane gives the person away."""
    before, after = write_series(HEAD, tmp_path / "a"), write_series(FACELESS, tmp_path / "b")
    sagittal = write_series(HEAD, tmp_path / "c", series="localiser", axis=2)[26]
    clean = write_series(FACELESS, tmp_path / "d", series="localiser", axis=2)[26]
    held = judged([*before, sagittal], [*after, sagittal])
    assert rules(held) == {"a plane through the face keeps the original's pixels"}
    assert held.findings[0].instance == f"{len(before):04d}"
    passed = judged([*before, sagittal], [*after, clean])
    assert (passed.outcome, passed.assessed["planes"]) == (Outcome.PASS, 1)


def picture(path: Path, grey: np.ndarray, change: Callable[[pydicom.Dataset], None] = lambda _: None) -> Path:
    """A capture without a place."""
    dataset = base("MR", "capture", 0, grey.shape)
    dataset.PixelData = grey.astype("<u2").tobytes()
    change(dataset)
    dataset.save_as(path, enforce_file_format=True)
    return path


def portrait() -> np.ndarray:
    """A rendering of the head's surface, as a workstation saves it."""
    seen = surface(HEAD, level_of(HEAD.values, hounsfield=False))
    depth = seen.depth_mm[::-1]
    there = np.isfinite(depth)
    up, across = np.gradient(np.where(there, depth, 300.0), 2.0)
    return np.where(there, 1000 / np.sqrt(1 + up**2 + across**2), 0)


def test_a_rendering_of_a_face_in_a_screenshot_holds(tmp_path: Path) -> None:
    capture = picture(tmp_path / "a", portrait())
    assert rules(judged([capture], [capture])) == {"a face is seen in a picture"}


@pytest.mark.parametrize("modality", ["XC", "OP"])
def test_a_photograph_is_held_whatever_it_shows(tmp_path: Path, modality: str) -> None:
    photograph = picture(tmp_path / "a", np.zeros((64, 64)), lambda dataset: setattr(dataset, "Modality", modality))
    assert rules(judged([photograph], [photograph])) == {"a photograph is not judged by any detector here"}


def test_a_surface_model_is_held(tmp_path: Path) -> None:
    def model(dataset: pydicom.Dataset) -> None:
        item = pydicom.Dataset()
        item.PointCoordinatesData = np.zeros(30, "<f4").tobytes()
        dataset.SurfacePointsSequence = [item]

    path = picture(tmp_path / "a", np.zeros((64, 64)), model)
    assert "a surface model is not judged here" in rules(judged([path], [path]))


def test_pixels_that_cannot_be_decoded_hold_as_unjudged(tmp_path: Path) -> None:
    before = write_series(HEAD, tmp_path / "a")
    after = write_series(FACELESS, tmp_path / "b")
    dataset = pydicom.dcmread(after[3])
    dataset.PixelData = dataset.PixelData[:-200]
    dataset.save_as(after[3])
    verdict = judged(before, after)
    assert verdict.reason == "gate_failed"


@pytest.mark.shared
def test_radiographs_are_no_faces(shared_data: Path) -> None:
    """`face_picture` must stay silent on what it is evidence for."""
    from PIL import Image

    films = sorted((shared_data / "cxr" / "hannover").rglob("*.png"))[::30]
    scores = [face_score(np.asarray(Image.open(film).convert("L"))) for film in films]
    assert len(films) > 5
    assert max(scores) < SEEN


@pytest.mark.parametrize("wrong", [{"max_kept": 1.0}, {"max_likeness": -0.1}])
def test_senseless_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="shares"):
        ResidualFace(**wrong)
