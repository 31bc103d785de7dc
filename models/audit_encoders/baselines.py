"""Attackers without training: raw similarity and gradients. Whoever claims that features leak must beat these first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray
from skimage.feature import hog

Pixels = NDArray[np.float32]
Spacing = tuple[float, ...] | None


class Encoder(Protocol):
    """An image (rows, columns) or volume (slices, rows, columns), 0 to 1, axes as in `Scan` -> (dimensions,)."""

    def __call__(self, pixels: Pixels, spacing_mm: Spacing = None, /) -> Pixels: ...


RAW_PIXELS, HOG_PIXELS = 32, 64  # the side that an image is shrunk to
HEIGHTS = (0.35, 0.45, 0.55, 0.65)  # of a volume: slices that stand two by two in one image


def _square(pixels: Pixels, side: int) -> Pixels:
    """The whole image as a square, areas averaged, mean 0 and variance 1; of a volume four slices, two by two."""
    small = cv2.resize(_flat(np.asarray(pixels, np.float32)), (side, side), interpolation=cv2.INTER_AREA)
    spread = float(small.std())
    return np.asarray((small - small.mean()) / (spread if spread > 0 else 1.0), np.float32)


def _flat(pixels: Pixels) -> Pixels:
    if pixels.ndim == 2:
        return pixels
    if pixels.ndim != 3:
        raise ValueError(f"an image or a volume has two or three axes, not {pixels.ndim}")
    a, b, c, d = (pixels[min(int(height * len(pixels)), len(pixels) - 1)] for height in HEIGHTS)
    return np.block([[a, b], [c, d]])


def raw_similarity(pixels: Pixels, spacing_mm: Spacing = None, /) -> Pixels:  # noqa: ARG001 - the protocol's
    """Image or volume -> (1024,): the picture itself; the cosine of two of these is their correlation."""
    return _square(pixels, RAW_PIXELS).ravel()


def gradients(pixels: Pixels, spacing_mm: Spacing = None, /) -> Pixels:  # noqa: ARG001 - the protocol's
    """Image or volume -> (1764,): histogram of oriented gradients (Dalal and Triggs 2005)."""
    found = hog(
        _square(pixels, HOG_PIXELS),
        orientations=9,
        pixels_per_cell=(8, 8),
        cells_per_block=(2, 2),
        block_norm="L2-Hys",
    )
    return np.asarray(found, np.float32)


BASELINES: dict[str, Encoder] = {"raw": raw_similarity, "hog": gradients}


def embed(images: Iterable[Pixels], encoder: Encoder) -> Pixels:
    """(scans, dimensions)."""
    return np.stack([encoder(image) for image in images])
