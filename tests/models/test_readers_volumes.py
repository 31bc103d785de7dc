"""Volumes against nibabel's affines, in all 48 orientations, and Lesjak's sets that are made of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from models.cohorts import READERS
from models.cohorts.readers import LayoutError
from models.cohorts.readers.volumes import mask, spacing_mm, volume

nib = pytest.importorskip("nibabel")
TOWARDS = {"R": (1, 0, 0), "L": (-1, 0, 0), "A": (0, 1, 0), "P": (0, -1, 0), "S": (0, 0, 1), "I": (0, 0, -1)}
AXES = ["".join(p) for p in itertools.product("LR", "AP", "IS")]
AXES = [f"{a}{b}{c}" for x in AXES for a, b, c in itertools.permutations(x)]  # all 48


def stored(path: Path, values: np.ndarray, axcodes: str = "RAS", zooms: tuple[float, ...] = (1.0, 2.0, 3.0)) -> Path:
    """A NIfTI file whose voxels lie as `axcodes` say."""
    affine = np.eye(4)
    affine[:3, :3] = np.stack([np.array(TOWARDS[c]) * z for c, z in zip(axcodes, zooms, strict=True)], 1)
    affine[:3, 3] = -20
    assert nib.aff2axcodes(affine) == tuple(axcodes)
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(values, affine), path)
    return path


@pytest.mark.parametrize("axcodes", AXES)
def test_a_volume_has_the_axes_of_a_scan_however_it_is_stored(tmp_path: Path, axcodes: str) -> None:
    shape = (3, 4, 5)
    where = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    path = stored(tmp_path / "v.nii.gz", np.zeros(shape, np.float32), axcodes)
    image = nib.load(path)
    world = nib.affines.apply_affine(image.affine, where)  # mm to right, front, up: what each voxel should mean
    for axis, growth in enumerate((1, -1, -1)):  # slices go up, rows from front to back, columns from right to left
        nib.save(nib.Nifti1Image(world[..., 2 - axis].astype(np.float32), image.affine), path)
        turned = volume(path)
        assert (np.sign(np.diff(turned, axis=axis)) == growth).all()
        assert np.abs(np.diff(turned, axis=(axis + 1) % 3)).max() < 1e-6
    zooms = dict(zip(axcodes, (1.0, 2.0, 3.0), strict=True))
    expected = [next(zooms[c] for c in pair if c in zooms) for pair in ("IS", "AP", "LR")]
    assert spacing_mm(path) == pytest.approx(expected)


def test_grey_values_are_scaled_and_masks_are_not(tmp_path: Path) -> None:
    values = np.zeros((4, 4, 4), np.int16)
    values[1, 2, 3], values[0, 0, 0] = 200, 100
    path = stored(tmp_path / "v.nii", values, "LPS")
    assert volume(path)[3, 2, 1] == pytest.approx(1)
    assert volume(path)[0, 0, 0] == pytest.approx(0.5, abs=0.01)
    assert np.argwhere(mask(path, lambda v: v == 200)).tolist() == [[3, 2, 1]]
    assert not volume(stored(tmp_path / "blank.nii", np.zeros((2, 2, 2), np.float32))).any()
    holes = np.full((2, 2, 2), 5.0, np.float32)
    holes[0, 0, 0] = np.nan
    assert np.isfinite(volume(stored(tmp_path / "nan.nii", holes))).all()


@pytest.mark.shared
def test_lesjak_cross_sectional_lesions_have_the_voxels_that_the_manifest_counts(shared_data: Path) -> None:
    cohort = READERS["lesjak-cross-sectional"](shared_data / "brain_mri")
    counts = {scan.subject: int(scan.masks["lesion"]().sum()) for scan in cohort}
    assert counts == {"LJC_07": 1300, "LJC_19": 49769, "LJC_26": 8227}
    flair = next(s for s in cohort if s.subject == "LJC_19" and s.attributes["sequence"] == "FLAIR")
    image, lesion = flair.load(), flair.masks["lesion"]()
    assert image.shape == lesion.shape
    assert image[lesion].mean() > image[image > 0.05].mean()  # lesions are bright on FLAIR
    assert flair.attributes["finding"] == "multiple sclerosis RR"


@pytest.mark.shared
def test_lesjak_longitudinal_masks_lie_on_their_scans(shared_data: Path) -> None:
    cohort = READERS["lesjak-longitudinal"](shared_data / "brain_mri")
    assert len(cohort) == 17
    again = [s for s in cohort if s.subject == "LJL_03" and s.masks]
    assert {s.day for s in again} == {0, 671}
    for scan in again[:3]:  # of two sequences and visits
        image, brain = scan.load(), scan.masks["brain"]()
        assert image.shape == brain.shape
        assert (image[brain] > 0.03).mean() > 0.97  # the brain is tissue
        assert 900e3 < brain.sum() * np.prod(scan.spacing_mm) < 2000e3  # mm3 of an adult's brain


def lesjak_tree(folder: Path) -> Path:
    """A scan of 4 x 4 x 4 voxels of 1 mm, and a mask on a grid of 6 x 6 x 6 that lies 1 mm farther left."""
    (folder / "manifest.csv").write_text(
        "file,dataset,subject,session,day_offset,sex,age,sequence,finding,lesion_mask\n"
        'set/P01_study1_FLAIR.nii.gz,lesjak-longitudinal,LJL_01,study1,0.0,F,20.8,FLAIR,"MS RR, lesion voxels 1",\n'
        "set/P01_common_lesion_change.nii.gz,lesjak-longitudinal,LJL_01,common-space,,F,,MASK:lesion_change,,\n"
        "set/P01_study1_FLAIR_to_common_space.txt,lesjak-longitudinal,LJL_01,,,,,TRANSFORM,,\n"
        "cs/P07_T1.nii,lesjak-cross-sectional,LJC_07,1,0.0,M,53,T1,MS,cs/P07_lesion.nii\n"
    )
    ones, zooms = np.ones((4, 4, 4), np.uint8), (1.0, 1.0, 1.0)
    stored(folder / "set/P01_study1_FLAIR.nii.gz", ones, "LPS", zooms)
    changed = np.zeros((6, 6, 6), np.uint8)
    changed[3, 1, 0] = 1
    stored(folder / "set/P01_common_lesion_change.nii.gz", changed, "LPS", zooms)
    (folder / "set/P01_study1_FLAIR_to_common_space.txt").write_text(
        "#Insight Transform File V1.0\n#Transform 0\nTransform: MatrixOffsetTransformBase_double_3_3\n"
        "Parameters: 1 0 0 0 1 0 0 0 1 -1 0 0\nFixedParameters: 5 6 7\n"
    )
    lesion = np.zeros((4, 4, 4), np.uint8)
    lesion[0, 1, 2] = 1
    stored(folder / "cs/P07_T1.nii", ones, "RAS", zooms)
    stored(folder / "cs/P07_lesion.nii", lesion, "RAS", zooms)
    return folder


def test_lesjak_masks_are_carried_to_their_scans(tmp_path: Path) -> None:
    (scan,) = READERS["lesjak-longitudinal"](lesjak_tree(tmp_path))
    assert scan.attributes == {"sex": "F", "age_band": "20-39", "sequence": "FLAIR", "finding": "MS RR"}
    # Points of the common space, moved by -1 mm to the left, are points of the scan: x = 3 there is x = 2 here.
    assert np.argwhere(scan.masks["lesion_change"]()).tolist() == [[0, 1, 2]]
    (tmp_path / "set/P01_study1_FLAIR_to_common_space.txt").write_text("Parameters: 1 2 3\n")
    with pytest.raises(LayoutError, match="no ITK affine transform"):
        scan.masks["lesion_change"]()


def test_a_manifest_may_name_volumes_and_their_lesions(tmp_path: Path) -> None:
    (scan,) = READERS["lesjak-cross-sectional"](lesjak_tree(tmp_path))
    assert (scan.subject, scan.spacing_mm, scan.load().shape) == ("LJC_07", (1, 1, 1), (4, 4, 4))
    assert np.argwhere(scan.masks["lesion"]()).tolist() == [[2, 2, 3]]  # right, front: far on both axes of a Scan
