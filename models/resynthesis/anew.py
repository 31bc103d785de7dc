"""Values of any size and range to a new picture of the same range: what a stage does, and what a calibration judges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from models.id_blocking import Blocking
from models.resynthesis.deidentify import deidentified
from models.resynthesis.domain import PictureDomain, ends_of, levelled, measured
from models.resynthesis.parts import AdjustableParts

# Places a side of the grid that a mask's outline is drawn on: finer outlines name people themselves (bench.adjustable,
# "mask alone").
OUTLINE_CELLS = 2


@dataclass(frozen=True, slots=True)
class Looked:
    """A picture before it is made anew: `x` (1, 1, h, w), levelled; `ends` of its values; its `statistics`."""

    x: Tensor
    ends: tuple[float, float]
    statistics: dict[str, float]


def looked_at(parts: AdjustableParts, domain: PictureDomain, values_hw: Tensor) -> Looked:
    """`values_hw`: any numbers, larger is brighter."""
    ends = ends_of(values_hw)
    x = levelled(values_hw, ends, domain.shown)[None, None]
    side = parts.resynthesis.config.side
    small = functional.interpolate(x, (side, side), mode="bilinear", antialias=True, align_corners=False).clamp(0, 1)
    (found,) = measured(parts, domain.reference, small, [(int(x.shape[-2]), int(x.shape[-1]))])
    return Looked(x, ends, found)


def noise_shape(parts: AdjustableParts) -> tuple[int, int, int, int]:
    """Of one picture."""
    config = parts.resynthesis.config
    return (1, config.latent, config.latent_side, config.latent_side)


def made_anew(parts: AdjustableParts, looked: Looked, level: float, noise: Tensor) -> Tensor:
    """(h, w), 0 to 1, levelled as the original was. `noise`: standard normal of `noise_shape`, new for each picture."""
    return deidentified(parts, looked.x, Blocking(level, cell=OUTLINE_CELLS), noise).picture[0, 0]


def values_of(picture_hw: Tensor, ends: tuple[float, float], shown: tuple[float, float]) -> Tensor:
    """The inverse of levelling: float64 values of a picture whose ends stand for `ends`."""
    low, high = ends
    return low + (picture_hw.double() - shown[0]) / (shown[1] - shown[0]) * (high - low)


def seeded(parts: AdjustableParts, seed: int) -> Tensor:
    """Noise by seed, for calibrations and benches. A gateway draws its own from the key."""
    return torch.randn(noise_shape(parts), generator=torch.Generator().manual_seed(seed))
