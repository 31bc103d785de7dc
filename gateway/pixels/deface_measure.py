"""What a mask does to a volume, measured before anything is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gateway.pixels.deface_mask import Mask
from gateway.pixels.head_seen import Seen
from gateway.pixels.head_template import head_template

LOWEST_MM = -60.0
BROW_MM = -10.0  # template LPS: above it is forehead, which the guard of the frontal pole spares in part


@dataclass(frozen=True, slots=True)
class Measured:
    """`imaged`: share of the template head that is imaged. `overlap`: Dice of tissue and template head above the mouth,
    where imaged. `left`: of the surface that is seen from in front in the face, brow and below, the share that the mask
    leaves. `brain`: voxels of the brain (`Seen.brain`) that it touches.
    """

    imaged: float
    overlap: float
    left: float
    brain: int


def measure(seen: Seen, mask: Mask) -> Measured:
    """On the template's grid. `seen` under the mask's own alignment."""
    from scipy import ndimage

    template = head_template()
    heights = template.origin_mm[2] + template.spacing_mm * np.arange(template.head.shape[0])
    upper = seen.imaged & template.valid & (heights > LOWEST_MM)[:, None, None]
    both = (seen.tissue & template.head & upper).sum()
    total = (seen.tissue & upper).sum() + (template.head & upper).sum()
    face = ndimage.binary_erosion(template.face, iterations=2)  # its rim may be skin of the forehead or neck
    face &= (heights < BROW_MM)[:, None, None]
    before = seen.first & face
    left = before & ~mask.removed
    return Measured(
        imaged=float((seen.imaged & template.head).sum() / template.head.sum()),
        overlap=float(2 * both / total) if total else 0.0,
        left=float(left.sum() / before.sum()) if before.any() else 0.0,
        brain=int((mask.removed & seen.brain).sum()),
    )
