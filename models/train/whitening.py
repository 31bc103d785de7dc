"""Whitening within people: directions in which one person's scans differ are shrunk; what is left is the person.

With S_w the covariance within people (Hatch et al. 2006, within-class covariance normalisation), V the principal axes,
and a shrinkage towards a multiple of the identity, as there are fewer scans than dimensions:

    y = (x − μ) V L,   L Lᵀ = ((1−λ) Vᵀ (S_w + S_t) V + λ t I)⁻¹

S_t is what other takes of the same scans add (pose, exposure, noise as `augmentations` draws them): it tells what is
no identity also of people with one scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


def whitening(
    features_nd: NDArray[np.floating],
    who_n: Sequence[str],
    dimensions: int,
    shrink: float,
    takes: Iterable[NDArray[np.floating]] = (),
) -> tuple[Array, Array]:
    """(mean (d,), matrix (d, k)), k the smaller of `dimensions` and what the scans span; `shrink` λ, 0 < λ <= 1.

    `takes`: each (n, d), features of another take of every scan, in the same order.

    Raises ValueError when nobody has two scans: what differs within people is then unknown.
    """
    x = np.asarray(features_nd, np.float64)
    mean = x.mean(0)
    axes = np.linalg.svd(x - mean, full_matrices=False)[2][: min(dimensions, len(x) - 1)].T
    z = (x - mean) @ axes
    who = np.unique(np.asarray(who_n, str), return_inverse=True)[1]
    counts = np.bincount(who)
    free = int((counts - 1).sum())
    if free == 0:
        raise ValueError("whitening needs people with two scans and more")
    sums = np.zeros((len(counts), z.shape[1]))
    np.add.at(sums, who, z)
    apart = z - (sums / counts[:, None])[who]
    within = apart.T @ apart / free
    within += _of_takes(x, axes, takes)
    size = len(within)
    within = (1 - shrink) * within + shrink * np.trace(within) / size * np.eye(size)
    matrix = axes @ np.linalg.cholesky(np.linalg.inv(within))
    return mean.astype(np.float32), np.asarray(matrix, np.float32)


def _of_takes(
    x: NDArray[np.float64], axes: NDArray[np.float64], takes: Iterable[NDArray[np.floating]]
) -> NDArray[np.float64]:
    """S_t along the axes: how takes of one scan differ from it; 0 without takes."""
    scatter, count = np.zeros((axes.shape[1],) * 2), 0
    for take in takes:
        moved = (take - x) @ axes
        scatter += moved.T @ moved
        count += len(x)
    return np.asarray(scatter / max(count, 1))


def ridge(features_nd: NDArray[np.floating], targets_nk: NDArray[np.floating], shrink: float) -> tuple[Array, Array]:
    """(mean (d,), matrix (d, k)) of the map from features to targets, in dual form: there are more features than scans.

    M = Xᵀ (X Xᵀ + λ t I)⁻¹ T, X centred, t the mean of the diagonal of X Xᵀ. `shrink` λ > 0.
    """
    x = np.asarray(features_nd, np.float64)
    mean = x.mean(0)
    centred = x - mean
    kernel = centred @ centred.T
    weight = shrink * max(float(np.trace(kernel)) / len(kernel), np.finfo(np.float64).tiny)
    duals = np.linalg.solve(kernel + weight * np.eye(len(kernel)), np.asarray(targets_nk, np.float64))
    return mean.astype(np.float32), np.asarray(centred.T @ duals, np.float32)
