"""Groups of people in whom attackers find most: planted ones are found, small ones are not shown, nobody is named."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from gateway.gate.release_facts import hashed
from gateway.gate.release_rank1 import ReleaseRank1
from gateway.gate.release_sample import RELEASE, Member, ReleaseSample
from gateway.gate.release_strata import MOST_GROUPS, Stratum, labelled, strata_of
from gateway.policy import Policy

CARD, BLIND = "selftest", "blind"
KEY = b"k" * 32


class Gate:
    def __init__(self, **checks: object) -> None:
        self.release = checks


class Judging:
    """What `strata_of` reads of a policy."""

    def __init__(self, **checks: object) -> None:
        self.gate = Gate(**checks)


def policy(**checks: object) -> Policy:
    return Judging(**(checks or {"rank1": ReleaseRank1(0.2, (CARD,), gallery=20)}))  # type: ignore[return-value]


def people(count: int, *, leaking: str = "M", **attributes: list[str]) -> list[Member]:
    """Whoever has sex `leaking` leaves untouched; of the others nothing is left. Sexes alternate."""
    generator = np.random.default_rng(3)
    made = []
    for person in range(count):
        original, other = generator.normal(size=(2, 1, 24)).astype(np.float32)
        sex = "FM"[person % 2]
        told = {"sex": sex, **{name: values[person % len(values)] for name, values in attributes.items()}}
        hashes = {name: hashed(KEY, name, value) for name, value in told.items()}
        released = original if sex == leaking else other
        made.append(Member(f"{person:04d}", "1", attributes=hashes, embedded={CARD: (original, released)}))
    return made


def sample(members: list[Member]) -> ReleaseSample:
    return ReleaseSample(tuple(members), {RELEASE: 1}, 5, {CARD: ("cosine",), BLIND: ("cosine",)}, 100, 100)


def test_the_group_that_leaks_is_the_worst_and_the_average_hid_it() -> None:
    strata = labelled(strata_of(sample(people(80)), policy()), KEY)
    men, women = strata
    assert (men.attribute, men.group, men.groups, men.people, men.card) == ("sex", "M", 2, 40, CARD)
    assert (men.found, men.upper, men.gallery) == (1.0, 1.0, 20)
    assert women.group == "F"
    # Of people of whom nothing is left a gallery of 20 gives one away in 20. Clopper and Pearson bound the share.
    assert women.found == pytest.approx(1 / 20, abs=0.05)
    hits = women.found * 40
    assert women.upper == pytest.approx(beta.ppf(0.95, hits + 1, 40 - hits))


def test_the_order_of_members_and_earlier_releases_change_nothing() -> None:
    members = people(60)
    shuffled = random.Random(1).sample(members, len(members))
    earlier = [replace(one, person=f"b{one.person}", current=False) for one in people(60, leaking="F")]
    assert strata_of(sample(members), policy()) == strata_of(sample(shuffled + earlier), policy())


def test_groups_of_a_few_people_are_not_shown_and_a_single_group_is_no_group() -> None:
    members = people(60, site=["hospital A"], scanner=["one"] * 10 + ["two"] * 9 + ["three"])
    strata = strata_of(sample(members), policy())
    assert {one.attribute for one in strata} == {"sex", "scanner"}  # one site has nothing to compare
    scanners = [one for one in strata if one.attribute == "scanner"]
    assert [(one.people, one.groups) for one in scanners] == [(30, 3), (27, 3)]  # "three" has three people
    many = people(1200, scanner=[str(n) for n in range(60)])
    assert len([one for one in strata_of(sample(many), policy()) if one.attribute == "scanner"]) == MOST_GROUPS


def test_somebody_with_two_studies_is_one_person_and_belongs_to_both_scanners() -> None:
    members = people(40, scanner=["one", "two"])
    again = [replace(one, session="2", attributes={"scanner": hashed(KEY, "scanner", "two")}) for one in members[::2]]
    strata = {one.group: one for one in strata_of(sample(members + again), policy()) if one.attribute == "scanner"}
    assert strata[hashed(KEY, "scanner", "one")].people == 20
    assert strata[hashed(KEY, "scanner", "two")].people == 40


def test_ties_count_against_the_release_and_without_an_attacker_there_are_no_groups() -> None:
    constant = np.ones((1, 8), np.float32)
    members = [replace(one, embedded={BLIND: (constant, constant)}) for one in people(60)]
    tied = strata_of(sample(members), policy(rank1=ReleaseRank1(0.2, (BLIND,))))
    assert [(one.found, one.card) for one in tied] == [(1.0, BLIND), (1.0, BLIND)]
    assert strata_of(sample(people(60)), policy(record_isolation=object())) == ()
    assert strata_of(sample(people(1)), policy()) == ()


def test_a_label_says_sex_and_years_and_never_a_site_or_a_scanner() -> None:
    def stratum(attribute: str, value: str) -> Stratum:
        return Stratum(attribute, hashed(KEY, attribute, value), 3, 10, 0.5, 0.7, 20, CARD)

    told = [("age_band", "4"), ("age_band", "0"), ("scanner", "ACME|X|SN1"), ("scanner", "ACME|X|SN2"), ("sex", "F")]
    labels = [one.group for one in labelled([stratum(*one) for one in told], KEY)]
    assert labels == ["40 to 49 years", "0 to 9 years", "scanner 1", "scanner 2", "F"]
    other = labelled([stratum("sex", "F")], b"another key" * 3)
    assert other[0].group == "sex 1"  # what is not known is numbered, never shown as a hash
