"""The sequences of a study turned to (z, y, x), feet to head, as the models have them; and all of them on one grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.pixels.deface_study import Pixels
from gateway.pixels.lesion_masks import Mask
from gateway.pixels.lesion_study import Survey, same_grid
from gateway.pixels.stage import Instance
from gateway.volumes import Stack, Turn, read, tilt, upright

if TYPE_CHECKING:
    from models.lesion_anonymiser import LesionStudy

STEEPEST_DEGREES = 20.0


@dataclass(frozen=True, slots=True)
class Upright:
    """One sequence: `values` and `lesion` (z, y, x); no voxel of `lesion` where nobody drew one."""

    stack: Stack
    turn: Turn
    values: NDArray[np.float32]
    lesion: Mask

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        columns, rows, slices = self.stack.spacing_mm
        z, y, x = ((slices, rows, columns)[axis] for axis in self.turn.axes)
        return z, y, x

    @property
    def affine(self) -> NDArray[np.float64]:
        """4x4 from (z, y, x, 1) to LPS mm."""
        return self.turn.affine_of(self.stack.affine, self.stack.shape)


def read_upright(group: Sequence[Instance], found: Survey) -> dict[str, Upright]:
    """By name, the sequence that covers most first. Raises Hold: outside_domain, pixels_unreadable,
    geometry_unsuitable.
    """
    pixels, series = Pixels(group), {}
    try:
        for name, stack in found.sequences.items():
            if tilt(stack.affine) > STEEPEST_DEGREES:
                raise Hold("outside_domain", at=f"orientation of {name}")
            turn = upright(stack.affine)
            values = turn.of(read(stack, pixels).values)
            drawn = found.lesions.get(name)
            series[name] = Upright(
                stack, turn, values, turn.of(drawn) if drawn is not None else np.zeros(values.shape, np.bool_)
            )
    finally:
        pixels.close()
    return series


def on_first_grid(series: Mapping[str, Upright]) -> LesionStudy:
    """Everything on the grid of the first, with its lesion."""
    from models.lesion_anonymiser import LesionStudy, moved

    first, volumes = next(iter(series.values())), {}
    for name, one in series.items():
        if one is first or same_grid(one.stack, first.stack):
            volumes[name] = one.values
        else:
            to_own = np.linalg.inv(one.affine) @ first.affine
            volumes[name] = moved(one.values, to_own, first.values.shape, float(one.values.min()))
    return LesionStudy(volumes, first.lesion, first.spacing_mm)
