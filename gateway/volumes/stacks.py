"""Planes sorted into stacks: regular grids of parallel slices. What is in none is a stray, with the reason.

Refused (`geometry_unsuitable`): missing slices, gantry tilt or another shear, mixed orientations, sizes, spacings or
frames of reference, positions that repeat unevenly. A gap between slices thicker than it should be is seen by the
distances of their centres; slices thinner than their distance are regular.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.volumes.planes import Plane, Unplaced

MIN_SLICES = 3
UNEVEN = 0.1  # of the distance of neighbours; positions in the field are rounded to 0.01 mm or worse
MAX_SHEAR = 0.01  # sideways mm for each mm along the normal; 0.6 degrees of tilt
SAME_PLACE_MM = 0.01
TOO_FEW = "too few slices"  # why a localiser is no volume; all other reasons tell of volumes that cannot be read


@dataclass(frozen=True, slots=True)
class Stack:
    """A regular grid: `planes` [slice] along the normal, `affine` from (column, row, slice, 1) to LPS mm."""

    planes: tuple[Plane, ...]
    affine: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(slices, rows, columns)."""
        return len(self.planes), self.planes[0].rows, self.planes[0].columns

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Distances of neighbours along (column index, row index, slice index)."""
        lengths = np.linalg.norm(self.affine[:3, :3], axis=0)
        return float(lengths[0]), float(lengths[1]), float(lengths[2])

    @property
    def frame_of_reference(self) -> str:
        return self.planes[0].frame_of_reference


@dataclass(frozen=True, slots=True)
class Stray:
    """A frame that is in no stack, and a bounded phrase why. `plane` is None when it has no place at all."""

    instance: int
    frame: int
    why: str
    plane: Plane | None = None


def sort(planes: Iterable[Plane | Unplaced]) -> tuple[list[Stack], list[Stray]]:
    """All planes of a study or series. Repeated positions (time, echo, diffusion) make several stacks of one grid."""
    groups: dict[tuple[object, ...], list[Plane]] = defaultdict(list)
    strays = []
    for plane in planes:
        if isinstance(plane, Unplaced):
            strays.append(Stray(plane.instance, plane.frame, plane.why))
        else:
            groups[_kind(plane)].append(plane)
    stacks: list[Stack] = []
    for group in groups.values():
        made = _stacks(group)
        if isinstance(made, str):
            strays += [Stray(plane.instance, plane.frame, made, plane) for plane in group]
        else:
            stacks += made
    return stacks, sorted(strays, key=lambda stray: (stray.instance, stray.frame))


def only_stack(planes: Iterable[Plane | Unplaced], names: Sequence[str]) -> Stack:
    """The one grid that these planes make. Raises Hold("geometry_unsuitable") with place and reason otherwise.

    `names` are our own names of the instances, for the place.
    """
    listed = list(planes)
    stacks, strays = sort(listed)
    if len(stacks) == 1 and not strays:
        return stacks[0]
    if not listed:
        raise Hold("geometry_unsuitable", at="no frames")
    placed = [plane for plane in listed if isinstance(plane, Plane)]
    for mixed, why in (
        ({plane.frame_of_reference for plane in placed}, "frames of reference"),
        ({(plane.rows, plane.columns) for plane in placed}, "sizes"),
        ({_direction(plane) for plane in placed}, "orientations"),
    ):
        if len(mixed) > 1:
            raise Hold("geometry_unsuitable", at=f"{names[listed[0].instance]}: mixed {why}")
    if strays:
        raise Hold("geometry_unsuitable", at=f"{names[strays[0].instance]} frame {strays[0].frame}: {strays[0].why}")
    raise Hold("geometry_unsuitable", at=f"{names[listed[0].instance]}: {len(stacks)} volumes")


def _direction(plane: Plane) -> tuple[float, ...]:
    return tuple(np.round([*plane.along_row, *plane.along_column], 2).tolist())


def _kind(plane: Plane) -> tuple[object, ...]:
    """What planes of one grid share. Directions are compared exactly later: rounding only pre-sorts."""
    spacing = round(plane.row_spacing_mm, 3), round(plane.column_spacing_mm, 3)
    return plane.series, plane.frame_of_reference, plane.rows, plane.columns, spacing, _direction(plane)


def _stacks(group: list[Plane]) -> list[Stack] | str:
    """The stacks that a group makes, or why it makes none."""
    normal = group[0].normal
    heights = np.array([np.dot(plane.position, normal) for plane in group])
    order = np.argsort(heights, kind="stable")
    places: list[list[Plane]] = []
    last = -np.inf
    for index in order:
        if heights[index] - last > SAME_PLACE_MM or not places:
            places.append([])
            last = heights[index]
        places[-1].append(group[index])
    if len(places) < MIN_SLICES:
        return TOO_FEW
    if len({len(place) for place in places}) > 1:
        return "positions repeat unevenly"
    for place in places:
        place.sort(key=lambda plane: plane.order)
    made = [_stack(list(column)) for column in zip(*places, strict=True)]
    failed = next((one for one in made if isinstance(one, str)), None)
    return failed or [one for one in made if isinstance(one, Stack)]


def _stack(planes: list[Plane]) -> Stack | str:
    positions = np.array([plane.position for plane in planes])
    steps = np.diff(positions, axis=0)
    along = steps @ planes[0].normal
    step = (positions[-1] - positions[0]) / (len(planes) - 1)
    distance = float(np.median(along))
    if np.abs(along - distance).max() > UNEVEN * distance:
        return "slices are missing or uneven"
    sideways = step - (step @ planes[0].normal) * planes[0].normal
    if np.linalg.norm(sideways) > MAX_SHEAR * distance:
        return "gantry tilt"
    ideal = positions[0] + np.arange(len(planes))[:, None] * step
    if np.linalg.norm(positions - ideal, axis=1).max() > max(0.5 * distance, 0.1):
        return "slices do not lie on a line"
    directions = np.array([[*plane.along_row, *plane.along_column] for plane in planes])
    if np.abs(directions - directions[0]).max() > MAX_SHEAR:
        return "orientations differ"
    return Stack(tuple(planes), planes[0].affine(step))
