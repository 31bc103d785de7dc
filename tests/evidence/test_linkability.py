"""D_sys against its closed form, its null and its bounds (paper A; Gomez-Barrero et al. 2018)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm

from gateway.evidence import People, ScoredPairs, d_sys, excess, linkability, score_pairs, score_same_scan, separation
from gateway.evidence.linkability import FINE, _edges, _histogram, _of_bins, _Tables

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
    assert known.excess_upper == pytest.approx(excess(known.value + known.margin, known.null_mean))


def test_the_excess_is_nothing_at_the_null_everything_at_one_and_a_length_between() -> None:
    assert excess(0.3, 0.3) == excess(0.2, 0.3) == 0
    assert excess(1.0, 0.3) == excess(1.0, 1.0) == excess(1.2, 0.3) == 1
    assert excess(0.5, 0.3) == pytest.approx(np.sqrt((0.25 - 0.09) / (1 - 0.09)))
    assert excess(0.4, 0.0) == pytest.approx(0.4)


@given(first=st.floats(0, 1), second=st.floats(0, 1), null_mean=st.floats(0, 0.99))
def test_the_excess_grows_with_the_reading_and_is_never_below_the_plain_difference(
    first: float, second: float, null_mean: float
) -> None:
    """Below it a real leak would read low, and the gate would fail open."""
    low, high = sorted((first, second))
    assert 0 <= excess(low, null_mean) <= excess(high, null_mean) <= 1
    assert excess(high, null_mean) >= high - null_mean - 1e-12


@pytest.mark.parametrize(("people", "leak", "truth"), [(15, 0.6, 0.879), (60, 0.35, 0.547)])
def test_the_bound_on_the_excess_covers_a_leak_that_the_plain_difference_reads_low(
    people: int, leak: float, truth: float
) -> None:
    """What leaves keeps a share of its original's direction; truth from 600,000 independent pairs. `bench.audit`
    counts it out for other sizes and leaks (results/audit.json, coverage)."""
    covered, difference, repeats = 0, 0, 16
    for seed in range(repeats):
        generator = np.random.default_rng([people, seed])
        originals, noise = generator.normal(size=(2, people, 24))
        released = leak * originals + np.sqrt(1 - leak**2) * noise
        pairs = score_same_scan(released, originals, People.of(range(people)), "cosine")
        found = linkability(pairs, generator, replicates=100, permutations=30)
        covered += found.excess_upper >= truth
        difference += found.upper - found.null_mean >= truth
    assert binom.cdf(covered, repeats, 0.95) > 0.01
    assert binom.cdf(difference, repeats, 0.95) < 0.01


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


@pytest.mark.parametrize(
    ("mu", "variation", "linked"),
    [(0.5, 0.1974, 0.1282), (1, 0.3829, 0.2935), (2, 0.6827, 0.6165), (3, 0.8664, 0.8346)],
)
def test_at_even_odds_it_is_no_more_than_total_variation(mu: float, variation: float, linked: float) -> None:
    """Total variation of two normal distributions is 2 Φ(μ/2) − 1."""
    assert 2 * norm.cdf(mu / 2) - 1 == pytest.approx(variation, abs=1e-4)
    generator = np.random.default_rng(4)
    found = d_sys(generator.normal(mu, 1, 100_000), generator.normal(0, 1, 100_000))
    assert linked - 0.01 < found < variation


def test_the_attackers_odds_only_lower_it() -> None:
    generator = np.random.default_rng(5)
    mated, others = generator.normal(2, 1, 20_000), generator.normal(0, 1, 20_000)
    read = [d_sys(mated, others, omega=omega) for omega in (1.0, 0.1, 0.01)]
    assert read[0] > read[1] > read[2] > 0


def test_it_does_not_know_how_many_people_stand_in_the_gallery() -> None:
    """Non-mated scores three times over are the same system."""
    generator = np.random.default_rng(6)
    mated, others = generator.normal(1, 1, 2_000), generator.normal(0, 1, 2_000)
    assert d_sys(mated, np.tile(others, 3)) == pytest.approx(d_sys(mated, others), abs=1e-12)


def test_leakage_that_is_not_monotone_shows_in_the_bins_and_not_in_the_posterior() -> None:
    """Mates at both ends of the scale: EER and an isotonic posterior miss half of it."""
    generator = np.random.default_rng(7)
    people = 60
    apart = np.where(np.arange(people) % 2, 6.0, -6.0) + generator.normal(size=people)
    scores = generator.normal(size=(2 * people, 2 * people)).astype(np.float32)
    at = np.arange(people)
    scores[2 * at, 2 * at + 1] = apart
    subject = np.repeat(at, 2)
    i, j = np.triu_indices(2 * people, 1)
    mates = subject[i] == subject[j]
    mated_at, others_at = (np.stack([i[chosen], j[chosen]], 1) for chosen in (mates, ~mates))
    pairs = ScoredPairs(scores, mated_at, others_at, subject, False, people)
    found = linkability(pairs, np.random.default_rng(0), replicates=40, permutations=19)
    assert found.bins > 0.9
    assert found.pav < 0.6
    assert found.value == found.bins


@given(seed=st.integers(0, 50))
@settings(deadline=None, max_examples=10)
def test_a_replicate_weighs_pairs_by_people_and_nobody_is_his_own_mate(seed: int) -> None:
    """Against pairs written out: mated ones w_i times, others w_i w_j times; nobody becomes his own mate."""
    generator = np.random.default_rng(seed)
    people = People.of(np.repeat(np.arange(8), 3).tolist())
    pairs = score_pairs(generator.normal(size=(24, 4)), people, "euclid")
    weights = np.bincount(generator.integers(8, size=8), minlength=8)
    edges = _edges(pairs.mated, FINE)
    ((bins, pav),) = _Tables.of(pairs, edges).read(weights[None].astype(float), 1.0)
    whose = people.subject
    mated = np.repeat(pairs.mated, weights[whose[pairs.mated_at[:, 0]]])
    times = weights[whose[pairs.non_mated_at[:, 0]]] * weights[whose[pairs.non_mated_at[:, 1]]]
    others = np.repeat(pairs.non_mated, times)
    counts = [_histogram(one, edges) for one in (mated, others)]
    assert (bins, pav) == pytest.approx(_of_bins(*counts, 1.0), abs=1e-9)


def test_the_bound_covers_the_truth() -> None:
    """Simulated people whose D_sys is known; the exact binomial chance of covering so seldom if the bound held in 95 %.
    `bench.audit` does it at six sizes."""
    signal, repeats = 0.6, 24
    x, people = cohort(1200, 2, signal, 1)
    all_pairs = score_pairs(x, people, "cosine")
    truth = d_sys(all_pairs.mated, all_pairs.non_mated[::20])
    covered = 0
    for k in range(repeats):
        x, people = cohort(50, 2, signal, 100 + k)
        found = linkability(score_pairs(x, people, "cosine"), np.random.default_rng(k), replicates=150, permutations=1)
        covered += found.upper >= truth
    assert binom.cdf(covered, repeats, 0.95) > 0.01
