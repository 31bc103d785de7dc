"""Metrics fitted on auxiliary people: unit covariance within, useless axes gone, better on people never seen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gateway.evidence import People, leave_one_out
from gateway.evidence.metric_head import fit_head


def made(people: int, scans: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Identity on 4 axes of 12; the other axes vary five times as much from scan to scan."""
    generator = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), scans)
    x = np.concatenate([generator.normal(size=(people, 4))[who], np.zeros((len(who), 8))], 1)
    x += generator.normal(size=x.shape) * np.r_[np.full(4, 0.25), np.full(8, 5.0)]
    turn = np.linalg.qr(np.random.default_rng(99).normal(size=(12, 12)))[0]
    return x @ turn, who


@pytest.mark.parametrize("kind", ["whitened", "discriminant"])
def test_a_metric_of_others_links_people_it_never_saw(kind: str) -> None:
    head = fit_head(*made(200, 3, 0), kind, shrink=1e-3)  # type: ignore[arg-type]
    x, who = made(40, 3, 1)
    people = People.of(who.tolist())
    plain = leave_one_out(x, people, "cosine").rank1
    learned = leave_one_out(head(x), people, "cosine").rank1
    assert plain < 0.3
    assert learned > plain + 0.3


def test_whitened_means_unit_covariance_within_people() -> None:
    x, who = made(300, 4, 2)
    y = fit_head(x, who, "whitened", shrink=1e-9)(x).astype(np.float64)
    apart = y - np.stack([y[who == one].mean(0) for one in range(300)])[who]
    np.testing.assert_allclose(apart.T @ apart / 900, np.eye(12), atol=1e-3)


def test_discriminant_axes_are_as_many_as_tell_people_apart() -> None:
    """b = 1 / 0.25² = 16 on four axes, each scaled by √(16/17); means of four scans vary by 16 + 1/4."""
    x, who = made(3000, 4, 3)
    y = fit_head(x, who, "discriminant", shrink=1e-9)(x).astype(np.float64)
    between = np.sort(np.cov(np.stack([y[who == one].mean(0) for one in range(3000)]).T).diagonal())[::-1]
    np.testing.assert_allclose(between[:4], (16 + 0.25) * 16 / 17, rtol=0.15)
    assert (between[4:] < 0.02).all()


def test_nothing_that_tells_people_apart_is_plain_whitening() -> None:
    x = np.random.default_rng(0).normal(size=(4, 1))
    x = np.concatenate([x[:2], x[:2]])  # two people with the same scans
    who = np.array([0, 0, 1, 1])
    np.testing.assert_allclose(fit_head(x, who)(x), fit_head(x, who, "whitened")(x))


@pytest.mark.parametrize(
    ("x", "who", "says"),
    [
        (np.eye(3), [0, 1, 2], "two scans"),
        (np.eye(3), [0, 0, 0], "two people"),
        (np.eye(3), [0, 1], "labels"),
        (np.ones((4, 2)), [0, 0, 1, 1], "the same"),
    ],
)
def test_too_little_to_fit_is_said(x: NDArray[np.float64], who: list[int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fit_head(x, np.array(who))


def test_embeddings_of_another_size_are_refused() -> None:
    head = fit_head(*made(20, 2, 0))
    with pytest.raises(ValueError, match="12"):
        head(np.zeros((2, 11)))
