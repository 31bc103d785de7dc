"""Could this volume hold a head at all? Cross-sections of the body, level by level, against the sizes of heads."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from gateway.volumes import Volume

GRID_MM = 4.0
WIDTH_MM, DEPTH_MM = (90.0, 225.0), (135.0, 275.0)  # of heads at the level of the brows, children to large adults
LEVEL_SHARE = 0.02  # levels with almost no tissue say nothing


class Size(StrEnum):
    """What the cross-sections say."""

    POSSIBLE = "possible"  # some level has the size of a head
    IMPOSSIBLE = "impossible"  # every level is seen whole, or is larger than a head already, and none has its size
    UNKNOWN = "unknown"  # tissue is cut off by the edge of what was imaged


def head_size(volume: Volume, tissue: NDArray[np.bool_]) -> Size:
    """`tissue` as `head_tissue.tissue_of` gives it. Levels are axial in the patient, whatever the slices are."""
    from scipy import ndimage

    there, imaged = _axial(tissue, volume.affine)
    unknown = False
    for level, seen in zip(there, imaged, strict=True):
        if level.sum() < LEVEL_SHARE * max(seen.sum(), 1) or level.sum() < 16:
            continue
        labels, _ = ndimage.label(level)
        section = labels == np.argmax(np.bincount(labels.ravel())[1:]) + 1
        depth, width = (int(np.ptp(np.flatnonzero(section.any(axis)))) + 1 for axis in (1, 0))
        if width * GRID_MM > WIDTH_MM[1] or depth * GRID_MM > DEPTH_MM[1]:
            continue
        if (ndimage.binary_dilation(section, iterations=2) & ~seen).any():
            unknown = True
        elif width * GRID_MM >= WIDTH_MM[0] and depth * GRID_MM >= DEPTH_MM[0]:
            return Size.POSSIBLE
    return Size.UNKNOWN if unknown else Size.IMPOSSIBLE


def _axial(tissue: NDArray[np.bool_], affine: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(tissue, imaged) on a grid along LPS, with an edge of what was not imaged around it."""
    from scipy import ndimage

    corners = np.array(
        [[c * (n - 1) for c, n in zip(corner, tissue.shape[::-1], strict=True)] for corner in np.ndindex(2, 2, 2)]
    )
    points = corners @ affine[:3, :3].T + affine[:3, 3]
    low, high = points.min(0) - 2 * GRID_MM, points.max(0) + 2 * GRID_MM
    shape = tuple(int(one) for one in np.ceil((high - low) / GRID_MM).astype(int)[::-1] + 1)
    grid = np.diag([GRID_MM] * 3 + [1.0])
    grid[:3, 3] = low
    matrix = np.linalg.inv(affine) @ grid
    order = matrix[:3, :3][::-1, ::-1], matrix[:3, 3][::-1]
    padded = {"output_shape": shape, "order": 0, "mode": "constant"}
    there = ndimage.affine_transform(tissue.astype(np.uint8), *order, **padded)
    seen = ndimage.affine_transform(np.ones(tissue.shape, np.uint8), *order, **padded)
    return there > 0, seen > 0
