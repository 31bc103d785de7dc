"""A release judged over its people: every release check of the policy, on the studies of the release and of all before.

The gate is given members (`release_sample`) and says yes or no with figures; who is in a release, how often it was
looked at and what becomes of it is kept by `app`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from gateway.errors import Hold
from gateway.gate.attackers import Folders, all_cards, card_faults, card_named, metrics_of
from gateway.gate.release_anonymity import ReleaseAnonymity
from gateway.gate.release_attribute import ReleaseAttribute
from gateway.gate.release_isolation import ReleaseIsolation
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_rank1 import ReleaseRank1
from gateway.gate.release_sample import Member, ReleaseSample, ReleaseVerdict, Score
from gateway.gate.release_strata import Stratum, strata_of
from gateway.policy import Policy
from gateway.study import Outcome
from models.cards import CardError

MOST_STUDIES = 2000  # that are scored against each other; earlier ones beyond it are drawn


class ReleaseCheck(Protocol):
    """What `judge_release` needs of a check."""

    judges: ClassVar[frozenset[str]]

    def judge(self, sample: ReleaseSample, policy: Policy) -> ReleaseVerdict: ...


RELEASE_CHECKS: dict[str, type] = {
    "linkability": ReleaseLinkability,
    "rank1": ReleaseRank1,
    "attribute_inference": ReleaseAttribute,
    "record_isolation": ReleaseIsolation,
    "anonymity_psnr": ReleaseAnonymity,
}


@dataclass(frozen=True, slots=True)
class ReleaseJudgement:
    """What the gate says of a release. `reason` and `at` are "" exactly when it passes.

    `stronger_may_help` is true when nothing stands against the release but what a stronger level can change. `strata`
    say in which groups of people the attackers find most; they decide nothing.
    """

    verdicts: tuple[ReleaseVerdict, ...]
    reason: str = ""
    at: str = ""
    stronger_may_help: bool = False
    strata: tuple[Stratum, ...] = ()

    @property
    def passes(self) -> bool:
        return not self.reason

    @property
    def scores(self) -> tuple[Score, ...]:
        return tuple(score for verdict in self.verdicts for score in verdict.scores)


def judge_release(
    members: Sequence[Member],
    *,
    policy: Policy,
    looks: Mapping[str, int],
    seed: int,
    folders: Folders,
    **effort: Any,
) -> ReleaseJudgement:
    """Every release check of the policy; the first that does not pass gives the reason.

    `looks` counts by scope how often policy and cards were looked at, this time included. The order of the members does
    not matter. `effort` are `replicates` and `permutations` of a `ReleaseSample`. A check that this build does not have
    raises Hold("gate_failed").
    """
    if not any(member.current for member in members):
        raise Hold("no_instances", at="release")
    cards = all_cards(policy)
    faults = card_faults(cards, policy, folders)
    if faults:
        return ReleaseJudgement((), "no_identity_evidence", "a card cannot judge this policy")
    try:
        metrics = {name: metrics_of(card_named(name, folders)[0]) for name in cards}
    except CardError:
        return ReleaseJudgement((), "no_identity_evidence", "a card is gone")
    sample = ReleaseSample(_chosen(members, seed), looks, seed, metrics, **effort)
    verdicts = tuple(check.judge(sample, policy) for check in _checks(policy))
    strata = strata_of(sample, policy)
    failed = next((verdict for verdict in verdicts if verdict.outcome is not Outcome.PASS), None)
    if failed is not None:
        helps = all(_eased(verdict, policy) for verdict in verdicts)
        return ReleaseJudgement(verdicts, failed.reason, failed.at, helps, strata)
    return ReleaseJudgement(verdicts, strata=strata)


def _eased(verdict: ReleaseVerdict, policy: Policy) -> bool:
    """It passed, or failed for what it measures (not for want of evidence) and a stronger level can change that."""
    if verdict.outcome is Outcome.PASS:
        return True
    return getattr(policy.gate.release[verdict.check], "LEVELS_HELP", False) and verdict.reason == verdict.check


def _chosen(members: Sequence[Member], seed: int) -> tuple[Member, ...]:
    """All of the release; of those before it at most as many as can be scored, drawn by people."""
    ordered = sorted(members, key=lambda one: (one.person, one.session, sorted(one.embedded)))
    current = [one for one in ordered if one.current]
    before = [one for one in ordered if not one.current]
    room = max(0, MOST_STUDIES - len(current))
    if len(before) > room:
        generator = ReleaseSample((), {}, seed, {}).stream("earlier")
        people = generator.permutation(sorted({one.person for one in before}))
        rank = {person: number for number, person in enumerate(people)}
        before = sorted(before, key=lambda one: (rank[one.person], one.session))[:room]
    return (*current, *before)


def _checks(policy: Policy) -> tuple[ReleaseCheck, ...]:
    for name, check in policy.gate.release.items():
        if name not in RELEASE_CHECKS or not isinstance(check, RELEASE_CHECKS[name]):
            raise Hold("gate_failed", at="a release check of the policy is not in this build")
    return tuple(policy.gate.release.values())
