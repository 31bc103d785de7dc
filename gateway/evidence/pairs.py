"""Which pairs of scans are compared, as mated (one person) or non-mated, and their scores.

Back-to-back scans of one session are no mates: they would link by the session. Non-mated pairs may be kept to one site
or scanner, because otherwise a scanner's signature passes for identity (facts of the audit, by person).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.evidence.distances import distances

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class People:
    """Labels of n scans, as numbers from 0: whose, in which session, at which site."""

    subject: Ints
    session: Ints
    site: Ints | None = None

    @classmethod
    def of(
        cls, subject: Sequence[Any], session: Sequence[Any] | None = None, site: Sequence[Any] | None = None
    ) -> People:
        """From labels of any kind. Without sessions every scan is a session of its own."""
        whose = _numbers(subject)
        when = _numbers([f"{s}|{t}" for s, t in zip(subject, session, strict=True)]) if session is not None else None
        return cls(whose, np.arange(len(whose)) if when is None else when, None if site is None else _numbers(site))

    @property
    def count(self) -> int:
        """How many people."""
        return int(self.subject.max()) + 1 if len(self.subject) else 0

    def mated(self, i: Ints, j: Ints) -> NDArray[np.bool_]:
        """One person, two sessions."""
        return np.asarray((self.subject[i] == self.subject[j]) & (self.session[i] != self.session[j]))

    def non_mated(self, i: Ints, j: Ints, *, within_site: bool) -> NDArray[np.bool_]:
        """Two people; with `within_site` at one site."""
        apart = self.subject[i] != self.subject[j]
        if within_site:
            if self.site is None:
                raise ValueError("non-mated pairs within a site need sites")
            apart &= self.site[i] == self.site[j]
        return np.asarray(apart)


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Similarities (n, m) of probes and gallery, larger is closer; which pairs (k, 2) are mated, which non-mated.

    `paired`: probe i and gallery i are versions of one scan, and that is what makes them mates. `count`: people in all.
    """

    scores: NDArray[np.float32]
    mated_at: Ints
    non_mated_at: Ints
    subject: Ints
    paired: bool
    count: int

    @property
    def mated(self) -> Floats:
        return self.scores[self.mated_at[:, 0], self.mated_at[:, 1]].astype(np.float64)

    @property
    def non_mated(self) -> Floats:
        return self.scores[self.non_mated_at[:, 0], self.non_mated_at[:, 1]].astype(np.float64)

    @property
    def people_with_mates(self) -> int:
        return len(np.unique(self.subject[self.mated_at[:, 0]]))


def score_pairs(
    probes: NDArray[Any],
    people: People,
    metric: str,
    *,
    gallery: NDArray[Any] | None = None,
    within_site: bool = False,
) -> ScoredPairs:
    """Other visits. Without `gallery` all pairs i < j of `probes`; with one (embeddings of the same scans in the same
    order: probes are released, gallery is original) all ordered pairs of two different scans.
    """
    matrix = _similarities(probes, probes if gallery is None else gallery, people, metric)
    n = len(probes)
    i, j = np.triu_indices(n, 1) if gallery is None else np.nonzero(~np.eye(n, dtype=bool))
    mates, others = people.mated(i, j), people.non_mated(i, j, within_site=within_site)
    return ScoredPairs(matrix, _at(i, j, mates), _at(i, j, others), people.subject, False, people.count)


def score_same_scan(
    released: NDArray[Any], originals: NDArray[Any], people: People, metric: str, *, within_site: bool = False
) -> ScoredPairs:
    """The attacker holds the original of this very scan: mates are (released i, original i)."""
    matrix = _similarities(released, originals, people, metric)
    i, j = np.nonzero(~np.eye(len(released), dtype=bool))
    others = people.non_mated(i, j, within_site=within_site)
    every = np.arange(len(released))
    return ScoredPairs(matrix, np.stack([every, every], 1), _at(i, j, others), people.subject, True, people.count)


def _similarities(a: NDArray[Any], b: NDArray[Any], people: People, metric: str) -> NDArray[np.float32]:
    if not len(a) == len(b) == len(people.subject):
        raise ValueError(
            f"{len(a)} probes, {len(b)} gallery, {len(people.subject)} labels: they must be the same scans"
        )
    return -distances(a, b, metric)


def _at(i: Ints, j: Ints, chosen: NDArray[np.bool_]) -> Ints:
    return np.stack([i[chosen], j[chosen]], axis=1)


def _numbers(labels: Sequence[Any]) -> Ints:
    return np.unique(np.asarray([str(label) for label in labels]), return_inverse=True)[1].astype(np.int64)
