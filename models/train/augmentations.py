"""What may change between two films of one person, drawn at random for a batch: pose, cut, exposure, noise, occlusion.

No mirror: which side the heart lies on is part of who somebody is. Everything is drawn from the generator given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Strength:
    """Largest change of each kind. `shift` and `warp` are shares of the image's side; `rotate` in degrees."""

    rotate: float = 12.0
    scale: float = 0.15
    shift: float = 0.10
    warp: float = 0.02
    gamma: float = 0.4
    contrast: float = 0.3
    noise: float = 0.15
    blur: float = 0.5  # the share of images that are blurred
    occlude: float = 0.5  # the share of images with a grey rectangle

    def gentle(self) -> Strength:
        """Half of each, and nothing occluded: another take as people stand a second time."""
        halves = {one.name: getattr(self, one.name) / 2 for one in fields(self)}
        return Strength(**{**halves, "occlude": 0.0})


def vary(images_bchw: Tensor, strength: Strength, generator: torch.Generator) -> Tensor:
    """Another take of each image, standardised again. (B, C, H, W) of mean 0 and variance 1 -> the same."""
    x = functional.grid_sample(
        images_bchw, _grid(images_bchw, strength, generator), padding_mode="border", align_corners=False
    )
    x = _exposed(x, strength, generator)
    x = _blurred(x, strength.blur, generator)
    x = standard(x + strength.noise * _draw(x, generator, 1) * torch.randn(x.shape, generator=generator))
    return _occluded(x, strength.occlude, generator)


def standard(x_bchw: Tensor) -> Tensor:
    """Each image at mean 0 and variance 1; a blank one stays 0."""
    centred = x_bchw - x_bchw.mean((1, 2, 3), keepdim=True)
    return centred / centred.square().mean((1, 2, 3), keepdim=True).sqrt().clamp_min(1e-6)


def _draw(x: Tensor, generator: torch.Generator, size: float) -> Tensor:
    """(B, 1, 1, 1), uniform in ±size."""
    return size * (2 * torch.rand(len(x), 1, 1, 1, generator=generator) - 1)


def _grid(x: Tensor, s: Strength, generator: torch.Generator) -> Tensor:
    """Where each pixel is read: a similarity of its own for each axis, and a smooth warp. (B, H, W, 2), -1 to 1."""
    count = len(x)
    turn, wide, high, right, down = (2 * torch.rand(5, count, generator=generator) - 1).unbind(0)
    angle = turn * math.radians(s.rotate)
    both = 1 + s.scale * wide
    apart = 1 + s.scale / 3 * high
    theta = torch.stack(
        [
            torch.stack([both * torch.cos(angle), -both * torch.sin(angle), 2 * s.shift * right], 1),
            torch.stack([both * apart * torch.sin(angle), both * apart * torch.cos(angle), 2 * s.shift * down], 1),
        ],
        1,
    )
    grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
    coarse = 2 * s.warp * torch.randn(count, 2, 5, 5, generator=generator)
    warp = functional.interpolate(coarse, size=x.shape[2:], mode="bicubic", align_corners=True)
    return grid + warp.permute(0, 2, 3, 1)


def _exposed(x: Tensor, s: Strength, generator: torch.Generator) -> Tensor:
    """Gamma over the image's own range, and a slope of brightness across it."""
    low, high = x.amin((1, 2, 3), keepdim=True), x.amax((1, 2, 3), keepdim=True)
    span = (high - low).clamp_min(1e-6)
    curved = ((x - low) / span).clamp(1e-4, 1) ** torch.exp(_draw(x, generator, s.gamma)) * span + low
    rows = torch.linspace(-1, 1, x.shape[2])[:, None]
    columns = torch.linspace(-1, 1, x.shape[3])[None, :]
    slope = _draw(x, generator, s.contrast) * rows + _draw(x, generator, s.contrast) * columns
    return curved * (1 + _draw(x, generator, s.contrast)) + slope


def _blurred(x: Tensor, share: float, generator: torch.Generator) -> Tensor:
    soft = functional.avg_pool2d(functional.pad(x, (1, 1, 1, 1), mode="replicate"), 3, 1)
    some = torch.rand(len(x), 1, 1, 1, generator=generator) < share
    mix = torch.rand(len(x), 1, 1, 1, generator=generator)
    return torch.where(some, mix * soft + (1 - mix) * x, x)


def _occluded(x: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """A rectangle of up to 40 % of each side at the image's mean, as a device or a label would hide it."""
    y, z, tall, broad, chosen = torch.rand(5, len(x), 1, 1, generator=generator).unbind(0)
    rows = torch.linspace(0, 1, x.shape[2])[None, :, None]
    columns = torch.linspace(0, 1, x.shape[3])[None, None, :]
    inside = ((rows - y).abs() < 0.05 + 0.15 * tall) & ((columns - z).abs() < 0.05 + 0.15 * broad)
    return torch.where((inside & (chosen < share))[:, None], torch.zeros(()), x)
