"""Groups of people in a release: whom is an attack best at? An average hides a scanner whose people are all found.

Groups are those of the attributes that originals state (`release_facts.ATTRIBUTES`). A group's figure is the rank-1 of
its people in galleries drawn from the whole release (`release_rank1`), by the attacker that finds most of them. It is
shown and decides nothing: the worst of many groups passes a limit by chance, and a limit holds for everybody together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from gateway.gate.attackers import cards_in
from gateway.gate.release_facts import AGE_BAND_YEARS, hashed
from gateway.gate.release_rank1 import NAME, ReleaseRank1, found_share
from gateway.gate.release_sample import RELEASE, SAME_SCAN, Member, ReleaseSample, by_card, known_to
from gateway.policy import Policy

LEAST_PEOPLE = 10  # a figure of fewer says more of them than of their group
MOST_GROUPS = 20  # of one attribute; the worst ones
CONFIDENCE = 0.95
GALLERY = 50  # where the policy has no rank-1 of its own
OLDEST_YEARS = 130


@dataclass(frozen=True, slots=True)
class Stratum:
    """One group: `found` of its `people` come first in a gallery of `gallery`, at most `upper` (one-sided, 95 %).

    `group` is a keyed hash until `labelled`; `groups`: how many the attribute has, those too small to show included.
    """

    attribute: str
    group: str
    groups: int
    people: int
    found: float
    upper: float
    gallery: int
    card: str


def strata_of(sample: ReleaseSample, policy: Policy) -> tuple[Stratum, ...]:
    """By attribute, the worst group first; of attributes with two groups and more. () without an attacker.

    The attack holds the original of this very scan (same_scan): everybody can be asked for then.
    """
    from gateway.evidence import upper_share

    if not any(count > 1 for count in Counter(attribute for attribute, _ in _groups(sample.of(RELEASE))).values()):
        return ()  # before anything is scored
    check = policy.gate.release.get(NAME)
    wanted = check.gallery if isinstance(check, ReleaseRank1) else GALLERY
    found: dict[tuple[str, str], Stratum] = {}
    for card, metric, scored in by_card(sample, cards_in(policy), RELEASE):
        gallery = min(wanted, scored.people)
        if gallery < 2:
            continue
        share = found_share(scored, scored.released, SAME_SCAN, gallery, sample.stream("strata", card, metric))
        groups = _groups(known_to(sample.of(RELEASE), card))
        count = Counter(attribute for attribute, _ in groups)
        for (attribute, group), people in groups.items():
            if count[attribute] < 2 or len(people) < LEAST_PEOPLE:
                continue
            own = share[sorted(people)]
            upper = upper_share(float(own.sum()), len(own), CONFIDENCE)
            one = Stratum(attribute, group, count[attribute], len(own), float(own.mean()), upper, gallery, card)
            before = found.get((attribute, group))
            if before is None or one.found > before.found:
                found[attribute, group] = one
    ordered = sorted(found.values(), key=lambda one: (one.attribute, -one.found, -one.people, one.group))
    by_attribute = groupby(ordered, key=lambda one: one.attribute)
    return tuple(one for _, some in by_attribute for one in list(some)[:MOST_GROUPS])


def _groups(members: Sequence[Member]) -> dict[tuple[str, str], set[int]]:
    """(attribute, value) -> people by number, as `score` numbers them. Whoever shows two values belongs to both."""
    number = {person: at for at, person in enumerate(np.unique([member.person for member in members]))}
    groups: dict[tuple[str, str], set[int]] = {}
    for member in members:
        for named in member.attributes.items():
            groups.setdefault(named, set()).add(number[member.person])
    return groups


def labelled(strata: Sequence[Stratum], key: bytes) -> tuple[Stratum, ...]:
    """With groups that a person can read: sex and years by themselves, sites and scanners by number (1 is the worst).

    `key` is that of `facts_of`. What names a place or a machine stays unsaid.
    """
    known: Mapping[tuple[str, str], str] = {
        ("sex", hashed(key, "sex", "F")): "F",
        ("sex", hashed(key, "sex", "M")): "M",
        **{
            ("age_band", hashed(key, "age_band", str(band))): f"{low} to {low + AGE_BAND_YEARS - 1} years"
            for band in range(OLDEST_YEARS // AGE_BAND_YEARS)
            for low in [band * AGE_BAND_YEARS]
        },
    }
    seen: Counter[str] = Counter()
    told = []
    for one in strata:
        seen[one.attribute] += 1
        label = known.get((one.attribute, one.group), f"{one.attribute.replace('_', ' ')} {seen[one.attribute]}")
        told.append(replace(one, group=label))
    return tuple(told)
