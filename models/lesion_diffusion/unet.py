"""The conditional U-Net of the paper (sections 2.1 and 4.4.2), which takes 30 x 30 latents.

Three blocks down, each of two convolutions, a convolution with stride 2 and then attention; a bottom of three
convolutions; three blocks up, mirrored, with skips. Enlarging goes to the size of the skip, because 30 -> 15 -> 8 -> 4
does not double back. Class and depth join the time embedding; the mask has an encoder of its own at every scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.lesion_diffusion.configuration import UNetConfig
from models.lesion_vae.blocks import Attention, Grow, ResidualBlock, Shrink, activation, norm

LONGEST_PERIOD = 10_000.0


@dataclass(frozen=True, slots=True)
class Conditions:
    """`kind` (b,): class c of the lesion, from 0; `mask` (b, 1, H, W): lesion in pixels; `depth` (b,): 0 to 1 from the
    lowest slice to the highest; `neighbour` (b, latent, h, w): the scaled latent of the slice below, None = none.
    """

    kind: Tensor
    mask: Tensor
    depth: Tensor
    neighbour: Tensor | None = None

    def untold(self, config: UNetConfig) -> Conditions:
        """The same without the class, for guidance."""
        return replace(self, kind=torch.full_like(self.kind, config.classes))


def sinusoids(values: Tensor, size: int) -> Tensor:
    """(b,) -> (b, size): sines and cosines of falling frequency (Vaswani et al. 2017)."""
    half = size // 2
    rates = torch.exp(-torch.log(torch.tensor(LONGEST_PERIOD)) * torch.arange(half) / half).to(values.device)
    angles = values.float()[:, None] * rates[None]
    return torch.cat([angles.sin(), angles.cos()], 1)


class LatentUNet(nn.Module):
    """(b, latent, h, w), step (b,), Conditions -> estimate of the same shape."""

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        self.config = config
        *widths, bottom = config.widths
        size = config.embedded
        self.time = nn.Sequential(nn.Linear(size, size), activation(config.activation), nn.Linear(size, size))
        self.depth = nn.Sequential(nn.Linear(size, size), activation(config.activation), nn.Linear(size, size))
        self.kind = nn.Embedding(config.classes + 1, size)
        inputs = config.latent + (config.latent + 1 if config.neighbour else 0)
        self.begin = nn.Conv2d(inputs, widths[0], 3, padding=1)
        entering = [widths[0], *widths[:-1]]
        self.down = nn.ModuleList(self._block(a, b) for a, b in zip(entering, widths, strict=True))
        self.shrink = nn.ModuleList(Shrink(width) for width in widths)
        self.attend_down = nn.ModuleList(Attention(width, config.heads, kind=config.norm) for width in widths)
        third = nn.Conv2d(bottom, bottom, 3, padding=1)
        self.bottom = self._block(widths[-1], bottom)
        self.bottom_end = nn.Sequential(norm(config.norm, bottom), activation(config.activation), third)
        deeper = [bottom, *widths[:0:-1]]
        self.grow = nn.ModuleList(Grow(width) for width in deeper)
        self.up = nn.ModuleList(self._block(a + b, b) for a, b in zip(deeper, widths[::-1], strict=True))
        self.attend_up = nn.ModuleList(Attention(width, config.heads, kind=config.norm) for width in widths[::-1])
        self.mask = nn.ModuleList(_mask_encoder(width, config) for width in (*entering, widths[-1], *widths[::-1]))
        end = nn.Conv2d(widths[0], config.latent, 3, padding=1)
        nn.init.zeros_(end.weight)
        self.end = nn.Sequential(norm(config.norm, widths[0]), activation(config.activation), end)

    def _block(self, into: int, out: int) -> ResidualBlock:
        c = self.config
        return ResidualBlock(into, out, kind=c.norm, act=c.activation, embedded=c.embedded)

    def forward(self, z: Tensor, step: Tensor, conditions: Conditions) -> Tensor:
        size = self.config.embedded
        embedded = self.time(sinusoids(step, size)) + self.kind(conditions.kind)
        embedded = embedded + self.depth(sinusoids(1000 * conditions.depth, size))
        x = self.begin(self._inputs(z, conditions))
        mask = iter(self.mask)
        skips = []
        for block, shrink, attend in zip(self.down, self.shrink, self.attend_down, strict=True):
            x = block(x + _at(next(mask), conditions.mask, x), embedded)
            skips.append(x)
            x = attend(shrink(x))
        x = x + _at(next(mask), conditions.mask, x)
        x = self.bottom_end(self.bottom(x, embedded))
        for grow, block, attend in zip(self.grow, self.up, self.attend_up, strict=True):
            skip = skips.pop()
            x = attend(block(torch.cat([grow(x, skip.shape[-2:]), skip], 1), embedded))
            x = x + _at(next(mask), conditions.mask, x)
        out: Tensor = self.end(x)
        return out

    def _inputs(self, z: Tensor, conditions: Conditions) -> Tensor:
        """With `neighbour`, the slice below and a plane that says whether there is one."""
        if not self.config.neighbour:
            return z
        below = conditions.neighbour
        told = torch.full_like(z[:, :1], 0.0 if below is None else 1.0)
        return torch.cat([z, torch.zeros_like(z) if below is None else below, told], 1)


def _mask_encoder(width: int, config: UNetConfig) -> nn.Module:
    first = nn.Conv2d(1, width // 2, 3, padding=1)
    return nn.Sequential(first, activation(config.activation), nn.Conv2d(width // 2, width, 3, padding=1))


def _at(encoder: nn.Module, mask: Tensor, x: Tensor) -> Tensor:
    """The mask at the scale of x: the share of each place that is lesion, so that small lesions do not vanish."""
    out: Tensor = encoder(functional.adaptive_avg_pool2d(mask.to(x.dtype), (x.shape[-2], x.shape[-1])))
    return out
