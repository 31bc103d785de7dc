"""What a mask does to a volume, measured before anything is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.deface_mask import Mask
from gateway.pixels.head_template import head_template
from gateway.pixels.head_tissue import tissue_of
from gateway.volumes import Volume

LOWEST_MM = -60.0
BROW_MM = -10.0  # template LPS: above it is forehead, which the guard of the frontal pole spares in part


@dataclass(frozen=True, slots=True)
class Measured:
    """`imaged`: share of the template head that is imaged. `overlap`: Dice of tissue and template head above the mouth,
    where imaged. `left`: of the surface that is seen from in front in the face, brow and below, the share that the mask
    leaves. `brain`: voxels of the template's brain that it touches.
    """

    imaged: float
    overlap: float
    left: float
    brain: int


def measure(volume: Volume, mask: Mask, *, hounsfield: bool) -> Measured:
    """On the template's grid."""
    from scipy import ndimage

    template = head_template()
    tissue, imaged = resampled(tissue_of(volume, hounsfield=hounsfield), volume.affine, mask.to_template)
    heights = template.origin_mm[2] + template.spacing_mm * np.arange(template.head.shape[0])
    upper = imaged & template.valid & (heights > LOWEST_MM)[:, None, None]
    both = (tissue & template.head & upper).sum()
    total = (tissue & upper).sum() + (template.head & upper).sum()
    first = tissue & (np.cumsum(tissue, axis=1) == 1)  # from in front, LPS: y grows to the back
    face = ndimage.binary_erosion(template.face, iterations=2)  # its rim may be skin of the forehead or neck
    face &= (heights < BROW_MM)[:, None, None]
    seen = first & face
    left = seen & ~mask.removed
    return Measured(
        imaged=float((imaged & template.head).sum() / template.head.sum()),
        overlap=float(2 * both / total) if total else 0.0,
        left=float(left.sum() / seen.sum()) if seen.any() else 0.0,
        brain=int((mask.removed & template.brain).sum()),
    )


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
