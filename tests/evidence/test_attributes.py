"""Inferring an attribute: by person, never with a person on both sides, against chance and its null."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.evidence import infer_across, infer_within


def cohort(people: int, signal: float, seed: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Three scans each, identity strong in 6 of 8 dimensions, sex in one."""
    generator = np.random.default_rng(seed)
    subject = np.repeat(np.arange(people), 3)
    sex = np.arange(people) % 2
    own = np.concatenate([signal * (2.0 * sex[:, None] - 1), generator.normal(size=(people, 7))], axis=1)
    return own[subject] + 0.1 * generator.normal(size=(len(subject), 8)), subject, ["MF"[s] for s in sex[subject]]


def test_an_attribute_that_is_there_is_found() -> None:
    found = infer_within(*cohort(40, 2.0, 1), seed=0, replicates=200, permutations=199, trees=40)
    assert found.balanced_accuracy > 0.95
    assert found.p == pytest.approx(1 / 200)
    assert (found.classes, found.people, found.chance) == (("F", "M"), 40, 0.5)


def test_identity_alone_reveals_no_attribute() -> None:
    # Folds that shared people would read close to 1 here: a person's scans are nearly alike.
    found = infer_within(*cohort(60, 0.0, 2), seed=0, replicates=200, permutations=199, trees=40)
    assert 0.3 < found.balanced_accuracy < 0.7
    assert found.p > 0.02
    assert found.lower < 0.5 < found.upper


def test_one_cohort_teaches_about_another() -> None:
    found = infer_across(cohort(30, 2.0, 3), cohort(20, 2.0, 4), seed=0, replicates=100, permutations=99, trees=40)
    assert found.balanced_accuracy > 0.9
    assert found.people == 20


def test_the_same_seed_gives_the_same_figures() -> None:
    one, two = (infer_within(*cohort(20, 0.3, 5), seed=7, replicates=50, permutations=49, trees=20) for _ in range(2))
    assert one == two


def test_what_cannot_be_judged_is_no_evidence() -> None:
    x, subject, sex = cohort(20, 1.0, 6)
    with pytest.raises(ValueError, match="two values"):
        infer_within(x, subject, ["M", *["F"] * (len(sex) - 1)], seed=0)
    with pytest.raises(ValueError, match="two classes"):
        infer_within(x, subject, ["M"] * len(sex), seed=0)
    with pytest.raises(ValueError, match="same two classes"):
        infer_across((x, subject, sex), (x, subject, ["M"] * len(sex)), seed=0)
