"""Metrics that an attacker learns: directions in which one person's embeddings differ count less, those in which people
differ count more. Fitted on auxiliary people, who must not be among those judged.

    whitened       y = (x − μ) W,  W Wᵀ = S_w⁻¹   (within-class covariance normalisation, Hatch et al. 2006)
    discriminant   the same, turned to the axes of S_b, each scaled by √(b / (1 + b)): b is the variance between people
                   in units of that within, and an axis that does not tell people apart goes to nothing (LDA, weighed as
                   two-covariance PLDA weighs its axes, Ioffe 2006)

Distances are then taken as of any embedding (`distances`, cosine first).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gateway.evidence.distances import Array
from gateway.evidence.pairs import Ints

Kind = Literal["whitened", "discriminant"]
DIMENSIONS, SHRINK = 200, 0.3


@dataclass(frozen=True, slots=True)
class MetricHead:
    """`mean` (d,), `matrix` (d, k). `people`: on how many it was fitted."""

    mean: Array
    matrix: Array
    people: int

    def __call__(self, embeddings: NDArray[Any]) -> Array:
        """(n, d) -> (n, k). Raises ValueError for embeddings of another size."""
        if embeddings.ndim != 2 or embeddings.shape[1] != len(self.mean):
            raise ValueError(f"this metric was fitted on (scans, {len(self.mean)}), not on {embeddings.shape}")
        return np.asarray((np.asarray(embeddings, np.float32) - self.mean) @ self.matrix, np.float32)


def fit_head(
    embeddings: NDArray[Any],
    subject: Ints,
    kind: Kind = "discriminant",
    *,
    dimensions: int = DIMENSIONS,
    shrink: float = SHRINK,
) -> MetricHead:
    """From (n, d) embeddings of auxiliary people; `subject` says whose, as `People.subject`.

    At most `dimensions` principal axes are kept, and S_w is mixed with `shrink` of a multiple of the identity (0 to 1),
    as there are few scans. Raises ValueError when nobody has two scans, or there is one person only.
    """
    x = np.asarray(embeddings, np.float64)
    if x.ndim != 2 or len(x) != len(subject):
        raise ValueError(f"{len(subject)} labels for embeddings of shape {x.shape}")
    if not 0 < shrink <= 1:
        raise ValueError("shrink lies between 0 and 1, and is not 0")
    people, whose, counts = np.unique(subject, return_inverse=True, return_counts=True)
    free = len(x) - len(people)
    if free < 1 or len(people) < 2:
        raise ValueError("a metric needs two people and more, and one with two scans and more")
    mean = x.mean(0)
    _, spreads, axes = np.linalg.svd(x - mean, full_matrices=False)
    kept = min(dimensions, int((spreads > 1e-7 * spreads[0]).sum()))
    if kept == 0:
        raise ValueError("all embeddings are the same")
    z = (x - mean) @ axes[:kept].T
    persons = np.zeros((len(people), kept))
    np.add.at(persons, whose, z)
    persons /= counts[:, None]
    apart = z - persons[whose]
    within = apart.T @ apart / free
    within = (1 - shrink) * within + shrink * np.trace(within) / kept * np.eye(kept)
    matrix = axes[:kept].T @ np.linalg.cholesky(np.linalg.inv(within))
    if kind == "discriminant":
        matrix = matrix @ _telling((x - mean) @ matrix, whose, counts)
    return MetricHead(mean.astype(np.float32), matrix.astype(np.float32), len(people))


def _telling(white: NDArray[np.float64], whose: Ints, counts: Ints) -> NDArray[np.float64]:
    """Axes between people (columns), each scaled by how much it tells; `white` has about unit variance within."""
    persons = np.zeros((len(counts), white.shape[1]))
    np.add.at(persons, whose, white)
    persons /= counts[:, None]
    # The mean of a person's n scans varies within by 1/n: what is left varies between people.
    noise = float((1 / counts).mean())
    variances, turned = np.linalg.eigh(np.cov(persons.T, bias=True).reshape(white.shape[1], -1))
    between = np.maximum(variances[::-1] - noise, 0)
    told = between > 0
    if not told.any():  # nothing tells people apart: plain whitening
        return np.eye(white.shape[1])
    return np.asarray(turned[:, ::-1][:, told] * np.sqrt(between[told] / (1 + between[told])))
