"""The paper's criterion with ordinary PSNR: 3.68 dB at p = 0.7, inside the mask, against other people at one depth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skimage.metrics import peak_signal_noise_ratio

from gateway.evidence.anonymity import anonymised_rate, anonymity, epsilon_identifiability, threshold_db

DRAWS = np.random.default_rng(0)


def test_the_threshold_is_the_papers_in_both_scales() -> None:
    assert threshold_db() == pytest.approx(3.6798, abs=1e-4)
    assert threshold_db(doubled=True) == pytest.approx(7.36, abs=5e-3)
    assert threshold_db(0.845) == pytest.approx(7.36, abs=0.01)  # what 7.36 would mean with ordinary PSNR
    with pytest.raises(ValueError, match="between"):
        threshold_db(1.0)


@given(st.floats(0.001, 0.999))
def test_p_is_the_chance_of_the_own_source(p: float) -> None:
    own, other = 1 - p, p  # p_i = MSE_other / (MSE_other + MSE_own)
    assert 10 * math.log10(other / own) == pytest.approx(threshold_db(p), abs=1e-9)


def cohort(people: int = 6, depths: int = 2, size: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    real = generator.random((people * depths, size, size))
    return real, np.repeat(np.arange(people), depths), np.tile(np.arange(depths), people)


def test_it_is_the_difference_of_psnr_to_the_nearest_other_person_at_that_depth() -> None:
    real, subject, place = cohort()
    made = np.random.default_rng(4).random(real.shape)
    mask = np.ones(real.shape, bool)
    found = anonymity(made, real, subject, place, mask, DRAWS)
    others = [j for j in range(len(real)) if place[j] == place[0] and subject[j] != subject[0]]
    psnr = [peak_signal_noise_ratio(real[j], made[0], data_range=1) for j in others]
    own = peak_signal_noise_ratio(real[0], made[0], data_range=1)
    assert found.nearest_db[0] == pytest.approx(own - max(psnr))
    assert found.mean_db[0] == pytest.approx(own - np.mean(psnr))
    assert found.own_psnr_db[0] == pytest.approx(own)
    assert found.random_db[0] in [pytest.approx(own - one) for one in psnr]


def test_a_copy_is_never_anonymous_and_another_person_is() -> None:
    real, subject, place = cohort()
    mask = np.ones(real.shape, bool)
    copy = anonymity(real, real, subject, place, mask, DRAWS)
    assert np.isinf(copy.nearest_db).all()
    assert copy.own_nearest.all()
    assert anonymised_rate(copy.nearest_db, subject).rate == 0
    swapped = anonymity(np.roll(real, 2, axis=0), real, subject, place, mask, DRAWS)
    assert (swapped.nearest_db == -np.inf).all()
    assert not swapped.own_nearest.any()
    rate = anonymised_rate(swapped.nearest_db, subject)
    assert (rate.rate, rate.people) == (1, 6)
    assert rate.lower == pytest.approx(0.05 ** (1 / 6))


def test_an_image_under_the_threshold_may_still_be_nearest_to_its_source() -> None:
    real, subject, place = cohort(people=2, depths=1)
    made = 0.55 * real + 0.45 * real[::-1]
    found = anonymity(made, real, subject, place, np.ones(real.shape, bool), DRAWS)
    assert (found.nearest_db < threshold_db()).all()
    assert found.own_nearest.all()  # re-identified at rank 1, and the criterion says anonymised


def test_what_lies_outside_the_mask_does_not_count() -> None:
    real, subject, place = cohort()
    mask = np.zeros(real.shape, bool)
    mask[:, 2:6, 2:6] = True
    made = np.random.default_rng(5).random(real.shape)
    first = anonymity(made, real, subject, place, mask, np.random.default_rng(1))
    outside = np.where(mask, made, 0.0), np.where(mask, real, 7.0)
    second = anonymity(*outside, subject, place, mask, np.random.default_rng(1))
    np.testing.assert_allclose(first.nearest_db, second.nearest_db)
    with pytest.raises(ValueError, match="empty"):
        anonymity(made, real, subject, place, np.zeros(real.shape, bool), DRAWS)


def test_nobody_to_compare_with_is_not_anonymous() -> None:
    real, _, place = cohort(people=3, depths=1)
    found = anonymity(real, real, np.zeros(3, int), place, np.ones(real.shape, bool), DRAWS)
    assert np.isnan(found.nearest_db).all()
    assert anonymised_rate(found.nearest_db, np.zeros(3, int)).rate == 0


def test_epsilon_identifiability_counts_people_whose_synthetic_neighbour_is_nearer() -> None:
    real = np.array([[0.0, 0], [10, 0], [0, 10]])
    assert epsilon_identifiability(real, real + 0.1) == 1
    assert epsilon_identifiability(real, real + 1000) == 0
    assert epsilon_identifiability(real, np.array([[0.5, 0.0], [500.0, 0]])) == pytest.approx(2 / 3)  # 9.5 < 10
    assert epsilon_identifiability(real, np.array([[0.5, 9.0]]), weights=np.array([0.0, 1.0])) == pytest.approx(1 / 3)
