"""Check `rank1`: how often does the nearest of a gallery belong to the person of what left?

Standardised: a gallery of fixed size with one original a person, averaged over all galleries that could be drawn. With
c people nearer than the mate among N, a gallery of G misses them all with the chance C(N-1-c, G-1) / C(N-1, G-1): this
is exact, nothing is drawn but which study stands for a person who has several. Two attacks, as in
`release_linkability`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gateway.gate.aspects import IDENTITY
from gateway.gate.attackers import Folders, card_faults, cards_in, common_modalities
from gateway.gate.release_power import FURTHER_CHANCE, LEAST_CHANCE, people_needed, rank1_chance
from gateway.gate.release_sample import (
    ATTACKS,
    MIN_PEOPLE,
    RELEASE,
    SAME_SCAN,
    WHOLE,
    ReleaseSample,
    ReleaseVerdict,
    Score,
    Scored,
    by_card,
    spent,
)
from gateway.gate.release_verdict import TO_COME, TOO_FEW, VOID, concluded
from gateway.gate.release_views import ViewLimits, in_view, undrawn
from gateway.policy import CAME_LATER, Policy

NAME = "rank1"
DRAWS = 20  # of which study stands for a person
WORKS_OVER_CHANCE = 2.0  # an attacker that finds untouched originals no more often than this is none


@dataclass(frozen=True)
class ReleaseRank1:
    """`max_upper`: rank-1 in a gallery of `gallery` people may be this at most, as an upper bound at `confidence`.

    Without `cards` all attackers of the policy's release checks. One mate: with more, the figure would be another one.
    `views`: limits for the background and the lesion by themselves.
    """

    max_upper: float
    cards: tuple[str, ...] = ()
    gallery: int = 50
    mates: int = 1
    confidence: float = 0.95
    views: ViewLimits = field(default=ViewLimits(), metadata=CAME_LATER)

    judges: ClassVar[frozenset[str]] = frozenset({IDENTITY})
    LEVELS_HELP: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.gallery < 2:
            raise ValueError("a gallery needs two people and more")
        if self.mates != 1:
            raise ValueError("mates is 1: rank-1 is standardised on one original a person")
        if not all(1 / self.gallery < limit < 1 for _, limit in self._limits):
            raise ValueError("max_upper and limits of views lie above chance (1 / gallery) and below 1")
        if not 0.5 <= self.confidence < 1:
            raise ValueError("confidence lies between 0.5 and 1")

    @property
    def further_views(self) -> tuple[tuple[str, float], ...]:
        """(view, limit) beside the whole image."""
        return self.views.named

    @property
    def _limits(self) -> tuple[tuple[str, float], ...]:
        return (WHOLE, self.max_upper), *self.further_views

    def judge(self, sample: ReleaseSample, policy: Policy) -> ReleaseVerdict:
        cards = cards_in(policy, self.cards)
        return concluded(NAME, cards, list(self._scores(sample, cards)))

    def _scores(self, sample: ReleaseSample, cards: tuple[str, ...]) -> Iterator[Score]:
        for view, limit in self._limits:
            yield from undrawn(NAME, sample, cards, view, limit)
            for scope in sample.scopes:
                alpha = sample.alpha(scope, self.confidence)
                for card, metric, scored in by_card(sample, cards, scope, view):
                    for attack in ATTACKS:
                        base = Score(NAME, scope, limit, card, attack, metric, view=view)
                        yield self._one(sample, base, scored, alpha)

    def _one(self, sample: ReleaseSample, base: Score, scored: Scored, alpha: float) -> Score:
        """The figure that `base` names."""
        from gateway.evidence import upper_share

        attack = base.attack
        of_view = () if base.view == WHOLE else (base.view,)
        generator = sample.stream(NAME, base.scope, base.card, base.metric, attack, *of_view)
        share = found_share(scored, scored.released, attack, self.gallery, generator)
        base = replace(base, people=len(share))
        own = attack == SAME_SCAN and base.scope == RELEASE
        if own and len(share) < max(MIN_PEOPLE, self.gallery):
            return replace(base, note=TOO_FEW)
        if not own and self._chance(len(share), alpha, base.limit) < FURTHER_CHANCE:
            return replace(base, note=TO_COME)
        works = found_share(scored, scored.untouched, attack, self.gallery, generator).mean()
        return replace(
            base,
            estimate=float(share.mean()),
            upper=upper_share(float(share.sum()), len(share), 1 - alpha),
            note="" if works * self.gallery > WORKS_OVER_CHANCE else VOID,
        )

    def misfits(self, policy: Policy, folders: Folders) -> Iterator[tuple[str, str]]:
        """Why this check cannot work in this policy, with hints."""
        cards = cards_in(policy, self.cards)
        if not cards:
            yield "no release check names a card, so nobody attacks", "name cards here or under linkability"
        yield from card_faults(self.cards, policy, folders)
        if policy.release is not None:
            people, alpha = policy.release.min_subjects, spent(1 - self.confidence, policy.looks)
            for view, limit in self._limits:
                chance = partial(self._chance, alpha=alpha, limit=limit)
                if chance(people) < LEAST_CHANCE:
                    yield people_needed(in_view(NAME, view), people, chance)

    def _chance(self, people: int, alpha: float, limit: float) -> float:
        """That so many people pass a limit if nothing leaks."""
        if people < max(MIN_PEOPLE, self.gallery):
            return 0.0
        return rank1_chance(people, limit, self.gallery, alpha)

    def modalities(self, policy: Policy, folders: Folders) -> frozenset[str]:
        """What it can judge; empty when that is not known."""
        return common_modalities(cards_in(policy, self.cards), folders)


def found_share(
    scored: Scored, scores: NDArray[np.float32], attack: str, gallery: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """How often each person who has a mate is found, 0 to 1, averaged over galleries. Ties are hits."""
    people, n = scored.people, len(scored.subject)
    studies = [np.flatnonzero(scored.subject == person) for person in range(people)]
    visits = [
        own[scored.session[own] != session]
        for session, own in zip(scored.session, (studies[person] for person in scored.subject), strict=True)
    ]
    missing = np.array([_missing_all(nearer, people - 1, gallery - 1) for nearer in range(people)])
    hits, asked = np.zeros(people), np.zeros(people)
    for _ in range(DRAWS if n > people else 1):
        for_gallery, probes = (_one_each(studies, generator) for _ in range(2))
        mates = probes if attack == SAME_SCAN else _one_each([visits[probe] for probe in probes], generator)
        able = np.flatnonzero(mates >= 0)
        rows = scores[np.ix_(probes[able], for_gallery)]
        closer = rows > scores[probes[able], mates[able]][:, None]
        closer[np.arange(len(able)), able] = False  # the own original that stands in the gallery is the mate's place
        hits[able] += missing[closer.sum(axis=1)]
        asked[able] += 1
    seen = asked > 0
    return np.asarray(hits[seen] / asked[seen], np.float64)


def _one_each(choices: Sequence[NDArray[np.int64]], generator: np.random.Generator) -> NDArray[np.int64]:
    """One of each, -1 where there is none."""
    drawn = generator.random(len(choices))
    picked = [of[int(share * len(of))] if len(of) else -1 for of, share in zip(choices, drawn, strict=True)]
    return np.asarray(picked, np.int64)


def _missing_all(nearer: int, others: int, drawn: int) -> float:
    """C(others - nearer, drawn) / C(others, drawn), in whole numbers: 1 is 1, and no sum of them passes its count."""
    return comb(others - nearer, drawn) / comb(others, drawn) if drawn <= others else 0.0
