"""Intensities of a sequence to the card's scale and back, and what is around the head.

Linear, by robust statistics of the head outside the lesion: contrast and units stay the study's, so that its rescale
slope, bit depth and window still fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from models.lesion_anonymiser.study import Floats, Mask, Noise, NotAnonymised, bright

HEADROOM = 0.8  # of the card's scale for bright tissue: enhancing lesions are brighter
HEAD_SHARE = 0.12  # of bright tissue; what is darker is air
SMOOTH_MM = 2.0
RAYLEIGH_MEDIAN = float(np.sqrt(2 * np.log(2)))  # of magnitudes of complex normal noise with spread 1


@dataclass(frozen=True, slots=True)
class Scale:
    """`low` (air) and `high` (bright tissue) become 0 and HEADROOM. `minimum`, `maximum`: the original's range.

    `air`: median magnitude of what is around the head above `low`; 0 where it is one value (skull-stripped, or written
    so by the scanner).
    """

    low: float
    high: float
    minimum: float
    maximum: float
    air: float

    @classmethod
    def of(cls, volume: Floats, head: Mask, lesion: Mask) -> Scale:
        """Of one sequence. Raises NotAnonymised for a sequence without contrast."""
        tissue, around = head & ~lesion, ~head
        if not tissue.any():
            raise NotAnonymised("there is no head outside the lesion")
        high = bright(volume, tissue)
        low, air = float(volume.min()), 0.0
        if around.any():
            values = volume[around]
            constant = float((values == np.median(values)).mean()) > 0.5
            low = float(np.median(values)) if constant else float(values.min())
            air = 0.0 if constant else max(float(np.median(values)) - low, 0.0)
        if high <= low:
            raise NotAnonymised("a sequence has no contrast between head and air")
        return cls(low, high, float(volume.min()), float(volume.max()), air)

    def forward(self, volume: Floats) -> Floats:
        """To 0 .. 1."""
        return np.asarray(np.clip((volume - self.low) / (self.high - self.low) * HEADROOM, 0, 1), np.float32)

    def back(self, mapped: Floats) -> Floats:
        """From 0 .. 1 to the study's scale, inside the original's range: stored integers hold it."""
        values = mapped / HEADROOM * (self.high - self.low) + self.low
        return np.asarray(np.clip(values, self.minimum, self.maximum), np.float32)

    def around(self, shape: tuple[int, ...], noise: Noise, name: str) -> Floats:
        """What lies around the head: one value where the original has one, else noise of the same magnitude."""
        if self.air == 0:
            return np.full(shape, self.low, np.float32)
        pair = noise((2, *shape), f"air {name}").double().numpy()
        magnitude = np.hypot(pair[0], pair[1]) * (self.air / RAYLEIGH_MEDIAN)
        return np.asarray(np.clip(self.low + magnitude, self.minimum, self.maximum), np.float32)


def head_of(brightest: Floats, spacing_mm: tuple[float, float, float]) -> Mask:
    """The head in shares of bright tissue (`LesionStudy.brightest`): the largest part above air, filled by slices.

    Raises NotAnonymised for an empty volume.
    """
    smooth = ndimage.gaussian_filter(brightest, [SMOOTH_MM / one for one in spacing_mm])
    labels, count = ndimage.label(smooth > HEAD_SHARE)
    if not count:
        raise NotAnonymised("there is no head in the volume")
    largest = labels == 1 + int(np.argmax(np.bincount(labels.ravel())[1:]))
    return np.stack([ndimage.binary_fill_holes(one) for one in largest])
