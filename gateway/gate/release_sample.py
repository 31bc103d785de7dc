"""What a release is judged by: studies, whose they are, and their embeddings. Labels are opaque; no value is here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.study import Outcome

if TYPE_CHECKING:
    from gateway.evidence import ScoredPairs

Pixels = NDArray[np.float32]
Ints = NDArray[np.int64]

SAME_SCAN, OTHER_VISIT = "same_scan", "other_visit"
ATTACKS = (SAME_SCAN, OTHER_VISIT)
WHOLE, BACKGROUND, LESION = "whole", "background", "lesion"  # of an image, see `lesion_views`
RELEASE, ALL = "release", "all"  # this release by itself; with everything that the policy released before
MIN_PEOPLE = 50  # below it a release is "no evidence" (facts of the audit, 4.4)
MOST_PAIRS = 200_000  # non-mated pairs that are scored; more say nothing new and cost memory


@dataclass(frozen=True, slots=True)
class Member:
    """One study of a release. `person` and `session` are keyed names; studies of one day are one session.

    `kept` holds the attributes that leave and `attributes` those that an attacker may infer, each value as a keyed
    hash. `embedded` maps a card to (originals, released), each (views, dimensions) in one order; `parts` maps
    background and lesion to the same of these, where the policy has them judged apart; `lesion` holds attributes of the
    lesion that leaves, as `kept` does.
    """

    person: str
    session: str
    current: bool = True  # of the release that is judged; False: released before
    kept: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    embedded: Mapping[str, tuple[Pixels, Pixels]] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, tuple[Pixels, Pixels]]] = field(default_factory=dict)
    lesion: Mapping[str, str] = field(default_factory=dict)

    def seen(self, view: str) -> Mapping[str, tuple[Pixels, Pixels]]:
        """By card, in one view."""
        return self.embedded if view == WHOLE else self.parts.get(view, {})


@dataclass(frozen=True, slots=True)
class Score:
    """One figure of a release. `upper` bounds `estimate` one-sidedly; `note` is "" or why it is no evidence. `view`
    says of what: the whole image, its background or its lesion.
    """

    check: str
    scope: str
    limit: float
    card: str = ""
    attack: str = ""
    metric: str = ""
    estimate: float = float("nan")
    upper: float = float("nan")
    people: int = 0
    note: str = ""
    view: str = WHOLE


@dataclass(frozen=True, slots=True)
class ReleaseVerdict:
    """What one check says of a release. `reason` is a key of errors.REASONS when it holds, `at` says by how much."""

    check: str
    outcome: Outcome
    reason: str = ""
    at: str = ""
    scores: tuple[Score, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseSample:
    """The members of a release and of all before it.

    `looks` counts by scope how often this policy and its cards were looked at, this time included: alpha is spent on
    each. `seed` decides every draw, and stays the same however often the release is judged. `metrics` names the
    distances of each card.
    """

    members: tuple[Member, ...]
    looks: Mapping[str, int]
    seed: int
    metrics: Mapping[str, tuple[str, ...]]
    replicates: int = 1000
    permutations: int = 999

    @property
    def scopes(self) -> tuple[str, ...]:
        """Both, once something was released before."""
        return (RELEASE,) if all(member.current for member in self.members) else (RELEASE, ALL)

    def of(self, scope: str) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.current or scope == ALL)

    def alpha(self, scope: str, confidence: float) -> float:
        """What this look may spend of 1 - confidence."""
        return spent(1 - confidence, self.looks.get(scope, 1))

    def stream(self, *purpose: str) -> np.random.Generator:
        """Random numbers of one purpose: another check does not change them."""
        return np.random.default_rng([self.seed, *(byte for part in purpose for byte in f"{part}\0".encode())])


@dataclass(frozen=True, slots=True)
class Scored:
    """Studies that one card knows: who and when (n,), and similarities (n, n) of what left and of originals."""

    subject: Ints
    session: Ints
    released: Pixels  # probe: what left; gallery: originals
    untouched: Pixels  # probe and gallery: originals

    @property
    def people(self) -> int:
        return int(self.subject.max()) + 1 if len(self.subject) else 0

    def pairs(self, attack: str, generator: np.random.Generator, *, untouched: bool = False) -> ScoredPairs:
        """Mates and others under one attack; at most MOST_PAIRS others, drawn."""
        from gateway.evidence import ScoredPairs

        n = len(self.subject)
        i, j = np.nonzero(~np.eye(n, dtype=bool))
        apart = self.subject[i] != self.subject[j]
        others = np.flatnonzero(apart)
        if len(others) > MOST_PAIRS:
            others = np.sort(generator.choice(others, MOST_PAIRS, replace=False))
        if attack == SAME_SCAN:
            every = np.arange(n)
            mates = np.stack([every, every], 1)
        else:
            visits = ~apart & (self.session[i] != self.session[j])
            mates = np.stack([i[visits], j[visits]], 1)
        scores = self.untouched if untouched else self.released
        non_mated = np.stack([i[others], j[others]], 1)
        return ScoredPairs(scores, mates, non_mated, self.subject, attack == SAME_SCAN, self.people)


def spent(alpha: float, look: int) -> float:
    """α·6/(π²k²) for the k-th look, which sums to α over all of them (facts of the audit, 4.4)."""
    return float(alpha * 6 / (np.pi**2 * max(1, look) ** 2))


def numbered(labels: Sequence[str]) -> Ints:
    """0 and up, one number a label."""
    return np.unique(np.asarray(labels, str), return_inverse=True)[1].astype(np.int64)


def known_to(members: Sequence[Member], card: str, view: str = WHOLE) -> tuple[Member, ...]:
    """The members that have an image in this card's domain."""
    return tuple(member for member in members if card in member.seen(view))


def score(members: Sequence[Member], card: str, metric: str, view: str = WHOLE) -> Scored:
    """Study against study: the nearest pair of their images counts, so that one untouched image gives a study away."""
    originals, released = zip(*(member.seen(view)[card] for member in members), strict=True)
    starts = np.cumsum([0, *(len(rows) for rows in originals)])[:-1]
    gallery, probes = np.concatenate(originals), np.concatenate(released)
    return Scored(
        numbered([member.person for member in members]),
        numbered([f"{member.person}|{member.session}" for member in members]),
        _nearest(probes, gallery, starts, metric),
        _nearest(gallery, gallery, starts, metric),
    )


def _nearest(probes: Pixels, gallery: Pixels, starts: Any, metric: str) -> Pixels:
    from gateway.evidence import METRICS

    similar = -METRICS[metric](np.ascontiguousarray(probes, np.float32), np.ascontiguousarray(gallery, np.float32))
    if not np.isfinite(similar).all():  # no number is larger or smaller than it: every comparison would say "far"
        raise Hold("no_identity_evidence", at=f"{metric} distances are not finite")
    return np.asarray(np.maximum.reduceat(np.maximum.reduceat(similar, starts, 0), starts, 1), np.float32)


def by_card(
    sample: ReleaseSample, cards: Sequence[str], scope: str, view: str = WHOLE
) -> Iterator[tuple[str, str, Scored]]:
    """(card, metric, scores) of every attacker in a scope, by what it sees in one view."""
    for card in cards:
        members = known_to(sample.of(scope), card, view)
        for metric in sample.metrics[card] if members else ():
            yield card, metric, score(members, card, metric, view)
