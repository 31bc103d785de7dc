"""Frames that are pages: a report, a letter or a worksheet captured as a picture, and nothing else.

A page is many lines on an even ground. What SOP class or Image Type say is no evidence of it (cases.md 6, 7): many
captures are of images, and reports come under every class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_ground import Place

LINES = 8  # so many and more
EVEN_LEVELS, EVEN_SHARE = 3, 0.95  # of 255, around one of two shades; of the pixels beside the lines
LEAST_PIXELS = 0.05  # of a frame must lie beside the lines to say anything of the ground


def is_page(shown: NDArray[np.uint8], places: Sequence[Place]) -> bool:
    """Whether a frame (rows, columns) or (rows, columns, 3) with text at these places shows hardly anything else."""
    if len(places) < LINES:
        return False
    beside = np.ones(shown.shape[:2], bool)
    for top, left, bottom, right in places:
        beside[top:bottom, left:right] = False
    if float(beside.mean()) < LEAST_PIXELS:
        return True  # all text
    grey = shown if shown.ndim == 2 else shown.max(2)
    counts = np.bincount(grey[beside], minlength=256)
    first = _even(counts)
    both = first + _even(counts, leave_out=int(counts.argmax()))
    return bool(both >= EVEN_SHARE * counts.sum() and 2 * first >= counts.sum())


def _even(counts: NDArray[np.int64], leave_out: int | None = None) -> int:
    """Pixels around the commonest shade; around the next one where that is left out."""
    counts = counts.copy()
    if leave_out is not None:
        counts[max(0, leave_out - EVEN_LEVELS) : leave_out + EVEN_LEVELS + 1] = 0
    shade = int(counts.argmax())
    return int(counts[max(0, shade - EVEN_LEVELS) : shade + EVEN_LEVELS + 1].sum())
