"""An embedder of faces and what it recognises: the relief of an aligned depth map, rank-1 by cosine.

No packaged face recogniser takes surfaces, and dlib's does not install here (no wheel). This one needs no training: the
depth, its slopes and its curvature at two scales, less their mean over the gallery (which takes out what all faces
share), compared at small shifts. It must recognise untouched heads in other sessions, or its figures on defaced ones
say nothing: `rank1_before` stands beside `rank1_after`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

SCALES_PX = (1.5, 3.0)  # of 2 mm
SHIFTS_PX = (-3, 0, 3)
STEEPEST = 1.5  # mm a mm
MARGIN_PX = 6  # around what is compared, for the shifts
WEIGHTS = (0.1, 1.0, 4.0)  # of depth (mm), slope, curvature (per mm)

Map = NDArray[np.float32]


def relief(depth_mm: Map) -> NDArray[np.float64]:
    """(features, height, across). Where nothing was hit, the surface is as far as it gets."""
    there = np.isfinite(depth_mm)
    filled = np.where(there, depth_mm, np.nanmax(depth_mm) if there.any() else 0.0).astype(np.float64)
    planes = [WEIGHTS[0] * (filled - np.median(filled))]
    for scale in SCALES_PX:
        smooth = ndimage.gaussian_filter(filled, scale)
        slopes = [np.clip(one, -STEEPEST, STEEPEST) for one in np.gradient(smooth, 2.0)]
        planes += [WEIGHTS[1] * one for one in slopes]
        planes.append(WEIGHTS[2] * (np.gradient(slopes[0], 2.0, axis=0) + np.gradient(slopes[1], 2.0, axis=1)))
    return np.stack(planes)


def rank1(gallery: Mapping[str, Map], probes: Sequence[tuple[str, Map]]) -> float:
    """Share of probes whose most similar gallery map is the same person's. `gallery` by person; nan without probes."""
    if not gallery or not probes:
        return float("nan")
    people = sorted(gallery)
    known = np.stack([relief(gallery[person]) for person in people])
    mean = known.mean(axis=0)
    hits = [people[int(np.argmax(_similar(known - mean, relief(depth) - mean)))] == person for person, depth in probes]
    return sum(hits) / len(hits)


def _similar(known: NDArray[np.float64], probe: NDArray[np.float64]) -> NDArray[np.float64]:
    """The best cosine over shifts, for each of the gallery."""
    inner = (..., slice(MARGIN_PX, -MARGIN_PX), slice(MARGIN_PX, -MARGIN_PX))
    fixed = known[inner].reshape(len(known), -1)
    fixed = fixed / np.maximum(np.linalg.norm(fixed, axis=1, keepdims=True), 1e-9)
    best = np.full(len(known), -np.inf)
    for up in SHIFTS_PX:
        for aside in SHIFTS_PX:
            moved = np.roll(probe, (up, aside), axis=(1, 2))[inner].ravel()
            best = np.maximum(best, fixed @ moved / max(float(np.linalg.norm(moved)), 1e-9))
    return best
