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


def _square(image_hw: Pixels, side: int) -> Pixels:
    """The whole image as a square, areas averaged, mean 0 and variance 1."""
    small = cv2.resize(np.asarray(image_hw, np.float32), (side, side), interpolation=cv2.INTER_AREA)
    spread = float(small.std())
    return np.asarray((small - small.mean()) / (spread if spread > 0 else 1.0), np.float32)


def raw_similarity(image_hw: Pixels, spacing_mm: Spacing = None, /) -> Pixels:  # noqa: ARG001 - the protocol's
    """(rows, columns) -> (1024,): the picture itself; the cosine of two of these is their correlation."""
    return _square(image_hw, RAW_PIXELS).ravel()


def gradients(image_hw: Pixels, spacing_mm: Spacing = None, /) -> Pixels:  # noqa: ARG001 - the protocol's
    """(rows, columns) -> (1764,): histogram of oriented gradients (Dalal and Triggs 2005) of the 64 x 64 image."""
    found = hog(
        _square(image_hw, HOG_PIXELS),
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
