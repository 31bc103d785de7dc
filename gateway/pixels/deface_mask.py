"""The mask of one head: regions of the template, laid over any plane of the patient's frame of reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.deface_guard import template_guard
from gateway.pixels.head_template import head_template
from gateway.volumes import Plane

ROOT_MM, BESIDE_EAR_MM = 10.0, 6.0  # further into the head; up, down, forward and back
NEAR_MM = 12.0  # either side: a plane that comes nowhere nearer to the mask is left without looking at every pixel
OBLIQUE = 1.6  # the longest way in template mm of one mm along rows and along columns, heads being of different sizes
MOST_COARSE = 16  # pixels
BLOCK = 1 << 16  # pixels that are looked at together: bounds the memory, whatever the size of a frame

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
        deep = plane.thickness_mm > head_template().spacing_mm
        depths = (-1 / 3, 0.0, 1 / 3) if deep else (0.0,)  # of the thickness
        window = self._window(matrix, plane, depths)
        if window is None:
            return None
        whole = np.zeros((plane.rows, plane.columns), bool)
        high = max(1, BLOCK // (window[1].stop - window[1].start))
        for first in range(window[0].start, window[0].stop, high):
            part = slice(first, min(first + high, window[0].stop)), window[1]
            rows, columns = np.mgrid[part]
            removed = np.zeros(rows.shape, bool)
            protected = np.zeros_like(removed)
            for depth in depths:
                at = _at(matrix, rows, columns, depth)
                removed |= _sample(self._fields[0], at) > 0.5
                protected |= _sample(self._fields[1], at) > 0.25
            whole[part] = removed & ~protected
        return whole if whole.any() else None

    def _window(
        self, matrix: NDArray[np.float64], plane: Plane, depths: tuple[float, ...]
    ) -> tuple[slice, slice] | None:
        """Rows and columns outside of which nothing is removed; None when nothing is anywhere.

        Every pixel is less than `step` pixels from one that is looked at, and so less than `NEAR_MM`.
        """
        step = int(NEAR_MM / (OBLIQUE * max(plane.row_spacing_mm, plane.column_spacing_mm)))
        step = min(max(1, step), MOST_COARSE)
        rows, columns = np.mgrid[0 : plane.rows : step, 0 : plane.columns : step]
        near = np.zeros(rows.shape, bool)
        for depth in depths:
            near |= _sample(self._fields[2], _at(matrix, rows, columns, depth)) > 0
        if not near.any():
            return None
        first, second = (np.flatnonzero(near.any(axis)) * step for axis in (1, 0))
        return (
            slice(max(0, int(first[0]) - step), min(plane.rows, int(first[-1]) + step + 1)),
            slice(max(0, int(second[0]) - step), min(plane.columns, int(second[-1]) + step + 1)),
        )

    @cached_property
    def _fields(self) -> tuple[Field, Field, Field]:
        """`removed`, `protected`, and what is near to the former."""
        from scipy import ndimage

        near = ndimage.maximum_filter(self.removed, 2 * round(NEAR_MM / head_template().spacing_mm) + 1)
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


@cache
def ears_with_roots() -> NDArray[np.bool_]:
    """The template's ears and what they grow out of: people's ears begin further in, and lie elsewhere on the head."""
    from scipy import ndimage

    template = head_template()
    along_x, aside = (2 * round(mm / template.spacing_mm) + 1 for mm in (ROOT_MM, BESIDE_EAR_MM))
    grown = ndimage.maximum_filter(template.ears, size=(aside, aside, along_x))
    return np.asarray(grown & ~template.face, bool)


def mask_of(to_template: NDArray[np.float64], *, ears: bool, protected: NDArray[np.bool_] | None = None) -> Mask:
    """The mask of a head that was aligned. `protected` as `deface_guard` gives it, the template's by default."""
    template = head_template()
    if protected is None:
        protected = template_guard()
    removed = template.face | ears_with_roots() if ears else template.face
    return Mask(removed & ~protected, protected, to_template)
