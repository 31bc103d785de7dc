"""What goes in and comes out: one study's sequences on one grid, its lesion, and how it is to be anonymised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from models.lesion_anonymiser.outline import Outline

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
SpacingZyx = tuple[float, float, float]

# (shape, purpose) -> standard normal numbers. The caller draws them from a keyed stream of the study; the same purpose
# gives the same numbers, other purposes independent ones (DESIGN.md invariant 4).
Noise = Callable[[tuple[int, ...], str], Tensor]

Mode = Literal["exact", "latent", "regularise", "style"]


class NotAnonymised(ValueError):
    """The study cannot be anonymised as asked, and nothing of it may leave. The text holds no value of a patient."""


@dataclass(frozen=True, slots=True)
class LesionStudy:
    """Aligned sequences of one study. Any intensity scale; axes as in `models.cohorts.Scan` (axial, feet to head).

    `volumes`: (z, y, x) by name of sequence; a sequence of the card that is not there is not made either. `lesion`
    (z, y, x). `kind` is the class of the lesion, one of the card's, None when it is not told. `spacing_mm` (z, y, x).
    Raises ValueError for grids that differ, for values that are not finite, and for no volume at all.
    """

    volumes: Mapping[str, Floats]
    lesion: Mask
    spacing_mm: SpacingZyx
    kind: str | None = None

    def __post_init__(self) -> None:
        if not self.volumes:
            raise ValueError("a study has one volume and more")
        if self.lesion.ndim != 3 or self.lesion.dtype != np.bool_:
            raise ValueError("the lesion is a volume of yes and no")
        for name, volume in self.volumes.items():
            if volume.shape != self.lesion.shape or volume.dtype != np.float32:
                raise ValueError(f"{name}: volumes are float32 and have the lesion's grid {self.lesion.shape}")
            if not np.isfinite(volume).all():
                raise ValueError(f"{name}: holds values that are no numbers")
        if len(self.spacing_mm) != 3 or not all(np.isfinite(one) and one > 0 for one in self.spacing_mm):
            raise ValueError("the spacing is three lengths in mm")

    @property
    def shape(self) -> tuple[int, int, int]:
        z, y, x = self.lesion.shape
        return z, y, x

    @property
    def brightest(self) -> Floats:
        """The maximum over sequences, each in shares of its own bright tissue: where there is head in any of them."""
        shares = []
        for volume in self.volumes.values():
            low = float(volume.min())
            shares.append((volume - low) / (bright(volume) - low))
        return np.asarray(np.max(shares, axis=0), np.float32)


@dataclass(frozen=True, slots=True)
class Settings:
    """How. Defaults are those of the shipped policy.

    `mode`: `exact` keeps the lesion's voxels, `latent` decodes its latent beside the new background (the paper),
    `regularise` smooths its shape before that, `style` moves its intensity and texture.
    `sampler`, `steps`, `guidance`: as in `models.lesion_diffusion.sample`; None is the card's own.
    `shared`: correlation of the noise of neighbouring slices, 0 to 1.
    `margin_mm`: by how much the lesion is dilated before it is kept; `border_mm`: how far the new tissue is fitted to
    it, at least two voxels. `outline_mm`: largest shift of the head's outline, 0 for none. `seam`: largest allowed
    seam (`fusion.seam`).
    `shape`, `shape_tolerance`: strength of `regularise`, 0 to 1, and the largest change of convexity it may make.
    `style`: strength of `style`, in standard deviations of the latent and shares of the intensity.
    `largest`: share of the head that the dilated lesion may be; beyond, what stays would be the person himself.
    `without_lesion`: an empty mask is right. It must be known, not guessed: tissue in place of a lesion is false data.
    """

    mode: Mode = "exact"
    sampler: str | None = None
    steps: int | None = None
    guidance: float = 1.0
    shared: float = 0.8
    margin_mm: float = 2.0
    border_mm: float = 6.0
    outline_mm: float = 5.0
    seam: float = 3.0
    shape: float = 0.5
    shape_tolerance: float = 0.25
    style: float = 0.15
    largest: float = 0.3
    without_lesion: bool = False

    def __post_init__(self) -> None:
        if self.mode not in ("exact", "latent", "regularise", "style"):
            raise ValueError(f"there is no mode {self.mode}: exact, latent, regularise or style")
        if not all(0 <= one <= 1 for one in (self.shared, self.shape, self.largest)):
            raise ValueError("shared, shape and largest lie between 0 and 1")
        lengths = (self.margin_mm, self.outline_mm, self.style, self.shape_tolerance)
        if min(lengths) < 0 or self.border_mm <= 0 or self.seam <= 0:
            raise ValueError("margin, outline, style and tolerance are not negative, border and seam positive")
        if self.steps is not None and self.steps < 1:
            raise ValueError("sampling takes a step and more")


@dataclass(frozen=True, slots=True)
class Anonymised:
    """`volumes`: as they came, float32 of the same scale. `lesion`: the mask that goes with them (`regularise` makes
    another, the others leave it). `kept`: voxels that are the original's bit for bit (`exact`; else none). `head`: the
    new outline. `outline` carries other masks and contours of the study along. `figures`: what was measured.
    """

    volumes: Mapping[str, Floats]
    lesion: Mask
    kept: Mask
    head: Mask
    outline: Outline
    figures: Mapping[str, float] = field(default_factory=dict)


BRIGHT_PERCENTILE = 99.5


def bright(volume: Floats, inside: Mask | None = None) -> float:
    """The brightness of bright tissue: a percentile of what is above a tenth of the maximum. Raises NotAnonymised."""
    values = volume if inside is None else volume[inside]
    low = float(volume.min())
    values = values[values > low + 0.1 * (float(np.percentile(volume, 99.9)) - low)]
    level = float(np.percentile(values, BRIGHT_PERCENTILE)) if len(values) else low
    if level <= low:
        raise NotAnonymised("a sequence is empty: there is nothing to scale it by")
    return level
