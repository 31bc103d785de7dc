"""From a similarity map to the mask of what is blocked: a quantile, then a shape that says less about the person.

The mask is a function of identity and the re-synthesis sees it, so its outline is a leak of its own: it may be grown
and drawn on a coarser grid. Neither ever uncovers a place. Works on maps of images (b, h, w) and volumes (b, d, h, w).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

LEVELS = (0.95, 0.7, 0.4, 0.2)  # of the paper: from little that is blocked to most
ROUNDING = 1e-9  # (1 - 0.7) * 10 is 3.0000000000000004


def identity_mask(similarity: Tensor, r: float) -> Tensor:
    """True where a place is blocked: the highest (1 − r) of each member's places, at least one.

    The threshold is the ⌈(1 − r) n⌉-th highest value and all that equals it is blocked as well: ties go the safe way,
    no matter in which order they stand, and a constant map, which says nothing of where, is blocked whole. A lower r
    blocks all that a higher one does. Raises ValueError for r outside (0, 1), no places, or numbers that are none.
    """
    if not 0 < r < 1:
        raise ValueError("the level r lies between 0 and 1, both excluded")
    if similarity.ndim < 2 or min(similarity.shape) < 1:
        raise ValueError("a similarity map has a batch, and one place or more")
    if not bool(torch.isfinite(similarity).all()):
        raise ValueError("a similarity map holds numbers that are none")
    flat = similarity.flatten(1)
    count = max(1, math.ceil((1 - r) * flat.shape[1] - ROUNDING))
    threshold = flat.topk(count, 1).values[:, -1:]
    return (flat >= threshold).reshape(similarity.shape)


def dilated(mask: Tensor, places: int) -> Tensor:
    """Grown by `places` along every axis but the batch's (a cube). Raises ValueError for a negative number."""
    if places < 0:
        raise ValueError("a mask is grown by 0 places or more")
    pool = functional.max_pool2d if mask.ndim == 3 else functional.max_pool3d
    return pool(mask[:, None].float(), 2 * places + 1, 1, places)[:, 0] > 0 if places else mask


def coarsened(mask: Tensor, cell: int) -> Tensor:
    """On a grid of `cell` places a side: a cell in which anything is blocked is blocked whole.

    Axes that the cell does not divide end in a smaller one. Raises ValueError for a cell below 1.
    """
    if cell < 1:
        raise ValueError("a cell has one place a side or more")
    if cell == 1:
        return mask
    pool = functional.max_pool2d if mask.ndim == 3 else functional.max_pool3d
    found = pool(mask[:, None].float(), cell, cell, ceil_mode=True)[:, 0] > 0
    for axis, size in enumerate(mask.shape[1:], 1):
        found = found.repeat_interleave(cell, axis).narrow(axis, 0, size)
    return found
