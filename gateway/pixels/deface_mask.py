"""The mask of one head: regions of the template, laid over any plane of the patient's frame of reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.head_template import head_template
from gateway.volumes import Plane

PROTECT_MM = 11.0  # around the template's brain: brains differ after an affine alignment
COARSE = 8  # pixels: a plane that comes nowhere near the mask is left without looking at every pixel
NEAR_MM = 24.0

Field = NDArray[np.float32]


@dataclass(frozen=True)
class Mask:
    """`removed` bool on the template's grid, `protected` too; `to_template` (4, 4) from patient to template LPS mm."""

    removed: NDArray[np.bool_]
    protected: NDArray[np.bool_]
    to_template: NDArray[np.float64]

    def packed(self, prefix: str) -> dict[str, NDArray[np.generic]]:
        """As arrays of an estimate."""
        return {
            f"{prefix}removed": np.packbits(self.removed),
            f"{prefix}protected": np.packbits(self.protected),
            f"{prefix}to_template": self.to_template,
        }

    @classmethod
    def unpacked(cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> Mask:
        """Inverse of `packed`."""
        shape = head_template().head.shape
        removed, protected = (
            np.unpackbits(np.asarray(arrays[f"{prefix}{name}"], np.uint8), count=int(np.prod(shape))).reshape(shape) > 0
            for name in ("removed", "protected")
        )
        return cls(removed, protected, np.asarray(arrays[f"{prefix}to_template"], np.float64))

    def on(self, plane: Plane) -> NDArray[np.bool_] | None:
        """(rows, columns) of one plane; None when the plane is clear of it.

        A thick slice shows what lies half its thickness before and behind: what is removed anywhere in it goes, what is
        protected anywhere in it stays, and protection wins.
        """
        matrix = np.linalg.inv(head_template().affine) @ self.to_template @ plane.affine()
        if not self._near(matrix, plane):
            return None
        rows, columns = np.mgrid[0 : plane.rows, 0 : plane.columns]
        deep = plane.thickness_mm > head_template().spacing_mm
        removed = np.zeros((plane.rows, plane.columns), bool)
        protected = np.zeros_like(removed)
        for depth in (-1 / 3, 0.0, 1 / 3) if deep else (0.0,):  # of the thickness
            at = _at(matrix, rows, columns, depth)
            removed |= _sample(self._fields[0], at) > 0.5
            protected |= _sample(self._fields[1], at) > 0.25
        removed &= ~protected
        return removed if removed.any() else None

    def _near(self, matrix: NDArray[np.float64], plane: Plane) -> bool:
        rows, columns = np.mgrid[0 : plane.rows : COARSE, 0 : plane.columns : COARSE]
        return bool((_sample(self._fields[2], _at(matrix, rows, columns, 0.0)) > 0).any())

    @cached_property
    def _fields(self) -> tuple[Field, Field, Field]:
        """`removed`, `protected`, and what is near to the former."""
        from scipy import ndimage

        near = ndimage.maximum_filter(self.removed, round(NEAR_MM / head_template().spacing_mm))
        return self.removed.astype(np.float32), self.protected.astype(np.float32), near.astype(np.float32)


def _at(
    matrix: NDArray[np.float64], rows: NDArray[np.integer], columns: NDArray[np.integer], depth: float
) -> NDArray[np.float64]:
    """Indices (3, rows, columns) z, y, x into the template's grid."""
    x, y, z = (
        matrix[axis, 0] * columns + matrix[axis, 1] * rows + matrix[axis, 2] * depth + matrix[axis, 3]
        for axis in range(3)
    )
    return np.stack([z, y, x])


def _sample(field: Field, at: NDArray[np.float64]) -> Field:
    """Linear; beyond the grid the nearest, so that the air before a long nose belongs to the face."""
    from scipy import ndimage

    return np.asarray(ndimage.map_coordinates(field, at, order=1, mode="nearest", prefilter=False), np.float32)


def mask_of(to_template: NDArray[np.float64], *, ears: bool) -> Mask:
    """The mask of a head that was aligned."""
    from scipy import ndimage

    template = head_template()
    protected = ndimage.distance_transform_edt(~template.brain) * template.spacing_mm <= PROTECT_MM
    removed = template.face | template.ears if ears else template.face
    return Mask(removed & ~protected, protected, to_template)
