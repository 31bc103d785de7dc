"""The array of a stack: rescaled values, or reduced to about a wanted spacing while it is read.

One frame is in memory beside the result, so a 1 GB object read at 2 mm takes a few tens of MB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.volumes.planes import Plane
from gateway.volumes.stacks import Stack

Stored = Callable[[Plane], NDArray[np.generic]]  # the stored values of a plane's frame, (rows, columns)


@dataclass(frozen=True, slots=True)
class Volume:
    """`values` float32 [slice, row, column]; `affine` from (column, row, slice, 1) to LPS mm."""

    values: NDArray[np.float32]
    affine: NDArray[np.float64]

    @property
    def spacing_mm(self) -> NDArray[np.float64]:
        """(3,) along column, row and slice index."""
        return np.asarray(np.linalg.norm(self.affine[:3, :3], axis=0))


def read(stack: Stack, stored: Stored, spacing_mm: float = 0.0) -> Volume:
    """Values after the modality transform (PS3.3 C.11.1). Raises Hold("geometry_unsuitable") for another size of
    frame.

    With `spacing_mm`, whole voxels are averaged to at most that spacing (never interpolated, never coarser than it).
    """
    slices, rows, columns = stack.shape
    by = [max(1, int(spacing_mm // one + 1e-6)) if spacing_mm else 1 for one in stack.spacing_mm]
    by = [min(one, count) for one, count in zip(by, (columns, rows, slices), strict=True)]
    shape = slices // by[2], rows // by[1], columns // by[0]
    values = np.zeros(shape, np.float32)
    for index in range(shape[0] * by[2]):
        plane = stack.planes[index]
        frame = np.asarray(stored(plane))
        if frame.shape != (rows, columns):
            raise Hold("geometry_unsuitable", at=f"frame {plane.frame}: not the size that the header states")
        cut = frame[: shape[1] * by[1], : shape[2] * by[0]].astype(np.float32)
        mean = cut.reshape(shape[1], by[1], shape[2], by[0]).mean((1, 3), dtype=np.float32)
        values[index // by[2]] += (mean * np.float32(plane.slope) + np.float32(plane.intercept)) / by[2]
    affine = stack.affine.copy()
    affine[:3, 3] += affine[:3, :3] @ ((np.array(by) - 1) / 2)
    affine[:3, :3] *= np.array(by)
    return Volume(np.where(np.isfinite(values), values, 0).astype(np.float32), affine)
