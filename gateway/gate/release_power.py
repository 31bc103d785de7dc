"""The chance that a release without any leak passes a limit: whoever sets one that nothing can pass is told so.

linkability            what the bound reads at truth 0 depends on the number of people alone (D_sys does not change
                       under a monotone transform): simulated once by `bench.gate_release`, LEAK_FREE
rank1                  closed form: a person is found by chance in a share of galleries with mean 1/G and variance
                       1/(2G-1) - 1/G²; the bound is Clopper-Pearson's
attribute_inference    closed form: balanced accuracy 1/2 over people of two classes of one size
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from gateway.gate.release_sample import MIN_PEOPLE, spent

NORMAL = NormalDist()
LEAST_CHANCE = 0.8  # below it a limit does not load
# Figures beyond a release's own same_scan (other visits, all releases together) are judged from here on only: each of
# them would otherwise hold some of what leaks nothing, and they grow with every release.
FURTHER_CHANCE = 0.98
MOST_PEOPLE = 100_000
# People: mean and standard deviation of the bound of the excess over the null's mean, without a leak, confidence 0.95,
# first look of a release (bench/gate_release.py, results/gate_release.json).
LEAK_FREE: tuple[tuple[int, float, float], ...] = (
    (50, 0.258, 0.0624),
    (75, 0.197, 0.0430),
    (100, 0.141, 0.0318),
    (150, 0.123, 0.0264),
    (200, 0.093, 0.0224),
    (300, 0.081, 0.0185),
    (500, 0.058, 0.0102),
    (800, 0.045, 0.0092),
    (1200, 0.036, 0.0072),
)


def reach_of(alpha: float) -> float:
    """The normal quantile that the bound of `gateway.evidence.linkability` stands for at this alpha."""
    from gateway.evidence.linkability import PERCENTILE_SHARE

    return -NORMAL.inv_cdf(alpha * PERCENTILE_SHARE)


@lru_cache(maxsize=256)
def linkability_chance(people: int, limit: float, alpha: float) -> float:
    """That the excess's upper bound keeps to `limit`, `alpha` being what the look may spend.

    Between and beyond the simulated sizes along 1/√people.
    """
    sizes, means, spreads = (np.log(column) for column in zip(*LEAK_FREE, strict=True))
    at = np.log(people)
    if at > sizes[-1]:
        beyond = 0.5 * (at - sizes[-1])
        mean, spread = float(np.exp(means[-1] - beyond)), float(np.exp(spreads[-1] - beyond))
    else:
        mean, spread = float(np.exp(np.interp(at, sizes, means))), float(np.exp(np.interp(at, sizes, spreads)))
    reach = reach_of(alpha) / reach_of(spent(0.05, 1))
    return NORMAL.cdf((limit - mean * reach) / spread)


@lru_cache(maxsize=256)
def rank1_chance(people: int, limit: float, gallery: int, alpha: float) -> float:
    """That rank-1's upper bound keeps to `limit` when everybody is found by chance."""
    from gateway.evidence import upper_share

    low, high = 0.0, float(people)
    if upper_share(low, people, 1 - alpha) > limit:
        return 0.0
    for _ in range(40):  # how many may be found at most
        middle = (low + high) / 2
        low, high = (middle, high) if upper_share(middle, people, 1 - alpha) <= limit else (low, middle)
    spread = np.sqrt(people * max(1e-12, 1 / (2 * gallery - 1) - 1 / gallery**2))
    return NORMAL.cdf(float((low - people / gallery) / spread))


@lru_cache(maxsize=256)
def attribute_chance(people: int, limit: float, alpha: float) -> float:
    """That the upper bound of balanced accuracy keeps to `limit` at truth 1/2."""
    spread = 0.5 / np.sqrt(people)
    return NORMAL.cdf(float((limit - 0.5) / spread) + NORMAL.inv_cdf(alpha))


def people_needed(check: str, people: int, chance: Callable[[int], float]) -> tuple[str, str]:
    """The fault of a limit that a leak-free release of `people` would not pass, and how many it needs."""
    says = f"a release of {people} people without any leak passes {check} with a chance of {chance(people):.2f} only"
    low, high = people, people
    while chance(high) < LEAST_CHANCE:
        low, high = high, high * 2
        if high > MOST_PEOPLE:
            return says, "no number of people is enough: raise the limit"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= LEAST_CHANCE else (middle, high)
    return says, f"min_subjects needs at least {max(high, MIN_PEOPLE)}, or raise the limit"
