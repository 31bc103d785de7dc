"""The brain itself, depth by depth, in the template's pose: what the pixel criterion of a release compares.

No network and no training: the template is laid over the head, and the scan is read at fixed points of the template's
brain, `DEPTHS_MM` apart from feet to head and `POINTS_MM` apart within a depth. Mean 0 and variance 1 over the brain,
so that a scanner's scale, or a change of it, counts for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import NotPrepared, a_volume
from models.cards import Card, CardError
from models.preparation.registration import STEP_MM, align, template

DEPTHS_MM, POINTS_MM = 12.0, 8.0
LEAST_POINTS = 40  # of a depth: with fewer it is the rim of the brain


@lru_cache(maxsize=1)
def points() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(n, 3) in mm (zyx) from the template's centre, ordered by depth, and (n,) the number of each one's depth."""
    brain = template().brain_zyx
    deep, apart = round(DEPTHS_MM / STEP_MM), round(POINTS_MM / STEP_MM)
    found, depth, count = [], [], 0
    for z in range(0, len(brain), deep):
        rows, columns = np.nonzero(brain[z, ::apart, ::apart])
        if len(rows) >= LEAST_POINTS:
            found.append(np.stack([np.full(len(rows), z), rows * apart, columns * apart], 1))
            depth.append(np.full(len(rows), count))
            count += 1
    middle = (np.array(brain.shape) - 1) / 2
    return (np.concatenate(found) - middle) * STEP_MM, np.concatenate(depth)


def brain_at_depths(volume_zyx: Pixels, spacing_mm: Spacing = None) -> Pixels:
    """(slices, rows, columns) -> (n,) at `points`. Raises NotPrepared for what is no volume, or has no contrast."""
    a_volume(volume_zyx)
    if spacing_mm is None or len(spacing_mm) != 3 or not all(one > 0 for one in spacing_mm):
        raise NotPrepared("this encoder needs the distance of voxels in mm, and the scan does not say it")
    try:
        found = align(volume_zyx, spacing_mm)
    except ValueError:
        raise NotPrepared("the volume is empty: nothing can be compared with it") from None
    spacing, middle = np.array(spacing_mm), (np.array(volume_zyx.shape) - 1) / 2
    smooth = ndimage.gaussian_filter(np.asarray(volume_zyx, np.float32), 0.25 * POINTS_MM / spacing)
    places = (points()[0] @ found.matrix.T + found.shift_mm) / spacing + middle
    values = ndimage.map_coordinates(smooth, places.T, order=1, cval=0.0).astype(np.float64)
    spread = float(values.std())
    if spread <= 0:
        raise NotPrepared("there is no contrast where the brain should be")
    return np.asarray((values - values.mean()) / spread, np.float32)


def encoder(card: Card, tensors: Mapping[str, Tensor]) -> Encoder:
    """(slices, rows, columns) and spacing -> (n,). Raises CardError for a card that brings weights."""
    if tensors:
        raise CardError(f"{card.name} has no network, and brings weights for one")
    return brain_at_depths
