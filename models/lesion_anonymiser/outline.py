"""A new outline of the head: a smooth warp drawn with the study's key, which leaves the lesion where it is.

The displacement u (mm) is normal noise on a lattice of LATTICE_MM, made smooth by cubic splines, times a weight that is
exactly 0 in the kept region and rises to 1 over FADE amplitudes. out(x) = in(x + u(x)). Its Jacobian determinant stays
above JACOBIAN everywhere: nothing folds, so that masks and contours can follow and be followed back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from models.lesion_anonymiser.study import Floats, Mask, Noise, NotAnonymised, SpacingZyx

LATTICE_MM = 45.0
FADE = 4.0  # amplitudes over which the warp begins outside the kept region
JACOBIAN = 0.2
SHRINK, TRIES = 0.8, 20
LOOKED_AT = 8.0  # places over the distance on which the warp begins
INVERSE_STEPS = 60


@dataclass(frozen=True, slots=True)
class Outline:
    """`displacement_mm` (3, z, y, x): where, from each voxel, the value is taken; along z, y, x."""

    displacement_mm: Floats
    spacing_mm: SpacingZyx
    jacobian_min: float

    @property
    def moves(self) -> bool:
        return bool(self.displacement_mm.any())

    def volume(self, volume: Floats) -> Floats:
        """Any volume of the study's grid, warped (linear); bit for bit where nothing moves."""
        if not self.moves:
            return volume.copy()
        out = ndimage.map_coordinates(volume, self._places(), order=1, mode="nearest")
        still = ~self.displacement_mm.any(0)
        out[still] = volume[still]
        return np.asarray(out, volume.dtype)

    def mask(self, mask: Mask) -> Mask:
        """Any mask of the study (SEG), warped as the volumes are."""
        warped: Mask = self.volume(mask.astype(np.float32)) > 0.5
        return warped

    def points(self, points_mm: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where points (n, 3) (z, y, x in mm from the middle of voxel 0) of the original lie after the warp: contours.

        Solves y + u(y) = p by fixed-point iteration, which converges because u changes by less than its distance.
        """
        moved = points_mm.astype(np.float64)
        for _ in range(INVERSE_STEPS):
            moved = points_mm - self._at(moved)
        return moved

    def _at(self, points_mm: NDArray[np.float64]) -> NDArray[np.float64]:
        voxels = (points_mm / self.spacing_mm).T
        return np.stack(
            [ndimage.map_coordinates(one, voxels, order=1, mode="nearest") for one in self.displacement_mm], 1
        )

    def _places(self) -> Floats:
        shape = self.displacement_mm.shape[1:]
        base = np.stack(np.meshgrid(*(np.arange(n, dtype=np.float32) for n in shape), indexing="ij"))
        return base + self.displacement_mm / np.asarray(self.spacing_mm, np.float32)[:, None, None, None]


def draw_outline(kept: Mask, spacing_mm: SpacingZyx, amplitude_mm: float, noise: Noise) -> Outline:
    """A warp that is 0 in `kept` (the dilated lesion) and moves at most `amplitude_mm`. Purpose "outline".

    Raises NotAnonymised when no warp of a useful size stays invertible.
    """
    spacing = np.asarray(spacing_mm)
    if amplitude_mm == 0:
        return Outline(np.zeros((3, *kept.shape), np.float32), spacing_mm, 1.0)
    field = _smooth(kept.shape, spacing, noise)
    field *= amplitude_mm / max(float(np.sqrt((field**2).sum(0)).max()), 1e-9)
    if kept.any():
        share = ndimage.distance_transform_edt(~kept, sampling=spacing_mm) / (FADE * amplitude_mm)
        share = np.clip(share, 0, 1)
        field *= (share * share * (3 - 2 * share)).astype(np.float32)
    # The field changes over FADE amplitudes and more: fine grids are looked at in every few voxels.
    every = np.maximum(1, FADE * amplitude_mm / LOOKED_AT / spacing).astype(int)
    looked_at = (slice(None), *(slice(None, None, int(one)) for one in every))
    for _ in range(TRIES):
        least, slope = _jacobian_and_slope(field[looked_at], spacing * every)
        if least > JACOBIAN and slope < 1 - JACOBIAN:
            return Outline(field, spacing_mm, least)
        field *= SHRINK
    raise NotAnonymised("no smooth warp of the head's outline fits around the lesion")


def _smooth(shape: tuple[int, ...], spacing: NDArray[np.float64], noise: Noise) -> Floats:
    """Cubic splines through normal noise on a lattice that covers the grid."""
    nodes = [int(np.ceil(n * mm / LATTICE_MM)) + 3 for n, mm in zip(shape, spacing, strict=True)]
    lattice = noise((3, *nodes), "outline").double().numpy()
    z, y, x = (_splines(n, k, mm / LATTICE_MM) for n, k, mm in zip(shape, nodes, spacing, strict=True))
    return np.asarray(np.einsum("za,yb,xc,iabc->izyx", z, y, x, lattice, optimize=True), np.float32)


def _splines(n: int, nodes: int, step: float) -> NDArray[np.float64]:
    """(n, nodes): values at n places, `step` apart from node 1 on, of the cubic spline through each unit vector."""
    places = [np.arange(n) * step + 1]
    return np.stack([ndimage.map_coordinates(unit, places, order=3, mode="nearest") for unit in np.eye(nodes)], 1)


def _jacobian_and_slope(field: Floats, spacing: NDArray[np.float64]) -> tuple[float, float]:
    """The least determinant of 1 + du/dx, and the largest rate (Frobenius) at which u changes."""
    parts = []
    for one in field:
        rows = [
            np.gradient(one, mm, axis=axis) if n > 1 else np.zeros_like(one)
            for axis, (mm, n) in enumerate(zip(spacing, one.shape, strict=True))
        ]
        parts.append(rows)
    (a, b, c), (d, e, f), (g, h, i) = parts
    a, e, i = a + 1, e + 1, i + 1
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    square = (a - 1) ** 2 + b**2 + c**2 + d**2 + (e - 1) ** 2 + f**2 + g**2 + h**2 + (i - 1) ** 2
    return float(determinant.min()), float(np.sqrt(square.max()))
