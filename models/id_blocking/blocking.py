"""X_noID: a picture or a volume of any size without what identifies, and the mask of what is gone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from models.id_blocking.mask import coarsened, dilated, identity_mask
from models.reid_encoder import ReidEncoder, identity_map, volume_identity_map


@dataclass(frozen=True, slots=True)
class Blocking:
    """`r`: quantile of the similarity map, (0, 1); the higher, the less is blocked.

    `grow` places around what is blocked, `cell` places a side of the grid that the outline is drawn on (1: as it is).
    """

    r: float
    grow: int = 0
    cell: int = 1

    def mask(self, similarity: Tensor) -> Tensor:
        """On the map's own grid, True where blocked."""
        return coarsened(dilated(identity_mask(similarity, self.r), self.grow), self.cell)


def enlarged(mask: Tensor, size: tuple[int, ...]) -> Tensor:
    """(b, places...) -> (b, *size): a pixel is blocked when any place that it touches is.

    Place i of n covers the pixels from ⌊i N / n⌋ to ⌈(i + 1) N / n⌉, also where N is no multiple of n, or smaller.
    """
    if len(size) != mask.ndim - 1 or min(size) < 1:
        raise ValueError(f"a mask of {mask.ndim - 1} axes is enlarged to as many")
    for axis, pixels in enumerate(size, 1):
        places = mask.shape[axis]
        if places == pixels:
            continue
        edge = torch.arange(pixels, device=mask.device)
        first, last = edge * places // pixels, ((edge + 1) * places - 1) // pixels
        out = mask.index_select(axis, first)
        for step in range(1, int((last - first).max()) + 1):
            out = out | mask.index_select(axis, torch.minimum(first + step, last))
        mask = out
    return mask


@torch.no_grad()
def blocked(encoder: ReidEncoder, x_bchw: Tensor, blocking: Blocking) -> tuple[Tensor, Tensor]:
    """(X_noID, mask (b, 1, h, w), True where blocked): every image by its own map. Images 0 to 1, of any size."""
    mask = blocking.mask(identity_map(encoder, x_bchw))
    pixels = enlarged(mask, (x_bchw.shape[-2], x_bchw.shape[-1]))[:, None]
    return torch.where(pixels, torch.zeros_like(x_bchw), x_bchw), pixels


@torch.no_grad()
def blocked_volume(encoder: ReidEncoder, volume_dhw: Tensor, blocking: Blocking) -> tuple[Tensor, Tensor]:
    """(X_noID, mask), each (d, h, w): one quantile over the whole volume, not one for each slice."""
    mask = blocking.mask(volume_identity_map(encoder, volume_dhw)[None])
    pixels = enlarged(mask, (len(volume_dhw), volume_dhw.shape[1], volume_dhw.shape[2]))[0]
    return torch.where(pixels, torch.zeros_like(volume_dhw), volume_dhw), pixels
