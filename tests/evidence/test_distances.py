"""Distances agree with scipy's, which is the oracle; the nearest are found in bounded blocks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from gateway.evidence import METRICS, Nearest, distances, nearest

SCIPY = {"canberra": "canberra", "cosine": "cosine", "euclid": "euclidean"}


def test_zero_over_zero_is_zero_in_canberra() -> None:
    # 1/3 + (0/0 := 0) + 1, so that 1/(1+d) = 0.428571
    found = distances(np.array([[1.0, 0.0, -2.0]]), np.array([[2.0, 0.0, 2.0]]), "canberra")
    assert found[0, 0] == pytest.approx(4 / 3, rel=1e-6)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 130, 3), (65, 64, 512)])
def test_every_metric_is_scipys(metric: str, shape: tuple[int, int, int]) -> None:
    n, m, d = shape
    generator = np.random.default_rng(n)
    a, b = generator.normal(size=(n, d)).astype(np.float32), generator.normal(size=(m, d)).astype(np.float32)
    np.testing.assert_allclose(distances(a, b, metric), cdist(a, b, SCIPY[metric]), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e19, 1e37])
def test_cosine_does_not_know_how_long_vectors_are(scale: float) -> None:
    """Squares beyond float32 are neither zero nor infinite: the same image stays at distance 0 from itself."""
    rows = np.random.default_rng(4).normal(size=(6, 40))
    found = distances((rows * scale).astype(np.float32), rows[:3].astype(np.float32), "cosine")
    np.testing.assert_allclose(found, cdist(rows, rows[:3], "cosine"), atol=2e-6)


@given(rows=arrays(np.float32, (4, 5), elements=st.sampled_from([-2.0, -1e-20, 0.0, 1e-20, 0.5, 3.0])))
@settings(max_examples=60, deadline=None)
def test_canberra_of_zeros_small_and_opposite_values(rows: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = cdist(rows.astype(np.float64), rows.astype(np.float64), "canberra")
    np.testing.assert_allclose(distances(rows, rows, "canberra"), expected, rtol=1e-5)


@given(
    rows=st.tuples(st.integers(1, 9), st.integers(1, 7)),
    d=st.integers(1, 131),
    spread=st.sampled_from([0, 3, 11, 17, 30]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_canberra_of_any_size_and_magnitude_with_zeros_among_them(
    rows: tuple[int, int], d: int, spread: int, seed: int
) -> None:
    """Two terms share a division where products stay in range, else each has its own: both are scipy's, to 1e-5."""
    generator = np.random.default_rng(seed)
    a, b = (
        (generator.normal(size=(n, d)) * 10.0 ** generator.integers(-spread, spread + 1, (n, d))).astype(np.float32)
        * (generator.random((n, d)) > 0.2)
        for n in rows
    )
    b[0, : d // 2] = a[0, : d // 2]  # equal values
    with np.errstate(all="ignore"):
        expected = cdist(a.astype(np.float64), b.astype(np.float64), "canberra")
    np.testing.assert_allclose(distances(a, b, "canberra"), expected, rtol=1e-5, atol=1e-12)
    _, near = nearest(a, b, "canberra", 2, block_rows=3)
    np.testing.assert_allclose(near, np.sort(expected, axis=1)[:, : near.shape[1]], rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("edge", [1e-12, 1e18, 1e-37, 1e37])
def test_canberra_at_the_edges_of_what_may_share_a_division(edge: float) -> None:
    rows = (edge * np.array([[1, 0, -1, 0.5, 0], [-1, 0, 0, 0.25, 0], [0, 0, 0, 0, 0]])).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = cdist(rows.astype(np.float64), rows.astype(np.float64), "canberra")
    np.testing.assert_allclose(distances(rows, rows, "canberra"), expected, rtol=1e-5)


def test_the_same_rows_are_at_distance_nought_and_their_order_does_not_matter() -> None:
    rows = np.random.default_rng(2).normal(size=(13, 77)).astype(np.float32)
    whole = distances(rows, rows, "canberra")
    assert (np.diag(whole) == 0).all()
    np.testing.assert_allclose(whole, whole.T, rtol=1e-6)
    shuffled = np.random.default_rng(3).permutation(13)
    np.testing.assert_array_equal(distances(rows[shuffled], rows, "canberra"), whole[shuffled])


def test_what_is_too_large_for_32_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        distances(np.full((2, 3), 1e39), np.ones((2, 3)), "canberra")
    with pytest.raises(ValueError, match="too large"):
        distances(np.array([[1e20, 0.0]]), np.array([[0.0, 1e20]]), "euclid")


@pytest.mark.parametrize("metric", METRICS)
def test_the_nearest_of_many_blocks_are_those_of_the_whole(metric: str) -> None:
    generator = np.random.default_rng(1)
    queries, gallery = generator.normal(size=(9, 12)), generator.normal(size=(101, 12))
    gallery[50] = gallery[3]  # a tie: the smaller index comes first
    at, near = nearest(queries, gallery, metric, 5, block_rows=16)
    whole = distances(queries, gallery, metric)
    np.testing.assert_array_equal(at, np.argsort(whole, axis=1, kind="stable")[:, :5])
    np.testing.assert_allclose(near, np.sort(whole, axis=1)[:, :5], rtol=1e-6)


def test_more_neighbours_than_there_are() -> None:
    at, near = nearest(np.zeros((2, 3)), np.ones((2, 3)), "euclid", 5)
    assert at.tolist() == [[0, 1], [0, 1]]
    assert near.shape == (2, 2)


@pytest.mark.parametrize(
    ("a", "b"), [(np.zeros((2, 3)), np.zeros((2, 4))), (np.zeros(3), np.zeros((1, 3))), (np.full((1, 2), np.nan),) * 2]
)
def test_embeddings_that_do_not_fit_are_refused(a: np.ndarray, b: np.ndarray) -> None:
    with pytest.raises(ValueError, match="embedding"):
        distances(a, b, "cosine")


@pytest.mark.parametrize("metric", METRICS)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 6), cuts=st.lists(st.integers(0, 40), max_size=4))
@settings(max_examples=25, deadline=None)
def test_a_gallery_that_grows_gives_what_the_whole_gives(metric: str, seed: int, k: int, cuts: list[int]) -> None:
    generator = np.random.default_rng(seed)
    queries = generator.integers(-2, 3, size=(5, 70)).astype(np.float32)  # many ties
    gallery = generator.integers(-2, 3, size=(40, 70)).astype(np.float32)
    running = Nearest(queries, metric, k)
    edges = sorted({0, 40, *cuts})
    for low, high in pairwise(edges):
        running.take(gallery[low:high])
    at, near = running.found
    expected_at, expected = nearest(queries, gallery, metric, k)
    assert running.size == 40
    np.testing.assert_allclose(near, expected, rtol=1e-5, atol=1e-6)
    whole = distances(queries, gallery, metric)
    np.testing.assert_allclose(np.take_along_axis(whole, at, 1), np.sort(whole, axis=1)[:, :k], rtol=1e-5, atol=2e-6)
    assert np.array_equal(at, expected_at)
