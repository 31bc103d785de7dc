"""Tissue against air in a volume of any modality."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gateway.volumes import Volume

CT_AIR_HU = -400.0
SHARE_OF_TISSUE = 0.2  # of the way from air to typical tissue
SMOOTH_MM, OPEN_MM = 1.5, 4.0
BINS = 256
FAINT_SHARE = 0.05  # of the brightest uptake: about that of skin and bone when the brain is imaged with FDG


def tissue_of(volume: Volume, *, hounsfield: bool) -> NDArray[np.bool_]:
    """[slice, row, column]: the largest connected piece of tissue, with what air it encloses in each slice."""
    from scipy import ndimage

    spacing = volume.spacing_mm[::-1]
    smooth = ndimage.gaussian_filter(volume.values, SMOOTH_MM / spacing)
    tissue = smooth > tissue_threshold(smooth, hounsfield=hounsfield)
    width = np.minimum(np.maximum(1, np.round(OPEN_MM / spacing)), np.maximum(1, np.array(tissue.shape) // 8))
    opened = ndimage.binary_opening(tissue, np.ones(width.astype(int), bool))
    labels, count = ndimage.label(opened)
    if not count:
        return np.zeros_like(tissue)
    largest = labels == np.argmax(np.bincount(labels.ravel())[1:]) + 1
    grown = ndimage.binary_dilation(largest, np.ones(np.maximum(1, width.astype(int) | 1), bool)) & tissue
    filled = np.stack([ndimage.binary_fill_holes(one) for one in grown])
    return np.asarray(filled, bool)


def lifted(volume: Volume) -> Volume:
    """Uptake of a tracer with what is faint made visible: arcsinh(values / (FAINT_SHARE * their 99.5th percentile)).

    Skin takes up a tenth of what the brain does. On the scale of the brain it would be air, and the head would end at
    the brain. Values are SUV, counts or Bq/ml alike; negative ones are noise and become 0.
    """
    scale = FAINT_SHARE * float(np.percentile(volume.values, 99.5))
    if scale <= 0:
        return volume
    return Volume(np.arcsinh(np.maximum(volume.values, 0) / scale).astype(np.float32), volume.affine)


def tissue_threshold(values: NDArray[np.float32], *, hounsfield: bool) -> float:
    """Between air and the dimmest tissue. Hounsfield units are known; elsewhere it follows from the histogram."""
    if hounsfield:
        return CT_AIR_HU
    low, high = float(values.min()), float(np.percentile(values, 99.5))
    if high <= low:
        return high
    counts, edges = np.histogram(np.clip(values, low, high), BINS)
    split = _otsu(counts, edges)
    below, above = values[values <= split], values[values > split]
    air = float(np.median(below)) if below.size else low
    return air + SHARE_OF_TISSUE * (float(np.median(above)) - air) if above.size else split


def _otsu(counts: NDArray[np.integer], edges: NDArray[np.float64]) -> float:
    """The threshold of greatest variance between classes (Otsu 1979)."""
    middles = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)
    above = below[-1] - below
    sums = np.cumsum(counts * middles)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (sums / below - (sums[-1] - sums) / above) ** 2
    return float(edges[1:][int(np.nanargmax(np.where(np.isfinite(between), between, -1)))])
