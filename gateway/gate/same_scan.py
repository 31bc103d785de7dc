"""Check `same_scan`: does whoever holds the original of this very scan find it in what is about to leave?

Every image of the study is embedded before and after (`views`), and its distance to its own original is placed among
the distances of impostors that the card carries: p is conformal, the smallest one of the study decides. No card, no
impostors, or an image that is in no card's domain is no evidence, which holds.

A study that is tried again at a stronger level has another chance to pass by luck, so that each look asks for more: the
k-th holds below k times the p-value of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gateway.errors import Hold
from gateway.gate.aspects import IDENTITY
from gateway.gate.attackers import Folders, card_faults, card_named, folders_of, impostors_of
from gateway.gate.reading import Pair
from gateway.gate.views import NO_EVIDENCE, accepted_in, embed_study
from gateway.policy import Policy
from gateway.study import Finding, Outcome, Verdict
from models.cards import CardError

NAME = "same_scan"
MOST_FALSE_HOLDS = 0.2  # of studies without a trace: more is a filter that nothing passes


@dataclass(frozen=True)
class SameScan:
    """`card` names the attacker; a study is held when the p-value of one of its images lies below `hold_below_p`."""

    card: str
    hold_below_p: float = 0.01

    judges: ClassVar[frozenset[str]] = frozenset({IDENTITY})
    LEVELS_HELP: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.hold_below_p <= MOST_FALSE_HOLDS:
            raise ValueError(f"hold_below_p is a probability above 0 and at most {MOST_FALSE_HOLDS}")

    def judge(self, pairs: Sequence[Pair], policy: Policy) -> Verdict:
        """With the cards that ship; see `judge_by_cards`."""
        return self.judge_by_cards(pairs, policy, folders_of())

    def judge_by_cards(self, pairs: Sequence[Pair], policy: Policy, folders: Folders, look: int = 1) -> Verdict:
        """Judge all candidates together; `look` counts how often the study was made, this time included. Raises
        Hold("gate_failed") when a file cannot be read.
        """
        if card_faults((self.card,), policy, folders):
            return _no_evidence(f"card {self.card}", "cannot judge this policy")
        try:
            impostors = impostors_of(*card_named(self.card, folders))
        except CardError:
            return _no_evidence(f"card {self.card}", "no impostors")
        if not self._can_hold(impostors.people):
            return _no_evidence(f"card {self.card}", "too few impostors for hold_below_p")
        try:
            found = embed_study(pairs, (self.card,), folders, accepted_in(policy))
        except Hold as hold:
            if hold.reason != NO_EVIDENCE:
                raise
            return _no_evidence(hold.at, "no card can judge it")
        from gateway.evidence import distances

        findings, views, least, limit = [], 0, 1.0, self.hold_below_p * look
        for embedded in found:
            for number, name in enumerate(embedded.names):
                views += 1
                own = distances(embedded.released[[number]], embedded.originals[[number]], impostors.metric)
                p = impostors.p_value(float(np.asarray(own)[0, 0]))
                least = min(least, p)
                if p < limit:
                    findings.append(Finding(NAME, name, "image", f"p {p:.4f} of its own original by {self.card}"))
        assessed = {"images": views, "impostors": impostors.people}
        scores = {"smallest_p": round(least, 6), "hold_below_p": limit} if views else {}
        if findings:
            return Verdict(NAME, Outcome.HOLD, NAME, tuple(findings), assessed, scores)
        return Verdict(NAME, Outcome.PASS, assessed=assessed, scores=scores)

    def misfits(self, policy: Policy, folders: Folders) -> Iterator[tuple[str, str]]:
        """Why this check cannot work in this policy, with hints."""
        yield from card_faults((self.card,), policy, folders)
        last = self.hold_below_p * policy.attempts
        if last > MOST_FALSE_HOLDS:
            says = f"at attempt {policy.attempts} it would hold {last:.0%} of studies without a trace"
            yield f"{says}, at most {MOST_FALSE_HOLDS:.0%} is let through", "lower hold_below_p, or max_attempts"
        try:
            people = impostors_of(*card_named(self.card, folders)).people
        except CardError as error:
            told = f"deid-gateway models calibrate {self.card} --cohort READER=FOLDER --name NEW"
            yield (
                str(error),
                f"calibrate it on people of yours ({told}) and name NEW, or name a card that is calibrated",
            )
            return
        if not self._can_hold(people):
            least = f"with {people} impostors no p-value lies below {1 / (people + 1):.4f}"
            yield f"hold_below_p {self.hold_below_p:g} can never hold anything: {least}", "raise hold_below_p"

    def _can_hold(self, people: int) -> bool:
        """Whether any p-value lies below the limit: the least one is that of an image nearer than every impostor."""
        return self.hold_below_p > 1 / (people + 1)

    def modalities(self, policy: Policy, folders: Folders) -> frozenset[str]:  # noqa: ARG002 - the protocol of a check
        """What it can judge; empty when that is not known."""
        try:
            return frozenset(card_named(self.card, folders)[0].modalities)
        except CardError:
            return frozenset()


def _no_evidence(where: str, rule: str) -> Verdict:
    instance, _, place = where.partition(" ")
    return Verdict(NAME, Outcome.HOLD, NO_EVIDENCE, (Finding(NAME, instance, place or "image", rule),))
