"""How certain a mask is, from several takes of the same study, and which certainty is enough.

Two figures, of which the lower counts. The Dice that the probabilities themselves promise, 2 Σ_M p / (|M| + Σ p), falls
with doubt inside the mask and with everything half seen outside it: a lesion that was nearly missed. The agreement is
the lowest Dice between a take's mask and that of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]
SURE_OF = 0.05  # share of the good masks of people held out that may be refused where no bad one asks for more


def dice(one: Mask, other: Mask) -> float:
    """2 |A ∩ B| / (|A| + |B|) (Dice 1945); 1 where both are empty."""
    total = int(one.sum()) + int(other.sum())
    return 2 * int((one & other).sum()) / total if total else 1.0


def certainty_of(takes: Floats, at: float) -> float:
    """Of probabilities (takes, …), a voxel being marked from `at` on: 0 to 1; 0 for an empty mask."""
    mean = takes.mean(0)
    mask: Mask = mean >= at
    if not mask.any():
        return 0.0
    promised = 2 * float(mean[mask].sum(dtype=np.float64)) / (int(mask.sum()) + float(mean.sum(dtype=np.float64)))
    return min(promised, *(dice(take >= at, mask) for take in takes))


def least_certainty(found: Sequence[tuple[float, bool]]) -> float:
    """Which certainty to ask for, from (certainty, was it good) of people held out.

    More than any bad mask has, and not less than all but SURE_OF of the good ones have. Raises ValueError when no mask
    was good, or no certainty tells good from bad for anybody.
    """
    good, bad = ([score for score, fine in found if fine is wanted] for wanted in (True, False))
    if not good:
        raise ValueError("no mask of the people held out is good: train longer")
    least = float(np.quantile(good, SURE_OF))
    worst = max(bad, default=0.0)
    if worst >= max(good):
        raise ValueError("a bad mask of somebody held out is the surest of all: train longer, or on more people")
    above = min(score for score in good if score > worst)
    return max(least, (worst + above) / 2)
