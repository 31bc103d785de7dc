"""Short lines close under each other, which the detector takes for one: they are told apart by their gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_engine import Line

Bytes = NDArray[np.uint8]

LEAST_PX, LEAST_LINES = 5, 2  # of a line
INK = 0.35  # of the strongest stroke: what is fainter is ground, or the smear of lossy compression
MARGIN_PX = 2.0
LEVEL = 0.12  # a box that leans by more of its width is a line of its own


def lines_within(image: Bytes, line: Line) -> list[Line]:
    """The lines of an upright block in (rows, columns, 3), from top to bottom; [] where it is no block."""
    corners = line.corners
    if abs(corners[1, 1] - corners[0, 1]) > LEVEL * max(1.0, line.sides[0]):
        return []
    top, left, bottom, right = (round(edge) for edge in line.extent)
    top, left, bottom, right = max(0, top), max(0, left), min(image.shape[0], bottom), min(image.shape[1], right)
    if bottom - top < LEAST_LINES * LEAST_PX or right - left < LEAST_PX:
        return []
    grey = image[top:bottom, left:right].astype(np.float32).mean(2)
    apart = np.abs(grey - np.median(grey))
    inked = np.concatenate([[False], (apart > INK * max(1.0, float(apart.max()))).any(1), [False]])
    starts, ends = (np.flatnonzero(np.diff(inked.astype(np.int8)) == change) for change in (1, -1))
    bands = [(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if b - a >= LEAST_PX]
    if len(bands) < LEAST_LINES:
        return []
    found = []
    for first, last in bands:
        above, below = top + first - MARGIN_PX, top + last + MARGIN_PX
        box = np.array([[left, above], [right, above], [right, below], [left, below]], np.float32)
        found.append(Line(box, line.score))
    return found
