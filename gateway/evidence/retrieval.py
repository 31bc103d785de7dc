"""Rank-1 and CMC: does the nearest of a gallery belong to the same person?

Two forms, never mixed: leave-one-out as papers report it (several mates for each query), and the standardised one, a
gallery of fixed size with one mate each, averaged over draws: rank-1 falls with the gallery and rises with the mates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from gateway.evidence.distances import distances
from gateway.evidence.pairs import Floats, Ints, People

DEPTH = 10  # ranks of a CMC curve
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class CumulativeMatch:
    """`cmc[r-1]`: share of queries with a mate among the first r. `by_subject`: share of a person's queries hit at rank
    1, NaN for people without a mate. `upper`: one-sided Clopper-Pearson bound of rank-1 over people.
    """

    rank1: float
    upper: float
    cmc: tuple[float, ...]
    queries: int
    people: int
    gallery: int
    chance: float
    by_subject: Floats


@dataclass(frozen=True, slots=True)
class FixedGallery:
    """Rank-1 among `gallery` people with one mate each, averaged over `draws`; `upper` by bootstrap of people."""

    rank1: float
    upper: float
    gallery: int
    draws: int
    people: int
    chance: float


def upper_share(hits: float, count: float, confidence: float = CONFIDENCE) -> float:
    """One-sided Clopper-Pearson upper bound of hits/count; hits need not be whole (people scored by a share)."""
    if not 0 <= hits <= count or count <= 0:
        raise ValueError("hits lie between 0 and count, and count is positive")
    return 1.0 if hits >= count else float(beta.ppf(confidence, hits + 1, count - hits))


def leave_one_out(
    probes: NDArray[Any], people: People, metric: str, *, gallery: NDArray[Any] | None = None
) -> CumulativeMatch:
    """Every scan with a mate is asked against all other scans but those of its own session.

    Ties count against the defender: a mate at the same distance as another person is a hit. Raises ValueError when
    nobody has a mate.
    """
    matrix = distances(probes, probes if gallery is None else gallery, metric)
    own = people.session[:, None] == people.session[None, :]
    same = people.subject[:, None] == people.subject[None, :]
    matrix = np.where(own & same, np.inf, matrix)
    mates = same & ~own
    asked = mates.any(1)
    if not asked.any():
        raise ValueError("rank-1 needs somebody with scans of two sessions")
    best = np.where(mates, matrix, np.inf).min(1)
    before = (np.where(~same, matrix, np.inf) < best[:, None]).sum(1)  # other people's scans that are nearer
    ranks = before[asked]
    cmc = tuple(float((ranks < r).mean()) for r in range(1, DEPTH + 1))
    whose = people.subject[asked]
    queries = np.bincount(whose, minlength=people.count)
    hits = np.bincount(whose, weights=ranks == 0, minlength=people.count)
    share = np.divide(hits, queries, out=np.full(people.count, np.nan), where=queries > 0)
    with_mates = int((queries > 0).sum())
    sizes = (~(own & same)).sum(1)[asked]
    return CumulativeMatch(
        rank1=cmc[0],
        upper=upper_share(float(np.nansum(share)), with_mates),
        cmc=cmc,
        queries=len(ranks),
        people=with_mates,
        gallery=int(np.median(sizes)),
        chance=float((mates.sum(1)[asked] / sizes).mean()),
        by_subject=share,
    )


def fixed_gallery(
    probes: NDArray[Any],
    people: People,
    metric: str,
    generator: np.random.Generator,
    *,
    gallery: NDArray[Any] | None = None,
    size: int = 50,
    draws: int = 200,
    mates: int = 1,
    same_scan: bool = False,
    replicates: int = 1000,
    alpha: float = 1 - CONFIDENCE,
) -> FixedGallery:
    """One probe and `mates` of each of `size` random people, again and again: rank-1 rises with the mates.

    With `same_scan` the mate is the gallery's version of the probe itself. `alpha` is the chance that `upper` lies
    under the truth. Raises ValueError with fewer than `size`
    people who have a mate: a smaller gallery would be another figure.
    """
    matrix = distances(probes, probes if gallery is None else gallery, metric)
    scans = [np.flatnonzero(people.subject == subject) for subject in range(people.count)]
    if same_scan and mates != 1:
        raise ValueError("a scan has one version of itself: same_scan means one mate")
    able = [s for s in range(people.count) if same_scan or _can_ask(scans[s], people.session, mates)]
    if len(able) < size:
        what = "a mate" if mates == 1 else f"{mates} mates"
        raise ValueError(f"a gallery of {size} needs as many people with {what}; there are {len(able)}")
    hits, asked = np.zeros(people.count), np.zeros(people.count)
    for _ in range(draws):
        drawn = generator.choice(able, size, replace=False)
        pairs = [_probe_and_mates(scans[s], people.session, generator, mates, same_scan=same_scan) for s in drawn]
        columns = np.concatenate([found for _, found in pairs])
        block = matrix[np.ix_(np.array([probe for probe, _ in pairs]), columns)].reshape(size, size, mates).min(2)
        nearest_other = np.where(np.eye(size, dtype=bool), np.inf, block).min(1)
        hits[drawn] += np.diag(block) <= nearest_other
        asked[drawn] += 1
    seen = asked > 0
    share = hits[seen] / asked[seen]
    means = share[generator.integers(len(share), size=(replicates, len(share)))].mean(1)
    rank1 = float(share.mean())
    upper = max(float(np.percentile(means, 100 * (1 - alpha))), upper_share(float(share.sum()), len(share), 1 - alpha))
    return FixedGallery(rank1, upper, size, draws, int(seen.sum()), 1 / size)


def _can_ask(scans: Ints, session: Ints, mates: int) -> bool:
    """Every scan has as many scans of other sessions beside it."""
    counts = np.unique(session[scans], return_counts=True)[1]
    return len(counts) > 1 and len(scans) - int(counts.max()) >= mates


def _probe_and_mates(
    scans: Ints, session: Ints, generator: np.random.Generator, mates: int, *, same_scan: bool
) -> tuple[int, Ints]:
    probe = int(generator.choice(scans))
    if same_scan:
        return probe, np.array([probe])
    others = scans[session[scans] != session[probe]]
    return probe, np.atleast_1d(generator.choice(others, mates, replace=False))
