"""Where a line of text ends: a box found by the detector is drawn out to the end of letters that it cuts.

The detector's map fades at the ends of faint lines. A connected stroke that is as high and as strong as the letters of
a line, stands on their level and close to the last of them, is a letter. Anatomy is none: its edges run on above or
below the line, and its noise is smaller than letters are. A letter that begins beside the box draws nothing out: in
texture one would follow the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_ground import Place

LINE_LONG = 1.5  # times as long as high: a shorter box has no direction
ROOM = 0.75  # of the box's height: how far beside it is looked
GAP = 0.6  # of a letter's height, to the next letter
MARGIN, MARGIN_PX = 0.15, 1  # around the last letter
STROKE = 0.35  # of the box's height: a stroke is thinner
INK = 0.5  # of the strength of a line's strokes: less is none of it
LEAST_LETTERS = 3  # of a line, that say how high and how strong the others are
SMALL, TALL, WIDE = 0.7, 1.35, 4.0  # a letter, or some that touch, for the height of the line's
WEAK, STRONG = 0.7, 1.5  # a letter, for the strength of the line's
OFF_LEVEL = 0.3  # of a letter's height


@dataclass(frozen=True, slots=True)
class _Letters:
    """Connected strokes: rows and columns (half open) and mean strength of each."""

    top: NDArray[np.int64]
    left: NDArray[np.int64]
    bottom: NDArray[np.int64]
    right: NDArray[np.int64]
    strength: NDArray[np.float64]

    @property
    def height(self) -> NDArray[np.int64]:
        return self.bottom - self.top


def drawn_out(values: NDArray[np.float32], place: Place) -> Place:
    """A place of a picture (rows, columns, channels), longer where it cuts a letter. A square one stays as it is."""
    top, left, bottom, right = place
    if right - left >= LINE_LONG * (bottom - top):
        start, end = _ends(values, place)
        return top, start, bottom, end
    if bottom - top >= LINE_LONG * (right - left):
        start, end = _ends(values.transpose(1, 0, 2), (left, top, right, bottom))
        return start, left, end, right
    return place


def _ends(values: NDArray[np.float32], place: Place) -> tuple[int, int]:
    """First and last column (half open) of a line that runs along the columns."""
    top, left, bottom, right = place
    high = bottom - top
    first, start = max(0, top - high // 2), max(0, left - round(ROOM * high))
    window = values[first : bottom + high // 2, start : right + round(ROOM * high)]
    letters = _letters(window, high, (slice(top - first, bottom - first), slice(left - start, right - start)))
    middle = (letters.left + letters.right) / 2 + start
    own = (middle >= left) & (middle < right) & (letters.height >= high / 4) & (letters.height <= high)
    if own.sum() < LEAST_LETTERS:
        return left, right
    height, strength = float(np.median(letters.height[own])), float(np.median(letters.strength[own]))
    level = np.median(letters.top[own]), np.median(letters.bottom[own])
    alike = (
        (letters.height >= SMALL * height)
        & (letters.height <= TALL * height)
        & (letters.right - letters.left <= WIDE * height)
        & (letters.strength >= WEAK * strength)
        & (letters.strength <= STRONG * strength)
        & (np.abs(letters.top - level[0]) <= OFF_LEVEL * height)
        & (np.abs(letters.bottom - level[1]) <= OFF_LEVEL * height)
    )
    whole = (letters.left > 0) | (start == 0)  # what runs out of the window is no letter
    whole &= (letters.right < window.shape[1]) | (start + window.shape[1] == values.shape[1])
    alike &= whole
    begins, ends = letters.left + start, letters.right + start
    alike &= (begins < right) & (ends > left)
    margin = round(MARGIN * height) + MARGIN_PX
    from_right = _followed(begins[alike], ends[alike], int(ends[own].max()), GAP * height)
    from_left = -_followed(-ends[alike], -begins[alike], -int(begins[own].min()), GAP * height)
    return max(0, min(left, from_left - margin)), min(values.shape[1], max(right, from_right + margin))


def _followed(begins: NDArray[np.int64], ends: NDArray[np.int64], at: int, gap: float) -> int:
    """Where the last letter ends that goes on, each no further than `gap` from the one before."""
    for index in np.argsort(begins, kind="stable"):
        if ends[index] > at and begins[index] - at <= gap:
            at = int(ends[index])
    return at


def _letters(window: NDArray[np.float32], high: int, inside: tuple[slice, slice]) -> _Letters:
    """Connected strokes of a window (rows, columns, channels), lighter or darker than their ground as the inside is."""
    import cv2

    size = max(5, round(STROKE * high))
    kernel = np.ones((size, size), np.uint8)
    shown = np.ascontiguousarray(window)
    light, dark = (
        cv2.morphologyEx(shown, how, kernel).reshape(window.shape).max(2)
        for how in (cv2.MORPH_TOPHAT, cv2.MORPH_BLACKHAT)
    )
    strength = light if np.percentile(light[inside], 90) >= np.percentile(dark[inside], 90) else dark
    ink = (strength > INK * max(float(np.percentile(strength[inside], 92)), 1e-6)).astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    sums = np.bincount(labels.ravel(), weights=strength.ravel(), minlength=count)
    left, top, width, height, area = (stats[1:, column].astype(np.int64) for column in range(5))
    return _Letters(top, left, top + height, left + width, sums[1:] / np.maximum(area, 1))
