"""Where in a frame may text have appeared? A cheap screen, so that the readers need not see every frame of a series.

Text is strokes: narrow, brighter or darker than what is beside them, many of them in a line. The strokes of a frame
(top-hat and bottom-hat of its flat picture) that were not in the frame before it are counted in windows of the shape of
a line, upright and turned. What has stood there since the frame before was looked at there; the first frame of a stack,
and its projections, are read whole. The share of text that this misses is measured (`bench/gate_text.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.gate.pixel_views import Shown

STROKE_PIXELS = 7  # wider marks are no strokes of small letters
DRIFT_PIXELS = 5  # what moves by less between frames is no new stroke
NEW_STROKE = 36  # of 255, brighter or darker than in the frame before
WINDOWS = ((9, 35), (17, 61), (29, 101))  # rows, columns: of three letters and more
MIN_DENSITY = 0.26  # of new strokes in a window
MARGIN_PIXELS = 12


@dataclass(frozen=True, slots=True)
class Region:
    """Half open, pixels."""

    top: int
    left: int
    bottom: int
    right: int


def strokes(flat: Shown) -> Shown:
    """How much each pixel stands out of its surroundings, in either direction."""
    import cv2

    kernel = cv2.getStructuringElement(cv2.MORPH_RECT, (STROKE_PIXELS, STROKE_PIXELS))
    bright = cv2.morphologyEx(flat, cv2.MORPH_TOPHAT, kernel)
    dark = cv2.morphologyEx(flat, cv2.MORPH_BLACKHAT, kernel)
    return np.asarray(cv2.max(bright, dark), np.uint8)


def density(now: Shown, before: Shown) -> NDArray[np.float32]:
    """The highest share of new strokes in any window around each pixel, 0 to 1."""
    import cv2

    drift = cv2.dilate(before, np.ones((DRIFT_PIXELS, DRIFT_PIXELS), np.uint8))
    new = (np.asarray(cv2.subtract(now, drift)) >= NEW_STROKE).astype(np.float32)
    best: NDArray[np.float32] = np.zeros(new.shape, np.float32)
    for rows, columns in WINDOWS:
        for size in ((columns, rows), (rows, columns)):
            share = np.asarray(cv2.boxFilter(new, -1, size, borderType=cv2.BORDER_CONSTANT), np.float32)
            np.maximum(best, share, out=best)
    return best


def regions(now: Shown, before: Shown) -> list[Region]:
    """Where text may have appeared since the frame before, each with a margin."""
    import cv2

    likely = (density(now, before) >= MIN_DENSITY).astype(np.uint8)
    if not likely.any():
        return []
    side = 2 * MARGIN_PIXELS + 1
    count, _, stats, _ = cv2.connectedComponentsWithStats(cv2.dilate(likely, np.ones((side, side), np.uint8)))
    found = []
    for index in range(1, count):
        left, top, width, height = (int(value) for value in stats[index, :4])
        found.append(Region(top, left, top + height, left + width))
    return found
