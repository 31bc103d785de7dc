"""`anonymity_psnr`: the paper's pixel criterion over the people of a release, and that it never stands alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gateway.app.policy.registry import REGISTRY
from gateway.errors import Hold, PolicyError
from gateway.evidence.anonymity import anonymity, nearest_other_db, threshold_db
from gateway.gate.release_anonymity import CARD, NAME, ReleaseAnonymity
from gateway.gate.release_sample import RELEASE, Member, ReleaseSample
from gateway.policy import Policy, load_policy
from gateway.study import Outcome
from models.audit_encoders.brain_depths import points

DIMENSIONS = len(points()[0])
Rows = NDArray[np.float32]


def sample(*members: Member) -> ReleaseSample:
    return ReleaseSample(members, {RELEASE: 1}, 5, {CARD: ("euclid",)})


def people(
    count: int, own: float, views: int = 1, dimensions: int = DIMENSIONS, card: str = CARD, seed: int = 11
) -> list[Member]:
    """What left is its original, mixed with the share 1 - `own` of a brain that is nobody's."""
    generator = np.random.default_rng(seed)

    def brain() -> Rows:
        return generator.normal(size=(views, dimensions)).astype(np.float32)

    found = []
    for number in range(count):
        original = brain()
        released = (own * original + np.sqrt(1 - own**2) * brain()).astype(np.float32)
        found.append(Member(f"{number:04d}", "1", embedded={card: (original, released)}))
    return found


def judged(members: list[Member], check: ReleaseAnonymity | None = None) -> tuple[Outcome, str, str]:
    verdict = (check or ReleaseAnonymity()).judge(sample(*members), None)  # type: ignore[arg-type]
    return verdict.outcome, verdict.reason, verdict.at


def test_the_threshold_is_the_plain_one_and_twice_that_is_the_paper_s() -> None:
    assert threshold_db(ReleaseAnonymity().p) == pytest.approx(3.68, abs=0.005)
    assert threshold_db(ReleaseAnonymity().p, doubled=True) == pytest.approx(7.36, abs=0.005)


def test_originals_are_held_and_brains_that_are_nobody_s_pass() -> None:
    assert judged(people(80, 1.0))[:2] == (Outcome.HOLD, NAME)
    assert judged(people(80, 0.0, views=2))[0] is Outcome.PASS


def test_the_margin_is_where_the_paper_puts_it() -> None:
    """MSE to the own original is 2(1 - own), to others about 2: -10·log10(1 - own) dB, 3.0 and 4.6 here."""
    for own, outcome in (
        (0.5, Outcome.PASS),
        (0.65, Outcome.HOLD),
    ):
        assert judged(people(80, own))[0] is outcome
    assert judged(people(80, 0.5), ReleaseAnonymity(p=0.5))[1] == NAME  # its own original is the nearest


def test_the_bound_over_people_decides() -> None:
    """Clopper-Pearson at α = 0.05·6/π²: with all of n anonymised the lower bound is α^(1/n), 0.95 from 69 people on."""
    assert judged(people(69, 0.0))[0] is Outcome.PASS
    outcome, reason, at = judged(people(67, 0.0))
    assert (outcome, reason) == (Outcome.HOLD, NAME)
    assert "limit 0.05 (estimate 0.000, 67 people)" in at


def test_a_tenth_of_people_who_left_as_they_came_are_held() -> None:
    kept = [Member(f"kept {one.person}", "1", embedded=one.embedded) for one in people(10, 1.0, seed=12)]
    assert judged([*people(90, 0.0), *kept])[:2] == (Outcome.HOLD, NAME)


def test_no_evidence_holds() -> None:
    assert judged(people(49, 0.0))[1] == "too_few_people"
    assert judged(people(80, 0.0, card="another"))[1] == "no_identity_evidence"
    for members in (people(80, 0.0, dimensions=7), _not_finite()):
        with pytest.raises(Hold) as held:
            judged(members)
        assert held.value.reason == "no_identity_evidence"


def _not_finite() -> list[Member]:
    members = people(80, 0.0)
    members[3].embedded[CARD][1][0, 5] = np.nan
    return members


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 3), st.integers(1, 9))
def test_many_at_once_are_as_one_by_one(seed: int, count: int, visits: int, size: int) -> None:
    generator = np.random.default_rng(seed)
    subject = np.repeat(np.arange(count), visits)
    real = generator.normal(size=(len(subject), size))
    made = real + generator.choice([0.0, 0.1, 3.0], len(subject))[:, None] * generator.normal(size=real.shape)
    real[-1] = real[0]  # two people who look the same
    whole = np.ones(real.shape, np.bool_)
    wanted = anonymity(made, real, subject, np.zeros(len(subject), np.int64), whole, generator).nearest_db
    np.testing.assert_allclose(nearest_other_db(made, real, subject, rows_at_once=5), wanted, rtol=1e-6, atol=1e-6)


def test_one_person_has_nobody_to_be_compared_with() -> None:
    assert np.isnan(nearest_other_db(np.ones((2, 3)), np.zeros((2, 3)), np.zeros(2, np.int64))).all()


# -- in a policy ------------------------------------------------------------------------------------------------------


def loaded(folder: Path, release: dict[str, object], people: int = 150, **study: object) -> Policy:
    policy = {
        "name": "lesions",
        "extends": ["ps3.15-basic@2026d"],
        "gate": {"study": {"residual_identifiers": {"max": 0}, **study}, "release": release},
        "release": {"min_subjects": people},
    }
    path = folder / "lesions.yaml"
    path.write_text(yaml.safe_dump(policy))
    return load_policy(path, REGISTRY)


def test_it_does_not_load_alone_and_loads_beside_an_attacker(tmp_path: Path) -> None:
    alone: dict[str, object] = {NAME: {"p": 0.7, "min_rate": 0.95}}
    for more in ({}, {"record_isolation": {"k": 5}}):
        with pytest.raises(PolicyError) as error:
            loaded(tmp_path, alone | more)
        (fault,) = error.value.faults
        assert "may not stand alone" in fault.says
        assert "linkability" in fault.hint
    by_study = loaded(tmp_path, alone, same_scan={"card": "brain-audit-1", "hold_below_p": 0.01})
    assert by_study.gate.release[NAME] == ReleaseAnonymity()
    by_release = alone | {"linkability": {"cards": ["brain-audit-1"], "max_excess_upper": 0.2}}
    assert set(loaded(tmp_path, by_release).gate.release) == {NAME, "linkability"}


def test_a_limit_that_nothing_passes_or_a_card_of_another_kind_does_not_load(tmp_path: Path) -> None:
    beside: dict[str, object] = {"linkability": {"cards": ["brain-audit-1"], "max_excess_upper": 0.2}}
    for check, people, says in (
        ({"min_rate": 0.99}, 150, "a release of 150 people without any leak"),
        ({"cards": ["brain-audit-1"]}, 150, "does not read a brain depth by depth"),
        ({"cards": []}, 150, "cards needs at least one"),
        ({"p": 0.4}, 150, "p lies from 0.5"),
    ):
        with pytest.raises(PolicyError) as error:
            loaded(tmp_path, beside | {NAME: check}, people)
        assert any(says in fault.says for fault in error.value.faults)
