"""Check `linkability`: D_sys over the people of a release, as the excess over what shuffled labels read.

Two attacks, never mixed, the worse decides: `same_scan` (the original of this very scan) and `other_visit` (an original
of another day; judged once so many people have one that a leak-free release would pass). Each in the release by itself
and in all that the policy has released, so that neither a leak in few studies nor one that only many show goes unseen.
An attacker that does not find the untouched originals of the same people says nothing by its silence: its figure is
void.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from gateway.gate.aspects import IDENTITY
from gateway.gate.attackers import Folders, card_faults, cards_in, common_modalities
from gateway.gate.release_power import FURTHER_CHANCE, LEAST_CHANCE, linkability_chance, people_needed, reach_of
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

NAME = "linkability"
WORKS_AT_P = 0.01
WORKS_PERMUTATIONS = 199


@dataclass(frozen=True)
class ReleaseLinkability:
    """`max_excess_upper`: what D_sys at ω = 1 may have over its permutation null, as an upper bound at `confidence`.
    `views`: limits for the background and the lesion by themselves.
    """

    cards: tuple[str, ...]
    max_excess_upper: float
    confidence: float = 0.95
    views: ViewLimits = field(default=ViewLimits(), metadata=CAME_LATER)

    judges: ClassVar[frozenset[str]] = frozenset({IDENTITY})
    LEVELS_HELP: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.cards:
            raise ValueError("cards needs at least one attacker: a threshold without a card says nothing")
        if not all(0 < limit < 1 for _, limit in self._limits):
            says = "max_excess_upper and limits of views lie between 0 and 1"
            raise ValueError(f"{says}: D_sys is 0 where nothing links, 1 where all does")
        if not 0.5 <= self.confidence < 1:
            raise ValueError("confidence lies between 0.5 and 1")

    @property
    def further_views(self) -> tuple[tuple[str, float], ...]:
        """(view, limit) beside the whole image."""
        return self.views.named

    @property
    def _limits(self) -> tuple[tuple[str, float], ...]:
        return (WHOLE, self.max_excess_upper), *self.further_views

    def judge(self, sample: ReleaseSample, policy: Policy) -> ReleaseVerdict:  # noqa: ARG002 - the protocol of a check
        return self.over(sample)

    def over(self, sample: ReleaseSample) -> ReleaseVerdict:
        """The same for members without a policy (the self-test)."""
        return concluded(NAME, self.cards, list(self._scores(sample)))

    def _scores(self, sample: ReleaseSample) -> Iterator[Score]:
        for view, limit in self._limits:
            yield from undrawn(NAME, sample, self.cards, view, limit)
            for scope in sample.scopes:
                alpha = sample.alpha(scope, self.confidence)
                for card, metric, scored in by_card(sample, self.cards, scope, view):
                    for attack in ATTACKS:
                        base = Score(NAME, scope, limit, card, attack, metric, view=view)
                        yield self._one(sample, base, scored, alpha)

    def _one(self, sample: ReleaseSample, base: Score, scored: Scored, spent_alpha: float) -> Score:
        """The figure that `base` names."""
        from gateway.evidence import excess, linkability

        attack = base.attack
        of_view = () if base.view == WHOLE else (base.view,)
        generator = sample.stream(NAME, base.scope, base.card, base.metric, attack, *of_view)
        pairs = scored.pairs(attack, generator)
        base = replace(base, people=pairs.people_with_mates)
        own = attack == SAME_SCAN and base.scope == RELEASE
        if own and base.people < MIN_PEOPLE:
            return replace(base, note=TOO_FEW)
        if not own and self._chance(base.people, spent_alpha, base.limit) < FURTHER_CHANCE:
            return replace(base, note=TO_COME)
        untouched = scored.pairs(attack, generator, untouched=True)
        works = linkability(untouched, generator, replicates=1, permutations=WORKS_PERMUTATIONS).p <= WORKS_AT_P
        alpha = 1 - self.confidence
        found = linkability(
            pairs, generator, replicates=sample.replicates, permutations=sample.permutations, alpha=alpha
        )
        # Beyond what replicates can show, the bound is drawn out along the normal that sums over many people follow.
        reach = reach_of(spent_alpha) / reach_of(alpha)
        return replace(
            base,
            estimate=excess(found.value, found.null_mean),
            upper=excess(found.value + found.margin * max(1.0, reach), found.null_mean),
            note="" if works else VOID,
        )

    def _chance(self, people: int, alpha: float, limit: float) -> float:
        """That so many people pass a limit if nothing leaks."""
        return linkability_chance(people, limit, alpha) if people >= MIN_PEOPLE else 0.0

    def misfits(self, policy: Policy, folders: Folders) -> Iterator[tuple[str, str]]:
        """Why this check cannot work in this policy, with hints."""
        yield from card_faults(self.cards, policy, folders)
        if policy.release is not None:
            people = policy.release.min_subjects
            if people < MIN_PEOPLE:
                yield f"{people} people are no evidence for {NAME}", f"min_subjects needs at least {MIN_PEOPLE}"
                return
            alpha = spent(1 - self.confidence, policy.looks)
            for view, limit in self._limits:
                chance = partial(self._chance, alpha=alpha, limit=limit)
                if chance(people) < LEAST_CHANCE:
                    yield people_needed(in_view(NAME, view), people, chance)

    def modalities(self, policy: Policy, folders: Folders) -> frozenset[str]:
        """What it can judge; empty when that is not known."""
        return common_modalities(cards_in(policy, self.cards), folders)
