"""The card's own grid under a study: slices of the card's distance, pixels of its size, the head in the middle.

Slices count from the top of the head, so that depth means the same in everybody, however much neck was scanned. In
plane the middle of the head is the middle of the slice; what lies beyond is cut off, what is missing is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from models.lesion_anonymiser.study import Floats, Mask, NotAnonymised, SpacingZyx

ABOVE_TOP = 2  # slices of the card above the head's top: a new head may be taller
REACH_MM = 200.0  # below the top of the head: depth 0


@dataclass(frozen=True, slots=True)
class Grid:
    """`start` and `step`: voxel of the study = start + step * voxel of the card's grid, for z, y, x."""

    shape: tuple[int, int, int]
    start: tuple[float, float, float]
    step: tuple[float, float, float]
    study_shape: tuple[int, int, int]

    @classmethod
    def of(cls, head: Mask, spacing_mm: SpacingZyx, side: int, card_mm: SpacingZyx) -> Grid:
        """The grid of the card for a head (z, y, x). Raises NotAnonymised for a head larger than the card's slices."""
        if not head.any():
            raise NotAnonymised("there is no head in the volume")
        step = tuple(card / own for card, own in zip(card_mm, spacing_mm, strict=True))
        ends = []
        for axis in range(3):
            filled = np.flatnonzero(head.any(tuple(one for one in range(3) if one != axis)))
            ends.append((float(filled[0]), float(filled[-1])))
        for axis in (1, 2):
            if (ends[axis][1] - ends[axis][0] + 1) / step[axis] > side + 0.5:
                raise NotAnonymised("the head is larger than the card's slices: it takes a card with larger ones")
        below = int(np.ceil(ends[0][1] / step[0]))
        slices = below + 1 + ABOVE_TOP
        start_z = ends[0][1] - below * step[0]
        middle = [(one[0] + one[1]) / 2 - step[axis] * (side - 1) / 2 for axis, one in enumerate(ends) if axis]
        z, y, x = head.shape
        return cls((slices, side, side), (start_z, middle[0], middle[1]), (step[0], step[1], step[2]), (z, y, x))

    def depth_of(self, slice_mm: float) -> Floats:
        """(slices,), 0 to 1: the D of the paper (section 4.4.2), by distance from the top of the head.

        1 at the top of the head, 0 from REACH_MM below; `slice_mm` is the card's distance of slices.
        """
        from_top = np.arange(self.shape[0])[::-1] - ABOVE_TOP
        return np.asarray(np.clip(1 - from_top * slice_mm / REACH_MM, 0, 1), np.float32)

    def to_card(self, volume: Floats) -> Floats:
        """A volume of the study on the card's grid; fine voxels are averaged before they are left out."""
        smooth = volume.astype(np.float32)
        for axis, step in enumerate(self.step):
            if step >= 1.5:
                smooth = ndimage.uniform_filter1d(smooth, round(step), axis=axis, mode="nearest")
        out = ndimage.affine_transform(smooth, self.step, self.start, output_shape=self.shape, order=1, cval=0.0)
        return np.asarray(out, np.float32)

    def to_study(self, volume: Floats) -> Floats:
        """A volume of the card's grid on the study's, linear; 0 where the card's grid does not reach."""
        inverse = [1 / one for one in self.step]
        offset = [-a / b for a, b in zip(self.start, self.step, strict=True)]
        out = ndimage.affine_transform(volume, inverse, offset, output_shape=self.study_shape, order=1, cval=0.0)
        return np.asarray(out, np.float32)

    def mask_to_card(self, mask: Mask) -> Mask:
        """Half of a voxel and more."""
        return self.to_card(mask.astype(np.float32)) >= 0.5

    def lost(self, mask: Mask) -> bool:
        """Whether a part of a mask has no voxel on the card's grid: it is too small for the card, or beyond it."""
        labels, count = ndimage.label(mask, np.ones((3, 3, 3)))
        back = self.to_study(self.mask_to_card(mask).astype(np.float32)) > 0
        return bool(len(np.unique(labels[back & mask])) < count)
