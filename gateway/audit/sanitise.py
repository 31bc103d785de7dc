"""Taking attributes and identity out of embeddings: linear erasure, then noise, both fitted on other people.

Erasure is LEACE (Belrose et al. 2023): with W = Σ^(-1/2), r(x) = x − W⁺ P W (x − μ), where P projects onto the columns
of W Σ_xz. Afterwards no linear attacker reads z on the people it was fitted on, and no map changes x less. Identity has
as many values as people, so of it only the directions in which people differ most for their own spread are erased.
Noise is drawn by a keyed stream: the same scan under the same key gets the same noise, and nobody else can draw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray
from scipy.special import ndtri

from gateway.pseudonyms import derive

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sanitiser:
    """`keep_dd` is applied to x − mean_d; `spread_dd` is Σ^(1/2); `noise` is in units of it, 0 = none."""

    mean_d: Floats
    keep_dd: Floats
    spread_dd: Floats
    noise: float

    def erased(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """(n, d) without its erased part: what an attacker who knows the method can compute from originals as well."""
        return np.asarray((x - self.mean_d) @ self.keep_dd.T + self.mean_d, np.float32)

    def released(self, x: NDArray[Any], scans: Sequence[str], key: bytes) -> NDArray[np.float32]:
        """(n, d): erased, and with the noise of each scan."""
        drawn = np.stack([keyed_normals(derive(key, "embedding-noise", scan), x.shape[1]) for scan in scans])
        return np.asarray(self.erased(x) + self.noise * drawn @ self.spread_dd.T, np.float32)


def fit(
    x: NDArray[Any], subject: NDArray[Any], concepts: Sequence[Sequence[str]], *, identity_directions: int, noise: float
) -> Sanitiser:
    """From auxiliary people, none of whom is released. `concepts` are attributes, one value for each of the n scans.

    Raises ValueError without at least two scans of one person where identity is to be erased.
    """
    x = np.asarray(x, np.float64)
    mean = x.mean(0)
    values, vectors = np.linalg.eigh(_covariance(x))
    root = (vectors * np.sqrt(values)) @ vectors.T
    whiten = (vectors / np.sqrt(values)) @ vectors.T
    white = (x - mean) @ whiten
    columns = [_concept_columns(white, concept) for concept in concepts]
    if identity_directions:
        columns.append(_identity_columns(white, subject, identity_directions))
    size = x.shape[1]
    keep = np.eye(size)
    if columns:
        left, singular, _ = np.linalg.svd(np.concatenate(columns, axis=1), full_matrices=False)
        basis = left[:, singular > singular[0] * 1e-9] if singular[0] > 0 else left[:, :0]
        keep -= root @ basis @ basis.T @ whiten
    return Sanitiser(mean, keep, root, noise)


def keyed_normals(key: bytes, count: int) -> Floats:
    """Standard normal draws from the ChaCha20 stream of a 32-byte key: the same everywhere, secret without it."""
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    words = np.frombuffer(stream.update(bytes(8 * count)), "<u8")
    return np.asarray(ndtri((np.asarray(words >> np.uint64(11), np.float64) + 0.5) * 2.0**-53), np.float64)


def _covariance(x: Floats) -> Floats:
    """Shrunk (Ledoit and Wolf 2004): there may be fewer people than dimensions; erasure holds for any invertible W."""
    from sklearn.covariance import ledoit_wolf

    shrunk, _ = ledoit_wolf(x)
    floor = max(float(np.trace(shrunk)) / len(shrunk), 1e-12) * 1e-6  # dimensions that never change
    return np.asarray(shrunk + floor * np.eye(len(shrunk)), np.float64)


def _concept_columns(white: Floats, concept: Sequence[str]) -> Floats:
    """W Σ_xz of a one-hot z."""
    names = np.array(concept, str)
    z = (names[:, None] == np.unique(names)[None, :]).astype(np.float64)
    return np.asarray(white.T @ (z - z.mean(0)) / len(z), np.float64)


def _identity_columns(white: Floats, subject: NDArray[Any], count: int) -> Floats:
    """Orthonormal directions of the largest between-person to within-person variance."""
    from scipy.linalg import eigh

    people, whose = np.unique(subject, return_inverse=True)
    scans = np.bincount(whose)
    if (scans > 1).sum() < 2:
        raise ValueError("erasing identity needs auxiliary people with two scans and more")
    means = np.zeros((len(people), white.shape[1]))
    np.add.at(means, whose, white)
    means /= scans[:, None]
    within = _covariance((white - means[whose])[scans[whose] > 1])
    _, vectors = eigh(np.cov(means.T), within)
    return np.asarray(np.linalg.qr(vectors[:, ::-1][:, :count])[0], np.float64)
