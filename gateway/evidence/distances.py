"""Distances between embeddings, in blocks: bounded memory, all cores, exact.

Smaller is closer for every metric here; cosine is 1 − cos, Canberra stands in a file of its own. D_sys and ranks do not
change under a monotone transform, so no 1/(1+d) is taken: it would squeeze a 512-d Canberra distance into a few
thousandths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.evidence.canberra import canberra, in_strides, nearer

Array = NDArray[np.float32]
Metric = Callable[[Array, Array], Array]

BLOCK_ROWS = 1024  # of the gallery at a time, in `nearest`: 1024 x 5000 float32 is 20 MB

LARGEST = 1.7e38  # the sum of two magnitudes is still a number


def cosine(a: Array, b: Array) -> Array:
    """(n, d), (m, d) -> (n, m), 0 to 2; a vector of zeros is at distance 1 from everything."""
    out: Array = np.float32(1.0) - _unit(a) @ _unit(b).T
    return out


def euclid(a: Array, b: Array) -> Array:
    """(n, d), (m, d) -> (n, m)."""
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * (a @ b.T)
    out: Array = np.sqrt(np.maximum(squares, 0))
    return out


def _unit(rows: Array) -> Array:
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))[:, None]  # float32 has no squares of 1e20
    out: Array = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0, casting="same_kind")
    return out


METRICS: dict[str, Metric] = {"canberra": canberra, "cosine": cosine, "euclid": euclid}


def distances(a: NDArray[Any], b: NDArray[Any], metric: str) -> Array:
    """(n, d), (m, d) -> (n, m) float32. Raises ValueError for other shapes, and for what is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = METRICS[metric](_checked(a, b), _checked(b, a))
    if not np.isfinite(found).all():
        raise ValueError(f"embeddings are too large for {metric} distances in 32 bits")
    return found


class Nearest:
    """The k nearest of a gallery that grows: `take` its blocks as they come, `found` after any of them.

    Memory is that of one block and of (n, k): a release compares with what was added since, not with everything anew.
    """

    def __init__(self, queries: NDArray[Any], metric: str, k: int) -> None:
        self._queries, self._metric = _checked(queries, queries), metric
        self._strides = in_strides(self._queries) if metric == "canberra" else self._queries
        self._near = np.full((len(queries), k), np.inf, np.float32)
        self._at = np.full((len(queries), k), -1, np.int64)
        self.size = 0  # rows of the gallery so far

    def take(self, block: NDArray[Any]) -> None:
        """More rows of the gallery, (m, d)."""
        b = _checked(block, self._queries)
        if not len(b):
            return
        if self._metric == "canberra":
            nearer(self._strides, b, self.size, self._near, self._at)
        else:
            self._merge(METRICS[self._metric](self._queries, b))
        self.size += len(b)

    @property
    def found(self) -> tuple[NDArray[np.int64], Array]:
        """Indices and distances (n, k), ascending; fewer columns while the gallery is smaller than k."""
        k = min(self._near.shape[1], self.size)
        return self._at[:, :k].copy(), self._near[:, :k].copy()

    def _merge(self, block: Array) -> None:
        keep = min(self._near.shape[1], block.shape[1])
        at = np.argpartition(block, keep - 1, axis=1)[:, :keep] if keep < block.shape[1] else _columns(block)
        # A partition may keep any of equal ones at its edge: the smaller index is to stay.
        edge = np.take_along_axis(block, at, 1).max(1)
        if keep < block.shape[1] and ((block <= edge[:, None]).sum(1) > keep).any():
            at = np.argsort(block, axis=1, kind="stable")[:, :keep]
        near = np.concatenate([self._near, np.take_along_axis(block, at, 1)], axis=1)
        near_at = np.concatenate([self._at, at + self.size], axis=1)
        order = np.lexsort((near_at, near), axis=1)[:, : self._near.shape[1]]
        self._near, self._at = np.take_along_axis(near, order, 1), np.take_along_axis(near_at, order, 1)


def nearest(
    queries: NDArray[Any], gallery: NDArray[Any], metric: str, k: int, *, block_rows: int = BLOCK_ROWS
) -> tuple[NDArray[np.int64], Array]:
    """Indices and distances (n, k) of the k nearest of the gallery, ascending; ties go to the smaller index.

    The gallery is taken in blocks: memory grows with n, not with the gallery.
    """
    running = Nearest(_checked(queries, gallery), metric, min(k, len(gallery)))
    for start in range(0, len(gallery), block_rows):
        running.take(gallery[start : start + block_rows])
    return running.found


def _columns(block: Array) -> NDArray[np.int64]:
    return np.broadcast_to(np.arange(block.shape[1]), block.shape).copy()


def _checked(a: NDArray[Any], b: NDArray[Any]) -> Array:
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"embeddings are (scans, dimensions) of one size, not {a.shape} and {b.shape}")
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(a, np.float32)
    if not (np.abs(rows) <= LARGEST).all():
        raise ValueError("an embedding holds values that are not finite, or too large for 32 bits")
    return rows
