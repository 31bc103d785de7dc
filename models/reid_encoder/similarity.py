"""Where a picture shows who somebody is: the cosine of each patch to the whole, in one space.

s_i = ⟨p_i, m⟩ / (‖p_i‖ ‖m‖), m = mean of the patches before the MLP. Against the identity behind the MLP the cosine
would compare vectors of two unrelated spaces.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from models.reid_encoder.network import ReidEncoder

TOGETHER = 64  # slices of a volume at a time


def cosine_map(patches_bhwc: Tensor, mean_bc: Tensor) -> Tensor:
    """(b, h, w) or (b, d, h, w), -1 to 1: one mean for each member of the batch. A patch without length has 0."""
    shape = (len(mean_bc), *(1,) * (patches_bhwc.ndim - 2), mean_bc.shape[-1])
    return functional.cosine_similarity(patches_bhwc, mean_bc.reshape(shape), dim=-1)


@torch.no_grad()
def identity_map(encoder: ReidEncoder, x_bchw: Tensor) -> Tensor:
    """Images of any size, 0 to 1 -> similarity (b, grid, grid), of each image to itself as a whole."""
    found = encoder.eval()(x_bchw)
    return cosine_map(found.patches_bhwc, found.mean_bc)


@torch.no_grad()
def volume_identity_map(encoder: ReidEncoder, volume_dhw: Tensor) -> Tensor:
    """Slices of one volume, 0 to 1 -> similarity (d, grid, grid) to the *volume* as a whole.

    The mean is over the patches of all slices that hold anything, so that the map is one of three dimensions: a slice
    in which little of the person shows is low throughout. Raises ValueError for another number of axes.
    """
    if volume_dhw.ndim != 3:
        raise ValueError("a volume has three axes: slices, rows, columns")
    patches = torch.cat([encoder.eval()(some[:, None]).patches_bhwc for some in torch.split(volume_dhw, TOGETHER)])
    filled = volume_dhw.flatten(1).std(1, correction=0) > 1e-6
    chosen = patches[filled] if bool(filled.any()) else patches
    return cosine_map(patches[None], chosen.mean((0, 1, 2))[None])[0]
