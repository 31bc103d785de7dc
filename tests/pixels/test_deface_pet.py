"""Heads in PET: skin takes up a tenth of what the brain does, voxels are large, edges are blurred."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pydicom
import pytest
from head_series import head_volume, instances, to_template, truth, values_of, write_series
from scipy import ndimage

from gateway.errors import Hold
from gateway.gate.reading import Pair
from gateway.gate.residual_face import ResidualFace
from gateway.pixels import deface_find
from gateway.pixels.deface import Deface
from gateway.pixels.head_alignment import Alignment
from gateway.pixels.head_template import head_template
from gateway.pixels.head_tissue import lifted, tissue_of
from gateway.pixels.stage import Instance
from gateway.study import Outcome
from gateway.volumes import Volume

WORK: Any = SimpleNamespace(policy=SimpleNamespace(digest="d"), seed=b"s" * 32)
CT = head_volume("CT")
BRAIN, HEAD = truth(head_template().brain, CT), CT.values > -500
FAR = ndimage.distance_transform_edt(~head_template().brain) * 2 > 20
FACE = truth(ndimage.binary_erosion(head_template().face & head_template().head, iterations=3) & FAR, CT)


def pet_volume(skin_suv: float = 0.7, seed: int = 3) -> Volume:
    """Synthetic FDG in hundredths of an SUV: brain 6, the rest `skin_suv`, 6 mm blur, noise that grows with uptake."""
    random = np.random.default_rng(seed)
    clean = ndimage.gaussian_filter(np.where(BRAIN, 6.0, np.where(HEAD, skin_suv, 0.02)), (0.4, 0.7, 0.7))
    noise = random.normal(0, 1, clean.shape) * (0.04 + 0.08 * np.sqrt(clean))
    return Volume((100 * np.maximum(clean + noise, 0)).astype(np.float32), CT.affine)


def write_pet(volume: Volume, folder: Path) -> list[Path]:
    paths = write_series(volume, folder, series="p")
    for path in paths:
        dataset = pydicom.dcmread(path)
        dataset.Modality, dataset.Units = "PT", "GML"
        dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.128"
        dataset.RescaleSlope, dataset.RescaleIntercept = 0.01, 0
        dataset.save_as(path)
    return paths


def changed(group: list[Instance]) -> np.ndarray:
    return values_of([one.original for one in group]) != values_of([one.candidate for one in group])


def judged(group: list[Instance]) -> Any:
    return ResidualFace().judge([Pair(one.name, one.original, one.candidate) for one in group], WORK)


def test_the_skin_is_tissue_though_the_brain_outshines_it() -> None:
    tissue = tissue_of(lifted(pet_volume()), hounsfield=False)
    assert tissue[FACE].mean() > 0.97
    assert 0.9 < tissue.sum() / ndimage.binary_fill_holes(HEAD).sum() < 1.2


def test_a_head_in_pet_loses_its_face_and_no_voxel_of_its_brain(tmp_path: Path) -> None:
    group = instances(write_pet(pet_volume(), tmp_path / "in"), tmp_path / "out")
    assert judged(group).reason == "residual_face"
    stage = Deface()
    stage.apply(group, WORK, stage.estimate(group, WORK))
    touched = changed(group)
    assert not touched[BRAIN].any()
    after = values_of([one.candidate for one in group])
    assert (after[FACE] < 20).mean() > 0.97  # 0.2 SUV
    verdict = judged(group)
    assert (verdict.outcome, verdict.assessed["faces_before"], verdict.assessed["faces_after"]) == (Outcome.PASS, 1, 0)


def test_pet_and_ct_of_one_frame_of_reference_share_one_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aligned = []

    def counted(volume: Volume, *, hounsfield: bool) -> Any:
        aligned.append(hounsfield)
        return Alignment(np.linalg.inv(to_template()), 1.14, 0.99)

    monkeypatch.setattr(deface_find, "align", counted)
    slices = write_series(CT, tmp_path / "in", "CT")
    group = instances([*slices, *write_pet(pet_volume(), tmp_path / "in")], tmp_path / "out")
    stage = Deface()
    estimate = stage.estimate(group, WORK)
    stage.apply(group, WORK, estimate)
    assert aligned == [True]  # once, and in the CT
    assert set(estimate.facts["masked"].values()) == {0}
    ct, pet = changed(group[: len(slices)]), changed(group[len(slices) :])
    assert not ct[BRAIN].any()
    assert not pet[BRAIN].any()
    assert ct[FACE].mean() > 0.97
    assert pet[FACE].mean() > 0.97
    assert judged(group).outcome is Outcome.PASS


def test_pet_in_which_no_head_can_be_made_out_is_held(tmp_path: Path) -> None:
    """A tracer that stays in the brain: where the face would lie, and whether it shows, nothing says."""
    group = instances(write_pet(pet_volume(skin_suv=0.02), tmp_path / "in"), tmp_path / "out")
    with pytest.raises(Hold, match="face_not_found"):
        Deface().estimate(group, WORK)
