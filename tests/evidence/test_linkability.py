"""D_sys against its closed form, its null and its bounds (paper A; Gomez-Barrero et al. 2018)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from gateway.evidence import People, d_sys, linkability, score_pairs, score_same_scan, separation

SCORES = 200_000


def truth(mu: float, omega: float) -> float:
    """∫ p(s|mated) D(s) ds for N(μ,1) against N(0,1), by quadrature."""

    def integrand(s: float) -> float:
        mated, other = omega * norm.pdf(s, mu), norm.pdf(s)
        return float(norm.pdf(s, mu) * max(0.0, (mated - other) / (mated + other)))

    return float(quad(integrand, -10, 15, limit=400)[0])


@pytest.mark.parametrize(
    ("mu", "omega", "printed"),
    [
        *((0.5, 1, 0.1282), (1, 1, 0.2935), (1.5, 1, 0.4637), (2, 1, 0.6165), (3, 1, 0.8346), (4, 1, 0.9430)),
        *((0.5, 0.1, 0.0), (1, 0.1, 0.0067), (1.5, 0.1, 0.0783), (2, 0.1, 0.2340), (3, 0.1, 0.6040), (4, 0.1, 0.8499)),
        *((1.5, 0.01, 0.0024), (2, 0.01, 0.0370), (3, 0.01, 0.3239), (4, 0.01, 0.6869)),
    ],
)
def test_two_normal_distributions_read_what_the_integral_says(mu: float, omega: float, printed: float) -> None:
    assert truth(mu, omega) == pytest.approx(printed, abs=2e-4)
    generator = np.random.default_rng(7)
    mated, other = generator.normal(mu, 1, SCORES), generator.normal(0, 1, SCORES)
    assert d_sys(mated, other, omega=omega) == pytest.approx(printed, abs=0.01)


@pytest.mark.parametrize(("mu", "auc", "eer"), [(0.5, 0.6382, 0.4013), (1, 0.7602, 0.3085), (3, 0.9831, 0.0668)])
def test_auc_and_eer_of_two_normal_distributions(mu: float, auc: float, eer: float) -> None:
    generator = np.random.default_rng(8)
    found = separation(generator.normal(mu, 1, SCORES), generator.normal(0, 1, SCORES))
    assert found == pytest.approx((auc, eer), abs=0.004)


def test_two_values_read_three_eighths_equal_ones_nothing_and_disjoint_ones_everything() -> None:
    mated = np.repeat([0.0, 1.0], [1000, 3000])
    other = np.repeat([0.0, 1.0], [3000, 1000])
    assert d_sys(mated, other) == pytest.approx(0.375, abs=1e-9)
    assert d_sys(mated, mated) == 0
    assert d_sys(mated + 5, other) == 1


def test_a_monotone_transform_changes_nothing() -> None:
    generator = np.random.default_rng(9)
    mated, other = generator.normal(1, 1, 5000), generator.normal(0, 1, 5000)
    assert d_sys(np.exp(mated), np.exp(other)) == pytest.approx(d_sys(mated, other), abs=1e-9)


def cohort(people: int, scans: int, signal: float, seed: int) -> tuple[np.ndarray, People]:
    generator = np.random.default_rng(seed)
    subject = np.repeat(np.arange(people), scans)
    identity = generator.normal(size=(people, 24))[subject]
    return signal * identity + generator.normal(size=(len(subject), 24)), People.of(subject.tolist())


def test_plain_noise_is_within_its_null_and_identity_is_not() -> None:
    generator = np.random.default_rng(10)
    noise = linkability(score_pairs(*cohort(40, 3, 0.0, 1), "cosine"), generator, replicates=200, permutations=199)
    assert noise.p > 0.05
    assert noise.value - noise.null_mean < 0.08
    assert noise.null_mean > 0.02  # with few people the estimator reads far from 0: limits apply to the excess
    known = linkability(score_pairs(*cohort(40, 3, 1.0, 1), "cosine"), generator, replicates=200, permutations=199)
    assert known.p == pytest.approx(1 / 200)
    assert known.value > 0.6
    assert known.upper >= known.value
    assert known.excess_upper == pytest.approx(known.upper - known.null_mean)


def test_the_same_seed_gives_the_same_bound() -> None:
    pairs = score_pairs(*cohort(12, 3, 0.4, 2), "euclid")
    first, second = (linkability(pairs, np.random.default_rng(3), replicates=64, permutations=32) for _ in range(2))
    assert first == second


def test_scans_of_one_session_are_no_mates() -> None:
    subject, session = [1, 1, 1, 2, 2], ["a", "a", "b", "a", "b"]
    pairs = score_pairs(np.arange(10.0).reshape(5, 2), People.of(subject, session), "euclid")
    assert pairs.mated_at.tolist() == [[0, 2], [1, 2], [3, 4]]
    assert len(pairs.non_mated_at) == 6


def test_impostors_of_another_site_may_be_left_out() -> None:
    people = People.of([1, 1, 2, 2, 3, 3], site=["x", "x", "x", "x", "y", "y"])
    pairs = score_pairs(np.zeros((6, 2)), people, "euclid", within_site=True)
    assert {tuple(pair) for pair in pairs.non_mated_at.tolist()} == {(0, 2), (0, 3), (1, 2), (1, 3)}


def test_the_original_of_this_very_scan_is_its_mate() -> None:
    released, people = cohort(20, 2, 0.0, 4)
    pairs = score_same_scan(released, released + 0.01, people, "euclid")
    assert pairs.mated_at.tolist() == [[i, i] for i in range(40)]
    found = linkability(pairs, np.random.default_rng(5), replicates=50, permutations=50)
    assert found.value == pytest.approx(1, abs=0.01)
    assert found.null_mean < 0.3  # shuffling must break the pairing, not carry it along


def test_too_few_people_is_no_evidence() -> None:
    with pytest.raises(ValueError, match="two people"):
        linkability(score_pairs(*cohort(1, 4, 1.0, 6), "cosine"), np.random.default_rng(0))
    with pytest.raises(ValueError, match="mated and non-mated"):
        d_sys(np.zeros(0), np.zeros(3))
