"""Check `anonymity_psnr`: the pixel criterion of the lesion-preserving paper (its section 4.5), over people.

Each released volume is held, depth by depth inside the brain, against its own original and against the originals of
all other people at the same depth. It counts as anonymised where it is less than 10·log10(p / (1 - p)) dB nearer to its
own than to the nearest other one: 3.68 dB of plain PSNR for p = 0.7, which is the paper's 7.36 dB of its doubled one.
That passes a volume whose own original is still the nearest, so the check clears nobody's identity and may not stand
alone. A lesion that stays is read with the brain around it: it makes a volume nearer to its own, never further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.gate.aspects import IDENTITY
from gateway.gate.attackers import Folders, card_faults, card_named, common_modalities
from gateway.gate.release_power import FURTHER_CHANCE, LEAST_CHANCE, people_needed
from gateway.gate.release_sample import (
    MIN_PEOPLE,
    RELEASE,
    SAME_SCAN,
    Ints,
    Member,
    ReleaseSample,
    ReleaseVerdict,
    Score,
    known_to,
    numbered,
    spent,
)
from gateway.gate.release_verdict import TO_COME, TOO_FEW, concluded
from gateway.policy import Policy
from models.cards import CardError

NAME = "anonymity_psnr"
CARD, ALGORITHM, METRIC = "brain-depths", "brain_depths", "psnr"


@dataclass(frozen=True)
class ReleaseAnonymity:
    """`min_rate`: the share of people's depths that are anonymised, as a lower bound at `confidence`, is at least this.

    `p` sets the threshold: 0.5 asks that another person's original be the nearest, 0.7 is the paper's. Scores tell the
    rest, 1 - rate, with its upper bound.
    """

    p: float = 0.7
    min_rate: float = 0.95
    cards: tuple[str, ...] = (CARD,)
    confidence: float = 0.95

    judges: ClassVar[frozenset[str]] = frozenset()  # it clears nobody
    LEVELS_HELP: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.cards:
            raise ValueError(f"cards needs at least one, as {CARD}: a threshold without a card says nothing")
        if not 0.5 <= self.p < 1:
            raise ValueError("p lies from 0.5 (another person's original is the nearest) to below 1")
        if not 0 < self.min_rate < 1:
            raise ValueError("min_rate lies between 0 and 1")
        if not 0.5 <= self.confidence < 1:
            raise ValueError("confidence lies between 0.5 and 1")

    def judge(self, sample: ReleaseSample, policy: Policy) -> ReleaseVerdict:  # noqa: ARG002 - the protocol of a check
        return concluded(NAME, self.cards, list(self._scores(sample)))

    def _scores(self, sample: ReleaseSample) -> Iterator[Score]:
        from gateway.evidence.anonymity import anonymised_rate

        limit = round(1 - self.min_rate, 9)
        for scope in sample.scopes:
            alpha = sample.alpha(scope, self.confidence)
            for card in self.cards:
                members = known_to(sample.of(scope), card)
                if not members:
                    continue
                people = len({member.person for member in members})
                base = Score(NAME, scope, limit, card, SAME_SCAN, METRIC, people=people)
                if scope == RELEASE and people < MIN_PEOPLE:
                    yield replace(base, note=TOO_FEW)
                elif scope != RELEASE and self._chance(people, alpha) < FURTHER_CHANCE:
                    yield replace(base, note=TO_COME)
                else:
                    margins_db, subject = margins(members, card)
                    rate = anonymised_rate(margins_db, subject, p=self.p, confidence=1 - alpha)
                    yield replace(base, estimate=1 - rate.rate, upper=1 - rate.lower)

    def misfits(self, policy: Policy, folders: Folders) -> Iterator[tuple[str, str]]:
        """Why this check cannot work in this policy, with hints."""
        faults = card_faults(self.cards, policy, folders)
        yield from faults
        for name in self.cards if not faults else ():
            if _algorithm(name, folders) != ALGORITHM:
                yield f"the card {name} does not read a brain depth by depth", f"name {CARD}"
        if not any(IDENTITY in check.judges for check in (*policy.gate.study.values(), *policy.gate.release.values())):
            says = f"{NAME} passes a volume whose own original is still the nearest to it: it may not stand alone"
            yield says, "add linkability or rank1 beside it, or same_scan under `study:`"
        if policy.release is not None:

            def chance(count: int) -> float:
                return self._chance(count, spent(1 - self.confidence, policy.looks))

            if chance(policy.release.min_subjects) < LEAST_CHANCE:
                yield people_needed(NAME, policy.release.min_subjects, chance)

    def _chance(self, people: int, alpha: float) -> float:
        """That so many people pass when every depth of everybody is anonymised: then the bound is α^(1/people)."""
        return float(people >= MIN_PEOPLE and alpha ** (1 / people) >= self.min_rate)

    def modalities(self, policy: Policy, folders: Folders) -> frozenset[str]:  # noqa: ARG002 - the protocol of a check
        """What it can judge; empty when that is not known."""
        return common_modalities(self.cards, folders)


def _algorithm(name: str, folders: Folders) -> str:
    try:
        return card_named(name, folders)[0].algorithm
    except CardError:
        return ""


def margins(members: Sequence[Member], card: str) -> tuple[NDArray[np.float64], Ints]:
    """By how many dB each volume is nearer to its own original than to another person's, depth by depth (n x depths,),
    and whose it is. The nearest of all volumes of others counts, so that sequences need no names. Raises
    Hold("no_identity_evidence") for vectors that are not of `brain_depths`.
    """
    from gateway.evidence.anonymity import nearest_other_db
    from models.audit_encoders.brain_depths import points

    depth = points()[1]
    originals, released = (np.concatenate([member.embedded[card][side] for member in members]) for side in (0, 1))
    if originals.shape != released.shape or originals.shape[1] != len(depth):
        raise Hold("no_identity_evidence", at=f"{card} does not read a brain depth by depth")
    if not (np.isfinite(originals).all() and np.isfinite(released).all()):
        raise Hold("no_identity_evidence", at=f"{card}: its values are not finite")
    volumes = [len(member.embedded[card][0]) for member in members]
    subject = np.repeat(numbered([member.person for member in members]), volumes)
    by_depth = [
        nearest_other_db(released[:, depth == one], originals[:, depth == one], subject) for one in np.unique(depth)
    ]
    return np.concatenate(by_depth), np.tile(subject, len(by_depth))
