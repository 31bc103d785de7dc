"""A grid turned to the axes of learned parts: slices to the head, rows to the back, columns to the left; and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Turn:
    """Axes to swap, then those to flip, until slices go to the head, rows to the back, columns to the left."""

    axes: tuple[int, int, int]
    flips: tuple[int, ...]

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """[slice, row, column] as acquired -> (z, y, x)."""
        return np.ascontiguousarray(np.flip(array.transpose(self.axes), self.flips))

    def affine_of(self, affine: NDArray[np.float64], shape: tuple[int, int, int]) -> NDArray[np.float64]:
        """4x4 from (z, y, x, 1) of the turned array to LPS mm; `affine` and `shape` are those of the acquired one."""
        matrix = np.eye(4)
        matrix[:3, 3] = affine[:3, 3]
        for at, axis in enumerate(self.axes):
            step = affine[:3, 2 - axis]
            matrix[:3, at] = -step if at in self.flips else step
            if at in self.flips:
                matrix[:3, 3] += step * (shape[axis] - 1)
        return matrix

    def back(self, array: NDArray[Any]) -> NDArray[Any]:
        """(z, y, x) -> [slice, row, column] as acquired: the inverse of `of`."""
        return np.ascontiguousarray(np.flip(array, self.flips).transpose(np.argsort(self.axes)))


def upright(affine: NDArray[np.float64]) -> Turn:
    """For [slice, row, column] with `affine` from (column, row, slice) to LPS; oblique grids to the nearest axes."""
    directions = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    left: list[int] = [0, 1, 2]
    chosen: dict[int, int] = {}
    for world in np.argsort(-np.abs(directions).max(1)):  # the clearest first
        column = max(left, key=lambda one: abs(directions[world, one]))
        left.remove(column)
        chosen[int(world)] = column
    wanted = (2, 1, 0)  # to the head, to the back, to the left
    axes = [2 - chosen[world] for world in wanted]
    flips = tuple(at for at, world in enumerate(wanted) if directions[world, chosen[world]] < 0)
    return Turn((axes[0], axes[1], axes[2]), flips)


def tilt(affine: NDArray[np.float64]) -> float:
    """The largest angle in degrees between an axis of the grid and the nearest axis of the patient."""
    directions = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    return float(np.degrees(np.arccos(np.clip(np.abs(directions).max(0).min(), 0, 1))))
