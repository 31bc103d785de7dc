"""The re-identification network: patch tokens, their mean, and an identity made of the mean by a small MLP.

Patches and identity live in different spaces: the MLP is on the mean alone. Whoever compares patches with the person
compares them with the *mean before the MLP* (`similarity`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.reid_encoder.configuration import ReidConfig
from models.reid_encoder.vit import VisionTransformer

DARK = 0.1  # of what lies between black and white: darker surroundings are the frame
FLOOR = 0.05  # of the same: a flat place is not blown up to noise


@dataclass(frozen=True, slots=True)
class Embedded:
    """`identity_bd` of length 1; `mean_bc`, the mean patch token before the MLP; `patches_bhwc` on the map's grid."""

    identity_bd: Tensor
    mean_bc: Tensor
    patches_bhwc: Tensor


class ReidEncoder(nn.Module):
    """(B, 1 or channels, h, w) of any size, 0 to 1 -> Embedded."""

    def __init__(self, config: ReidConfig) -> None:
        super().__init__()
        self.config = config
        c = config
        self.vit = VisionTransformer(
            side=c.side,
            patch=c.patch,
            channels=c.channels,
            width=c.width,
            depth=c.depth,
            heads=c.heads,
            entries=c.entries,
            rank=c.rank,
        )
        self.head = nn.Sequential(nn.Linear(c.width, c.width), nn.GELU(), nn.Linear(c.width, c.dimensions))

    def forward(self, x_bchw: Tensor) -> Embedded:
        tokens = self.vit(self.prepared(x_bchw))[:, 1:]
        mean = tokens.mean(1)
        grid = self.config.grid
        identity = functional.normalize(self.head(mean), dim=1)
        return Embedded(identity, mean, tokens.reshape(len(tokens), grid, grid, -1))

    def prepared(self, x_bchw: Tensor) -> Tensor:
        """At the network's size (areas averaged), each picture at mean 0 and variance 1; a blank one is 0. Where the
        configuration says `around`, local contrast is what is left.

        Exposure and window are of the machine, not of the person. Raises ValueError for other channels, for nothing,
        and for numbers that are none.
        """
        if x_bchw.ndim != 4 or x_bchw.shape[1] not in (1, self.config.channels) or min(x_bchw.shape) < 1:
            raise ValueError(f"images are (batch, 1 or {self.config.channels}, rows, columns)")
        if not bool(torch.isfinite(x_bchw).all()):
            raise ValueError("a picture holds numbers that are none")
        side = self.config.side
        x = x_bchw.expand(-1, self.config.channels, -1, -1)
        if x.shape[-2:] != (side, side):
            x = functional.interpolate(x, (side, side), mode="bilinear", antialias=True, align_corners=False)
        if self.config.around:
            x = local_contrast(x, self.config.around)
        centred = x - x.mean((1, 2, 3), keepdim=True)
        spread = centred.square().mean((1, 2, 3), keepdim=True).sqrt()
        return torch.where(spread > 1e-6, centred / spread.clamp(min=1e-6), torch.zeros_like(centred))


def local_contrast(x_bchw: Tensor, around: int) -> Tensor:
    """(x − mean) / (deviation + FLOOR), both over `around` pixels a side; 0 where the surroundings are dark.

    Each picture is measured between its own black and white: adding to it or multiplying it changes nothing.
    """
    low, high = x_bchw.amin((1, 2, 3), keepdim=True), x_bchw.amax((1, 2, 3), keepdim=True)
    x = (x_bchw - low) / (high - low).clamp(min=1e-6)

    def mean(y: Tensor) -> Tensor:
        return functional.avg_pool2d(functional.pad(y, (around // 2,) * 4, mode="replicate"), around, 1)

    beside = mean(x)
    apart = x - beside
    lit = beside.mean(1, keepdim=True) > DARK
    return torch.where(lit, apart / (mean(apart.square()).sqrt() + FLOOR), torch.zeros_like(x))
