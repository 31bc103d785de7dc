"""Values of any size and range to a new picture of the same range: what a stage does, and what a calibration judges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from models.id_blocking import Blocking
from models.resynthesis import sides
from models.resynthesis.deidentify import deidentified
from models.resynthesis.domain import PictureDomain, ends_of, levelled, measured
from models.resynthesis.parts import AdjustableParts

# Places a side of the grid that a mask's outline is drawn on: finer outlines name people themselves (bench.adjustable,
# "mask alone").
OUTLINE_CELLS = 2


@dataclass(frozen=True, slots=True)
class Looked:
    """A picture before it is made anew: `x` (1, c, h, w), levelled; `ends` of its values; its `statistics`."""

    x: Tensor
    ends: tuple[float, float]
    statistics: dict[str, float]


def looked_at(parts: AdjustableParts, domain: PictureDomain, values: Tensor) -> Looked:
    """`values`: any numbers, larger is brighter; (h, w), or (3, h, w) for a card of colour pictures.

    Raises ValueError for another number of channels than the card's.
    """
    channels = 1 if values.ndim == 2 else len(values)
    if channels != parts.channels:
        raise ValueError(f"pictures have {parts.channels} channels, not {channels}")
    ends = ends_of(values)
    x = levelled(values, ends, domain.shown).reshape(1, channels, *values.shape[-2:])
    side = parts.resynthesis.config.side
    small = functional.interpolate(x, (side, side), mode="bilinear", antialias=True, align_corners=False).clamp(0, 1)
    (found,) = measured(parts, domain.reference, small, [(int(x.shape[-2]), int(x.shape[-1]))])
    return Looked(x, ends, found)


def noise_shape(parts: AdjustableParts) -> tuple[int, int, int, int]:
    """Of one picture."""
    config = parts.resynthesis.config
    return (1, config.latent, config.latent_side, config.latent_side)


def made_anew(parts: AdjustableParts, looked: Looked, level: float, noise: Tensor, side: str = "") -> Tensor:
    """(h, w), in colour (3, h, w), 0 to 1, levelled as the original was. `noise`: standard normal of `noise_shape`, new
    for each picture. Of a paired organ it shows `side` (R, L), or the one that the original shows where none is named.
    """
    made = deidentified(parts, looked.x, Blocking(level, cell=OUTLINE_CELLS), noise).picture[0]
    if parts.sides is not None:
        known = side in (sides.RIGHT, sides.LEFT)
        made = sides.kept(parts.sides, made, side if known else sides.told(parts.sides, looked.x[0]))
    return made if parts.channels > 1 else made[0]


def values_of(picture: Tensor, ends: tuple[float, float], shown: tuple[float, float]) -> Tensor:
    """The inverse of levelling: float64 values of a picture whose ends stand for `ends`."""
    low, high = ends
    return low + (picture.double() - shown[0]) / (shown[1] - shown[0]) * (high - low)


def seeded(parts: AdjustableParts, seed: int) -> Tensor:
    """Noise by seed, for calibrations and benches. A gateway draws its own from the key."""
    return torch.randn(noise_shape(parts), generator=torch.Generator().manual_seed(seed))
