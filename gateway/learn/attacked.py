"""How often people are found again behind an anonymiser, by attackers who were trained on what it makes of others.

Two attacks, never mixed: a released picture against the original of the same visit (`same_scan`), and against one of
another visit (`other_visit`). The worst of all attackers and attacks counts, with the largest bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gateway.embed import Embedder
from gateway.evidence import FixedGallery, People, fixed_gallery
from models.audit_encoders import ENCODERS
from models.cards import Card
from models.cohorts import Cohort
from models.train.attacker import fit_attacker
from models.train.trained import Options, Start, Tick

Rows = NDArray[np.float32]
ATTACKS = {"other visit": False, "same scan": True}  # name -> whether the mate is the very scan
DRAWS = 200


@dataclass(frozen=True, slots=True)
class Attacked:
    """`figures` by attacker and attack: (rank-1, upper bound). `originals`: rank-1 of the fresh attacker on untouched
    originals, by another visit: what it can do at all.
    """

    figures: Mapping[tuple[str, str], tuple[float, float]]
    originals: float

    @property
    def rank1(self) -> float:
        """Of the worst attacker."""
        return max(rank1 for rank1, _ in self.figures.values())

    @property
    def upper(self) -> float:
        """The largest bound: it covers the worst attack as surely as each covers its own."""
        return max(upper for _, upper in self.figures.values())


@dataclass(frozen=True, slots=True)
class Attack:
    """Who attacks whom: `auxiliary` people are the attackers', `judged` nobody's. `start` is what a fresh one begins
    with, and is the attacker who never saw anything released; `known` are its embeddings of the judged originals.
    `gallery` people at a time, one mate each.
    """

    start: Start
    auxiliary: Cohort
    judged: Cohort
    gallery: int
    confidence: float
    options: Options
    known: Rows

    @classmethod
    def of(
        cls,
        start: Start,
        auxiliary: Cohort,
        judged: Cohort,
        *,
        gallery: int,
        confidence: float,
        options: Options,
        tick: Tick,
    ) -> Attack:
        """Looks at the originals."""
        known = embedded(_opened(start.card, start.tensors), judged, tick)
        return cls(start, auxiliary, judged, gallery, confidence, options, known)

    def at(self, name: str, auxiliary: Cohort, judged: Cohort, hashes: frozenset[str], tick: Tick) -> Attacked:
        """Released versions of the same scans, in the same order. Raises ValueError as `fit_attacker` does."""
        fresh = fit_attacker(name, self.auxiliary, auxiliary, self.start, hashes, self.options, tick)
        own, frozen = _opened(fresh.card, fresh.tensors), _opened(self.start.card, self.start.tensors)
        originals, people = embedded(own, self.judged, tick), people_of(self.judged)
        found = {}
        for which, one, gallery in (("fresh", own, originals), ("frozen", frozen, self.known)):
            probes = embedded(one, judged, tick)
            for attack, same in ATTACKS.items():
                searched = self._searched(probes, gallery, people, same_scan=same)
                found[which, attack] = (searched.rank1, searched.upper)
        return Attacked(found, self._searched(originals, originals, people, same_scan=False).rank1)

    def _searched(self, probes: Rows, gallery: Rows, people: People, *, same_scan: bool) -> FixedGallery:
        return fixed_gallery(
            probes,
            people,
            "cosine",
            np.random.default_rng(0),
            gallery=gallery,
            size=self.gallery,
            draws=DRAWS,
            same_scan=same_scan,
            alpha=1 - self.confidence,
        )


def _opened(card: Card, tensors: Mapping[str, Tensor]) -> Embedder:
    return Embedder(card, ENCODERS[card.algorithm](card, dict(tensors)))


def people_of(cohort: Cohort) -> People:
    return People.of([scan.subject for scan in cohort], [scan.session for scan in cohort])


def embedded(one: Embedder, cohort: Cohort, tick: Tick) -> Rows:
    """(scans, dimensions)."""
    rows = []
    for done, scan in enumerate(cohort):
        tick(f"{one.card.name}: scans embedded", done, len(cohort))
        rows.append(one.embed(scan.load(), scan.spacing_mm))
    return np.stack(rows)


def falling(uppers: Sequence[float]) -> list[float]:
    """Bounds by level, the weakest level first, so that a stronger one never has the greater.

    Each takes the largest of its own and all stronger ones'. A level keeps a target, then, only when all stronger ones
    do: levels are tested from the strongest on, in a sequence that is fixed beforehand and stops at the first that
    fails, so that the confidence of one bound is that of the choice (fixed-sequence testing).
    """
    return list(np.maximum.accumulate(np.asarray(uppers, np.float64)[::-1])[::-1])
