"""A volume as it lies on the template's grid under one alignment: tissue, what was imaged, the person's own brain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.head_brain import own_brain
from gateway.pixels.head_template import head_template
from gateway.pixels.head_tissue import tissue_of
from gateway.volumes import Volume

SCALP_AND_SKULL_MM = 8.0  # behind the first tissue from in front there is no brain yet


@dataclass(frozen=True, slots=True)
class Seen:
    """bool arrays [z, y, x] on the template's grid; `own` is None where the volume does not tell its brain.

    `spacing_mm` is the coarsest of the volume's.
    """

    tissue: NDArray[np.bool_]
    imaged: NDArray[np.bool_]
    own: NDArray[np.bool_] | None
    spacing_mm: float

    @property
    def brain(self) -> NDArray[np.bool_]:
        """The template's brain, and of the own one what is surely brain: less its rim, below skin and bone."""
        from scipy import ndimage

        template = head_template()
        if self.own is None:
            return template.brain
        rim_mm = max(template.spacing_mm, self.spacing_mm / 2)
        inner = ndimage.distance_transform_edt(self.own, sampling=template.spacing_mm) > rim_mm
        return np.asarray(template.brain | (inner & ~self.shallow), bool)

    @property
    def first(self) -> NDArray[np.bool_]:
        """The surface seen from in front. LPS: y grows to the back."""
        return np.asarray(self.tissue & (np.cumsum(self.tissue, axis=1) == 1), bool)

    @property
    def shallow(self) -> NDArray[np.bool_]:
        """The air before that surface, and the skin and bone behind it."""
        behind = np.cumsum(np.maximum.accumulate(self.tissue, axis=1), axis=1)
        return np.asarray(behind * head_template().spacing_mm <= SCALP_AND_SKULL_MM, bool)


def see(volume: Volume, to_template: NDArray[np.float64], *, hounsfield: bool) -> Seen:
    """`volume` as its head was aligned in, `to_template` (4, 4) from patient to template LPS mm."""
    tissue, imaged = resampled(tissue_of(volume, hounsfield=hounsfield), volume.affine, to_template)
    own = own_brain(volume, to_template, hounsfield=hounsfield)
    return Seen(tissue, imaged, own, float(volume.spacing_mm.max()))


def resampled(
    tissue: NDArray[np.bool_], affine: NDArray[np.float64], to_template: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(tissue, imaged) of a volume on the template's grid, nearest neighbour."""
    from scipy import ndimage

    template = head_template()
    matrix = np.linalg.inv(affine) @ np.linalg.inv(to_template) @ template.affine
    order = matrix[:3, :3][::-1, ::-1], matrix[:3, 3][::-1]
    shape = template.head.shape
    there = ndimage.affine_transform(tissue.astype(np.uint8), *order, output_shape=shape, order=0, mode="constant")
    imaged = ndimage.affine_transform(
        np.ones(tissue.shape, np.uint8), *order, output_shape=shape, order=0, mode="constant"
    )
    return there > 0, imaged > 0
