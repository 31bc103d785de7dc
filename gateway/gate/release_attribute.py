"""Check `attribute_inference`: can an attribute that was taken out be inferred from the images that left?

A random forest over the embeddings of what left, cross-validated so that no person is in two folds; the bound is over
people. It must first succeed on the untouched originals of the same people, or its figure is void.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gateway.gate.attackers import Folders, card_faults, cards_in, common_modalities
from gateway.gate.release_facts import ATTRIBUTES
from gateway.gate.release_power import FURTHER_CHANCE, LEAST_CHANCE, NORMAL, attribute_chance, people_needed
from gateway.gate.release_sample import (
    MIN_PEOPLE,
    RELEASE,
    Member,
    ReleaseSample,
    ReleaseVerdict,
    Score,
    known_to,
    numbered,
    spent,
)
from gateway.gate.release_verdict import TO_COME, TOO_FEW, VOID, concluded
from gateway.policy import Policy
from gateway.policy.kept import kept_keywords

NAME = "attribute_inference"
WORKS_AT_P = 0.01
LEAST_OF_A_CLASS = 5  # people: one for each fold
UNTOUCHED = {"replicates": 1, "permutations": 199}
LEAST_DRAWS = 5  # replicates beyond a percentile: fewer do not show it


@dataclass(frozen=True)
class ReleaseAttribute:
    """`attribute` (sex, age_band, site, scanner) may be inferred with this balanced accuracy at most, as an upper bound
    at `confidence`. Without `cards` all attackers of the policy's release checks.
    """

    attribute: str
    max_upper_balanced_accuracy: float
    cards: tuple[str, ...] = ()
    confidence: float = 0.95

    judges: ClassVar[frozenset[str]] = frozenset()
    LEVELS_HELP: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.attribute not in ATTRIBUTES:
            raise ValueError(f"attribute is one of {', '.join(ATTRIBUTES)}")
        if not 0.5 < self.max_upper_balanced_accuracy < 1:
            raise ValueError("max_upper_balanced_accuracy lies above chance (0.5) and below 1")
        if not 0.5 <= self.confidence < 1:
            raise ValueError("confidence lies between 0.5 and 1")

    def judge(self, sample: ReleaseSample, policy: Policy) -> ReleaseVerdict:
        cards = cards_in(policy, self.cards)
        known = [(scope, card) for scope in sample.scopes for card in cards if known_to(sample.of(scope), card)]
        scores = [self._one(sample, scope, card) for scope, card in known]
        return concluded(NAME, cards, scores)

    def _one(self, sample: ReleaseSample, scope: str, card: str) -> Score:
        from gateway.evidence import infer_within

        members = _told(known_to(sample.of(scope), card), self.attribute)
        labels = [member.attributes[self.attribute] for member in members]
        people = numbered([member.person for member in members]) if members else np.zeros(0, np.int64)
        count = len(np.unique(people))
        base = Score(NAME, scope, self.max_upper_balanced_accuracy, card, people=count)
        alpha = sample.alpha(scope, self.confidence)
        if scope == RELEASE and (count < MIN_PEOPLE or len(set(labels)) < 2):
            return replace(base, note=TOO_FEW)
        if scope != RELEASE and (len(set(labels)) < 2 or self._chance(count, alpha) < FURTHER_CHANCE):
            return replace(base, note=TO_COME)
        seed = int(sample.stream(NAME, scope, card, self.attribute).integers(1 << 31))
        originals, released = (
            np.stack([member.embedded[card][side].mean(axis=0) for member in members]) for side in (0, 1)
        )
        works = infer_within(originals, people, labels, seed, **UNTOUCHED)
        shown = max(alpha, LEAST_DRAWS / sample.replicates)
        found = infer_within(
            released,
            people,
            labels,
            seed,
            replicates=sample.replicates,
            permutations=UNTOUCHED["permutations"],
            alpha=shown,
        )
        # Beyond what replicates can show, the bound is drawn out along the normal, as `attribute_chance` reckons.
        reach = NORMAL.inv_cdf(alpha) / NORMAL.inv_cdf(shown) if alpha < shown < 0.5 else 1.0
        return replace(
            base,
            estimate=found.balanced_accuracy,
            upper=min(1.0, found.balanced_accuracy + (found.upper - found.balanced_accuracy) * reach),
            note="" if works.p <= WORKS_AT_P else VOID,
        )

    def misfits(self, policy: Policy, folders: Folders) -> Iterator[tuple[str, str]]:
        """Why this check cannot work in this policy, with hints."""
        if not cards_in(policy, self.cards):
            yield "no release check names a card, so nobody attacks", "name cards here or under linkability"
        yield from card_faults(self.cards, policy, folders)
        kept = sorted(kept_keywords(policy.header) & set(ATTRIBUTES[self.attribute]))
        if kept:
            says = f"the header keeps {', '.join(kept)}: nobody needs to infer {self.attribute} from the images"
            yield says, "remove the check, or do not keep the attribute"
        if policy.release is not None:

            def chance(count: int) -> float:
                return self._chance(count, spent(1 - self.confidence, policy.looks))

            if chance(policy.release.min_subjects) < LEAST_CHANCE:
                yield people_needed(NAME, policy.release.min_subjects, chance)

    def _chance(self, people: int, alpha: float) -> float:
        """That so many people pass if nothing leaks."""
        return attribute_chance(people, self.max_upper_balanced_accuracy, alpha) if people >= MIN_PEOPLE else 0.0

    def modalities(self, policy: Policy, folders: Folders) -> frozenset[str]:
        """What it can judge; empty when that is not known."""
        return common_modalities(cards_in(policy, self.cards), folders)


def _told(members: Sequence[Member], attribute: str) -> list[Member]:
    """Members whose one value is known and shared by enough people: who changes it between studies says nothing."""
    values: dict[str, set[str]] = {}
    for member in members:
        if attribute in member.attributes:
            values.setdefault(member.person, set()).add(member.attributes[attribute])
    one = {person: next(iter(of)) for person, of in values.items() if len(of) == 1}
    sizes = Counter(one.values())
    whole = {person for person, value in one.items() if sizes[value] >= LEAST_OF_A_CLASS}
    return [member for member in members if member.person in whole and attribute in member.attributes]
