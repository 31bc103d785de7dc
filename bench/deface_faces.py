"""A face embedder of our own, and what it recognises: histograms of the directions of a face's relief.

dlib-based embedders do not install here by pip alone (no wheel); this one is simpler than a trained network, and it
must recognise untouched heads across modalities before its figures on defaced ones mean anything.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gateway.gate.face_detector import Face
from gateway.gate.face_surface import GRID_MM, level_of, surface_like
from gateway.volumes import Volume

CELLS, DIRECTIONS = 7, 8


def embedded(face: Face, volume: Volume, *, hounsfield: bool) -> NDArray[np.float64]:
    """(CELLS * CELLS * (DIRECTIONS + 1),), unit length: the surface of `volume` in the window where `face` was found.

    The attacker is told where to look, and from where.
    """
    seen = surface_like(face.surface, volume, level_of(volume.values, hounsfield=hounsfield))
    depth = seen.depth_mm[face.rows, face.columns]
    depth = np.where(np.isfinite(depth), depth, np.nanmax(depth) if np.isfinite(depth).any() else 0.0)
    up, across = np.gradient(depth, GRID_MM)
    steep = np.minimum(np.hypot(up, across), 3.0)
    direction = ((np.arctan2(up, across) + np.pi) / (2 * np.pi) * DIRECTIONS).astype(int) % DIRECTIONS
    rows = np.minimum(np.arange(depth.shape[0]) * CELLS // depth.shape[0], CELLS - 1)[:, None]
    columns = np.minimum(np.arange(depth.shape[1]) * CELLS // depth.shape[1], CELLS - 1)[None, :]
    cell = (rows * CELLS + columns).ravel()
    histogram = np.zeros((CELLS * CELLS, DIRECTIONS + 1))
    np.add.at(histogram, (cell, direction.ravel()), steep.ravel())
    counts = np.maximum(np.bincount(cell, minlength=CELLS * CELLS), 1)
    histogram[:, DIRECTIONS] = np.bincount(cell, depth.ravel() - np.median(depth), CELLS * CELLS) / 8
    vector = (histogram / counts[:, None]).ravel()
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


def rank1(gallery: dict[str, NDArray[np.float64]], probes: dict[str, NDArray[np.float64]]) -> float:
    """Share of probes whose most similar gallery entry (cosine) is the same person. Keys are people."""
    people = sorted(gallery)
    matrix = np.stack([gallery[person] for person in people])
    hits = [people[int(np.argmax(matrix @ probe))] == person for person, probe in probes.items() if person in gallery]
    return sum(hits) / len(hits) if hits else 0.0
