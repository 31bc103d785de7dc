"""D_sys, the linkability of a system of scores (Gomez-Barrero et al., IEEE TIFS 13(6), 2018), with bounds by person.

Estimator: D_sys = Σ_b P_m(b) · max(0, (ω P_m(b) − P_n(b)) / (ω P_m(b) + P_n(b))) over quantile bins of the mated scores
and one open bin below the smallest of them; beside it the pool-adjacent-violators posterior. The larger counts. Edges
come from the sample and stay for every replicate. The bound is the 99th percentile of a bootstrap over people, because
the 95th covers too little at 69 people with ten scans each; the null is what shuffled labels read.

Few people read far from 0 where nothing links, so limits apply to the excess over that reading. The noise that makes it
fades as truth grows: taking it off whole reads a real leak low (its bound lay under a D_sys of 0.55 in half of all
cohorts of 120 people). It is taken off in quadrature instead, and coverage is shown by simulation (bench.audit).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_array
from scipy.stats import rankdata

from gateway.evidence.pairs import Floats, Ints, ScoredPairs

COARSE = 20  # quantile bins of the estimator
FINE = 200  # for pool-adjacent-violators in a replicate
ALPHA = 0.05  # nominal; the percentile leaves a fifth of it, which covers in every setting of facts and bench.audit
PERCENTILE_SHARE = 1 / 5
AT_ONCE = 32  # replicates whose weights are in memory together


@dataclass(frozen=True, slots=True)
class Linkability:
    """`value` is the larger of `bins` and `pav`. `upper` bounds it one-sidedly; `excess_upper` bounds what it has over
    `null_mean`, the reading of shuffled labels. `p` is the permutation p-value. ω is the prior ratio.

    `margin`: how far the 99th percentile of the bootstrap lies above its mean. `excess_upper` stands on it and not on
    `upper`, whose percentile carries the estimator's own bias a second time.
    """

    value: float
    bins: float
    pav: float
    upper: float
    margin: float
    null_mean: float
    excess_upper: float
    p: float
    people: int
    people_with_mates: int
    mated: int
    non_mated: int
    omega: float


def d_sys(mated: Floats, non_mated: Floats, *, omega: float = 1.0) -> float:
    """Point estimate, the larger of quantile bins and PAV. Raises ValueError without scores of both kinds."""
    if not len(mated) or not len(non_mated):
        raise ValueError("D_sys needs mated and non-mated scores")
    return max(_read(mated, non_mated, omega))


def _read(mated: Floats, non_mated: Floats, omega: float) -> tuple[float, float]:
    """(bins, PAV)."""
    fine = _edges(mated, FINE)
    return _of_bins(_histogram(mated, fine), _histogram(non_mated, fine), omega)


def _of_bins(mated: Floats, non_mated: Floats, omega: float) -> tuple[float, float]:
    """(bins, PAV) of counts in fine bins."""
    fold = max(1, (len(mated) - 1) // COARSE)
    return _of_counts(_coarse(mated, fold), _coarse(non_mated, fold), omega), _pav(mated, non_mated, omega)


def excess(reading: float, null_mean: float) -> float:
    """What a reading of D_sys has over that of shuffled labels: 0 up to it, 1 for a reading of 1.

    D in reading² = D² + null_mean² (1 − D²): noise that is cut off at 0 adds to a signal as a length does, and has no
    room where all is told apart already.
    """
    if reading >= 1:
        return 1.0
    return math.sqrt((reading**2 - null_mean**2) / (1 - null_mean**2)) if reading > null_mean else 0.0


def separation(mated: Floats, non_mated: Floats) -> tuple[float, float]:
    """(AUC, EER) of telling mated from non-mated by the score; ties count half."""
    ranks = rankdata(np.concatenate([mated, non_mated]))
    m, n = len(mated), len(non_mated)
    auc = (ranks[:m].sum() - m * (m + 1) / 2) / (m * n)
    cuts = np.unique(np.concatenate([mated, non_mated]))
    misses = np.searchsorted(np.sort(mated), cuts, "left") / m
    alarms = 1 - np.searchsorted(np.sort(non_mated), cuts, "left") / n
    at = int(np.argmin(np.abs(misses - alarms)))
    return float(auc), float((misses[at] + alarms[at]) / 2)


def linkability(
    pairs: ScoredPairs,
    generator: np.random.Generator,
    *,
    omega: float = 1.0,
    replicates: int = 1000,
    permutations: int = 999,
    alpha: float = ALPHA,
) -> Linkability:
    """Estimate, bound and null of one set of pairs. `alpha` is the chance that the bound lies under the truth: a
    repeated look passes a smaller one. Raises ValueError with fewer than two people who have mates."""
    if pairs.people_with_mates < 2 or not len(pairs.non_mated_at):
        raise ValueError("linkability needs at least two people with scans of two sessions")
    edges = _edges(pairs.mated, FINE)
    tables = _Tables.of(pairs, edges)
    ((bins, pav),) = tables.read(np.ones((1, pairs.count)), omega)
    draws: list[float] = []
    while len(draws) < replicates:
        size = (min(AT_ONCE, replicates - len(draws)), pairs.count)
        weights = np.stack(
            [np.bincount(row, minlength=pairs.count) for row in generator.integers(pairs.count, size=size)]
        )
        draws += map(max, tables.read(weights.astype(np.float64), omega))
    value, percentile = max(bins, pav), float(np.percentile(draws, 100 * (1 - alpha * PERCENTILE_SHARE)))
    margin = percentile - float(np.mean(draws))
    null = _null(pairs, generator, omega, permutations)
    return Linkability(
        value=value,
        bins=bins,
        pav=pav,
        upper=max(percentile, value),
        margin=margin,
        null_mean=float(null.mean()),
        excess_upper=excess(value + margin, float(null.mean())),
        p=float((1 + (null >= value).sum()) / (1 + len(null))),
        people=pairs.count,
        people_with_mates=pairs.people_with_mates,
        mated=len(pairs.mated_at),
        non_mated=len(pairs.non_mated_at),
        omega=omega,
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    """Counts by person: a replicate weighs mated pairs by w_i, non-mated ones by w_i w_j. A person drawn twice is no
    mate of himself. `non_mated` is (bins, pairs of people), sparse; `first` and `second` say who the pairs are.
    """

    mated_sb: Floats  # (people, bins)
    non_mated: csr_array
    first: Ints
    second: Ints

    @classmethod
    def of(cls, pairs: ScoredPairs, edges: Floats) -> _Tables:
        bins = len(edges) + 1
        mated = np.zeros((pairs.count, bins))
        np.add.at(mated, (pairs.subject[pairs.mated_at[:, 0]], _bin(pairs.mated, edges)), 1)
        whose = pairs.subject[pairs.non_mated_at]
        couples, which = np.unique(whose[:, 0] * pairs.count + whose[:, 1], return_inverse=True)
        at = (_bin(pairs.non_mated, edges), which)
        non_mated = csr_array((np.ones(len(which)), at), shape=(bins, len(couples)))
        return cls(mated, non_mated, couples // pairs.count, couples % pairs.count)

    def read(self, weights_rs: Floats, omega: float) -> list[tuple[float, float]]:
        """(bins, PAV) under each row of weights of people; 0 where a draw holds no mates."""
        mated_rb = weights_rs @ self.mated_sb
        non_mated_br = self.non_mated @ (weights_rs[:, self.first] * weights_rs[:, self.second]).T
        return [
            _of_bins(mated, non_mated, omega) if mated.any() and non_mated.any() else (0.0, 0.0)
            for mated, non_mated in zip(mated_rb, non_mated_br.T, strict=True)
        ]


def _null(pairs: ScoredPairs, generator: np.random.Generator, omega: float, permutations: int) -> Floats:
    """What the estimator reads when labels are shuffled over scans; every person keeps the number of scans."""
    pooled = np.sort(np.concatenate([pairs.mated, pairs.non_mated]))
    probes, gallery = pairs.mated_at[:, 0], pairs.mated_at[:, 1]
    read = np.empty(permutations)
    for k in range(permutations):
        shuffled = generator.permutation(len(pairs.scores))
        mated = pairs.scores[probes if pairs.paired else shuffled[probes], shuffled[gallery]].astype(np.float64)
        edges = _edges(mated, FINE)
        counts = _histogram(mated, edges)
        inside = np.concatenate([[0], np.searchsorted(pooled, edges, "left"), [len(pooled)]])
        read[k] = max(_of_bins(counts, np.maximum(np.diff(inside) - counts, 0), omega))
    return read


def _edges(mated: Floats, bins: int) -> Floats:
    """Lower edges of the quantile bins; below the first is the open bin, above the last everything."""
    return np.unique(np.quantile(mated, np.arange(bins) / bins, method="inverted_cdf"))


def _bin(scores: Floats, edges: Floats) -> Ints:
    return np.searchsorted(edges, scores, "right").astype(np.int64)


def _histogram(scores: Floats, edges: Floats) -> Floats:
    return np.bincount(_bin(scores, edges), minlength=len(edges) + 1).astype(np.float64)


def _coarse(counts: Floats, fold: int) -> Floats:
    """The open bin stays by itself, the others are joined `fold` by `fold`."""
    return np.concatenate([counts[:1], np.add.reduceat(counts[1:], np.arange(0, len(counts) - 1, fold))])


def _of_counts(mated: Floats, non_mated: Floats, omega: float) -> float:
    p_m, p_n = mated / mated.sum(), non_mated / non_mated.sum()
    under = omega * p_m + p_n
    local = np.divide(omega * p_m - p_n, under, out=np.zeros_like(under), where=under > 0)
    return float((p_m * np.maximum(local, 0)).sum())


def _pav(mated: Floats, non_mated: Floats, omega: float) -> float:
    """E_m[max(0, 2p−1)], p the isotonic posterior of "mated" under the prior ratio ω."""
    p_m, p_n = mated / mated.sum(), non_mated / non_mated.sum()
    weight = omega * p_m + p_n
    seen = weight > 0
    posterior = isotonic_regression(omega * p_m[seen] / weight[seen], weights=weight[seen]).x
    return float((p_m[seen] * np.maximum(2 * posterior - 1, 0)).sum())
