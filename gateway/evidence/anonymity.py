"""The pixel criterion of the lesion-preserving paper (its section 4.5), with its slips mended, and ε-identifiability.

Anony(x̂) = PSNR(x̂, own original) − PSNR(x̂, another person's) = 10·log10(MSE_other / MSE_own) dB; x̂ counts as anonymised
below 10·log10(p / (1 − p)), 3.68 dB for p = 0.7. The paper's PSNR (eq. 20) is doubled, hence its 7.36: both are given.
The criterion passes an image whose source is still its nearest neighbour, so it never stands alone: `own_nearest` says
how often that is so. MSE is taken inside a mask (brain without lesion), because empty background would drown it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from gateway.evidence.pairs import Floats, Ints

PAPER_P = 0.7


@dataclass(frozen=True, slots=True)
class Anonymity:
    """dB of each of n images against the nearest other person (decides), a random one, and the mean over all others.

    `own_nearest` (n,): nobody's original is nearer than the own one. NaN and False where there is no other person.
    """

    nearest_db: Floats
    random_db: Floats
    mean_db: Floats
    own_psnr_db: Floats
    own_nearest: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rate:
    """Share of people's images that are anonymised, with the one-sided lower bound by person (Clopper-Pearson)."""

    rate: float
    lower: float
    people: int
    images: int


def threshold_db(p: float = PAPER_P, *, doubled: bool = False) -> float:
    """The largest Anony(x̂) that counts as anonymised. `doubled` is the paper's dB. Raises ValueError outside (0, 1)."""
    if not 0 < p < 1:
        raise ValueError("p lies between 0 and 1")
    return (20 if doubled else 10) * log10(p / (1 - p))


def anonymity(
    generated: NDArray[Any],
    originals: NDArray[Any],
    subject: Ints,
    place: Ints,
    mask: NDArray[np.bool_],
    generator: np.random.Generator,
    *,
    peak: float = 1.0,
) -> Anonymity:
    """All (n, …) in one order: image i was generated from original i. Others are originals of other people at the same
    `place` (slice depth). `peak` is MAX of the PSNR. Raises ValueError for an empty mask or sizes that do not fit.
    """
    n = len(originals)
    if not (generated.shape == originals.shape == mask.shape and len(subject) == len(place) == n):
        raise ValueError("generated, originals, mask, subject and place are of the same images")
    made, real, inside = (np.reshape(one, (n, -1)) for one in (generated, originals, mask))
    if not inside.any(1).all():
        raise ValueError("a mask is empty: there is nothing to compare")
    nearest, random, mean, psnr = (np.full(n, np.nan) for _ in range(4))
    first = np.zeros(n, bool)
    for i in range(n):
        chosen = inside[i]
        others = np.flatnonzero((place == place[i]) & (subject != subject[i]))
        own = _mse(made[i, chosen], real[i : i + 1, chosen])[0]
        psnr[i] = np.inf if own == 0 else 10 * log10(peak**2 / own)
        if not len(others):
            continue
        apart = _mse(made[i, chosen], real[others][:, chosen])
        nearest[i], random[i] = _db(apart.min(), own), _db(generator.choice(apart), own)
        mean[i] = np.mean([_db(one, own) for one in apart])
        first[i] = own <= apart.min()
    return Anonymity(nearest, random, mean, psnr, first)


def nearest_other_db(
    generated: NDArray[Any], originals: NDArray[Any], subject: Ints, rows_at_once: int = 512
) -> Floats:
    """(n,) Anony(x̂) against the nearest original of another person, for many images at once: `anonymity().nearest_db`.

    (n, d) each, image i from original i, all at one place, masked the same. NaN where there is no other person.
    """
    made, real = np.asarray(generated, np.float64), np.asarray(originals, np.float64)
    if made.shape != real.shape or made.ndim != 2 or len(subject) != len(real):
        raise ValueError("generated, originals and subject are of the same images")
    found = np.full(len(real), np.nan)
    lengths = (real**2).sum(1)
    for start in range(0, len(real), rows_at_once):
        rows = slice(start, start + rows_at_once)
        near = (made[rows] ** 2).sum(1)[:, None] + lengths - 2 * made[rows] @ real.T
        near[subject[rows, None] == subject[None, :]] = np.inf
        for i, nearest in enumerate(near.argmin(1), start):
            if subject[nearest] != subject[i]:  # squares as they are: the expansion loses digits where two are alike
                own, other = (float(((made[i] - real[one]) ** 2).sum()) for one in (i, nearest))
                found[i] = _db(other, own)
    return found


def anonymised_rate(db: Floats, subject: Ints, *, p: float = PAPER_P, confidence: float = 0.95) -> Rate:
    """Images without another person to compare with count as not anonymised. A person counts by a share of images."""
    passed = np.nan_to_num(db, nan=np.inf) < threshold_db(p)
    people, whose = np.unique(subject, return_inverse=True)
    share = np.bincount(whose, weights=passed) / np.bincount(whose)
    hits, count = float(share.sum()), len(people)
    lower = float(beta.ppf(1 - confidence, hits, count - hits + 1)) if hits > 0 else 0.0
    return Rate(float(share.mean()), lower, count, len(db))


def epsilon_identifiability(real: NDArray[Any], synthetic: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
    """Share of people whose nearest synthetic record is nearer than their nearest real one (ADS-GAN; paper eq. 18-19).

    (n, d), (m, d); it must be at most ε. The paper's words reverse the inequality; this is the rule of its source.
    """
    scale = np.ones(real.shape[1]) if weights is None else np.asarray(weights, np.float64)
    a, b = np.asarray(real, np.float64) * scale, np.asarray(synthetic, np.float64) * scale
    among = _squares(a, a)
    np.fill_diagonal(among, np.inf)
    return float((_squares(a, b).min(1) < among.min(1)).mean())


def _mse(one: NDArray[Any], many: NDArray[Any]) -> Floats:
    return np.asarray(((many.astype(np.float64) - one.astype(np.float64)) ** 2).mean(1), np.float64)


def _db(other: float, own: float) -> float:
    """Both 0: the two originals are the same image, and nothing tells them apart (p = 1/2)."""
    if own == 0:
        return 0.0 if other == 0 else float("inf")
    return 10 * log10(other / own) if other > 0 else float("-inf")


def _squares(a: Floats, b: Floats) -> Floats:
    return np.asarray(((a[:, None] - b[None]) ** 2).sum(2), np.float64)
