"""What `deface` never touches: the brain and what is near it.

Brains differ from the template's after an affine alignment, frontal poles most: one of six heads reached 16.4 mm before
the template's. So wherever nothing better is known, 11 mm around the template's brain and 24 mm straight before it are
spared. In most people that reaches into the skin between brow and bridge of the nose. There, and not on the forehead,
the volume itself decides: what is no deeper than skin and bone, seen from in front, *and* far from the person's own
brain (`head_brain`) is given up. Where the own brain comes nearer to the edge of the guard than that, the guard grows.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.head_brain import around_brain
from gateway.pixels.head_seen import Seen
from gateway.pixels.head_template import head_template

PROTECT_MM, PROTECT_BEFORE_MM = 11.0, 24.0
OWN_MM = 8.0  # brain was found up to 4.9 mm from the estimate where a face is near; coarse voxels add half of theirs
GROWS = 2  # voxels of 2 mm
GIVES_WAY_BELOW_MM = -6.0  # template LPS: the brow and what lies lower


@cache
def template_guard() -> NDArray[np.bool_]:
    """On the template's grid: within half an ellipsoid before the brain, a ball elsewhere."""
    return around_brain(head_template().brain, PROTECT_MM, PROTECT_BEFORE_MM)


def guard_of(seen: Seen) -> NDArray[np.bool_]:
    """The guard of one head, on the template's grid. Without an own brain it is the template's."""
    from scipy import ndimage

    guard = template_guard()
    if seen.own is None:
        return guard
    template = head_template()
    spacing = template.spacing_mm
    low = template.origin_mm[2] + spacing * np.arange(guard.shape[0]) < GIVES_WAY_BELOW_MM
    margin = OWN_MM + max(0.0, (seen.spacing_mm - spacing) / 2)
    near = ndimage.distance_transform_edt(~seen.own, sampling=spacing) <= margin
    given_up = seen.imaged & seen.shallow & ~near & low[:, None, None]
    wider = (ndimage.binary_dilation(guard, iterations=GROWS) & near) | seen.own
    return np.asarray((guard & ~given_up) | (wider & ~seen.shallow), bool)
