"""The audit's forms of one scan: aligned where the truth is known, stripped, and mapped in the order of brightness."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from models.cohorts import synthetic_brains
from models.preparation import PREPARATIONS, align, brain_of, prepare, resampled
from models.preparation.registration import STEP_MM, template


def test_a_template_that_was_turned_and_shifted_is_found_again() -> None:
    made = template()
    turn = Rotation.from_euler("xyz", [6, -4, 8], degrees=True).as_matrix()
    from scipy import ndimage

    middle = (np.array(made.image_zyx.shape) - 1) / 2
    shift = np.array([2.0, -1.5, 1.0])  # voxels
    scan = ndimage.affine_transform(made.image_zyx, turn.T, middle - turn.T @ (middle + shift), order=1)
    found = align(scan.astype(np.float32), (STEP_MM,) * 3)
    assert Rotation.from_matrix(found.rotation @ turn.T).magnitude() < np.radians(1.5)
    np.testing.assert_allclose(found.shift_mm, shift * STEP_MM, atol=1.5)
    assert found.scale == pytest.approx(1, abs=0.02)
    back = resampled(scan.astype(np.float32), (STEP_MM,) * 3, found)
    assert np.corrcoef(back.ravel(), made.image_zyx.ravel())[0, 1] > 0.97
    again = align(scan.astype(np.float32), (STEP_MM,) * 3)
    assert np.array_equal(again.matrix, found.matrix)


def test_the_brain_of_a_synthetic_head_is_found_without_its_mask() -> None:
    (scan,) = synthetic_brains(people=1, sessions=1, seed=5, spacing_mm=4.0)
    volume, brain = scan.load(), scan.masks["brain"]()
    assert scan.spacing_mm is not None
    found = brain_of(volume, scan.spacing_mm, align(volume, scan.spacing_mm))
    assert 2 * (found & brain).sum() / (found.sum() + brain.sum()) > 0.88
    stripped = prepare("skull-stripped", volume, scan.spacing_mm, brain)
    assert np.array_equal(stripped[brain], volume[brain])
    assert not stripped[~brain].any()
    tissues = prepare("tissue-mapped", volume, scan.spacing_mm, brain)
    assert set(np.unique(tissues)) == {np.float32(0), np.float32(1 / 3), np.float32(2 / 3), np.float32(1)}
    means = [volume[tissues == level].mean() for level in np.unique(tissues)[1:]]
    assert means == sorted(means)


@pytest.mark.parametrize("name", PREPARATIONS)
def test_every_form_keeps_the_size(name: str) -> None:
    (scan,) = synthetic_brains(people=1, sessions=1, seed=5, spacing_mm=6.0)
    volume = scan.load()
    assert scan.spacing_mm is not None
    made = prepare(name, volume, scan.spacing_mm, scan.masks["brain"]())
    assert made.shape == volume.shape
    assert made.dtype == np.float32


def test_what_is_no_volume_or_empty_is_refused() -> None:
    with pytest.raises(ValueError, match="volumes"):
        prepare("raw", np.zeros((4, 4), np.float32), (1.0, 1.0))
    with pytest.raises(ValueError, match="empty"):
        align(np.zeros((8, 8, 8), np.float32), (4.0, 4.0, 4.0))
