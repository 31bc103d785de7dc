"""The brain at fixed places of a template: the same for a head that was moved and dimmed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from gateway.embed import open_embedder
from models.audit_encoders.brain_depths import LEAST_POINTS, brain_at_depths, points
from models.audit_encoders.inputs import NotPrepared
from models.cohorts import synthetic_brains

MM = (4.0, 4.0, 4.0)


def test_a_moved_and_dimmed_head_reads_the_same() -> None:
    (one,) = (scan.load() for scan in synthetic_brains(1, 1, 3, "easy", spacing_mm=4.0))
    card = open_embedder("brain-depths")
    read = card.embed(one, MM)
    assert read.shape == (len(points()[0]),)
    assert abs(float(read.mean())) < 1e-3
    assert float(read.std()) == pytest.approx(1, abs=1e-3)
    moved = card.embed(ndimage.shift(0.6 * one + 0.1 * (one > 0), (1.4, -2.3, 1.7), order=1).astype(np.float32), MM)
    assert ((moved - read) ** 2).mean() < 0.2


def test_depths_go_from_feet_to_head_and_none_is_a_rim() -> None:
    places, depth = points()
    assert (np.diff(depth) >= 0).all()
    assert (np.bincount(depth) >= LEAST_POINTS).all()
    heights = [places[depth == one, 0] for one in np.unique(depth)]
    assert all(np.ptp(one) == 0 for one in heights)
    assert np.diff([one[0] for one in heights]).min() > 0


def test_what_is_no_head_of_known_size_is_not_read() -> None:
    for volume, spacing in ((np.zeros((20, 20, 20)), MM), (np.ones((9, 9)), None), (np.random.rand(9, 9, 9), None)):
        with pytest.raises(NotPrepared):
            brain_at_depths(volume.astype(np.float32), spacing)
