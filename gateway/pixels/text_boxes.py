"""Boxes of lines: upright ones around a line that a detector saw, and how two of them lie to each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gateway.pixels.text_engine import Line
from gateway.pixels.text_ground import Place

GHOST = 0.3  # share of a line that lies on what was covered: it is no line of its own
LINE_LONG, LINE_HIGH, LINE_SHARED = 1.5, 1.35, 0.6  # what continues a line: its shape, height and level
LINE_OVER = 0.6  # of its length: lying more on a line, it does not go on where that ends
BRIDGE_LONG, BRIDGE_SHARED = 3, 0.75  # gap in a line, for its height, and how far its parts are on one level
ASIDE, DOWN, LEAST_MARGIN_PX = 0.4, 0.12, 2  # of a line's height, along it and across it
SLANT, MAX_PIECES = 0.15, 24  # a line that rises by more than this share of its height is boxed in pieces


def places_of(line: Line, shape: tuple[int, ...]) -> list[Place]:
    """The upright boxes of a line with their margin, in pieces where it is slanted: a margin across covers shadows and
    descenders, one along a half-seen letter.
    """
    first, second, third, fourth = line.corners
    along, across = line.sides
    wide = abs(second[0] - first[0]) >= abs(second[1] - first[1])
    slant = abs(second[1] - first[1]) if wide else abs(second[0] - first[0])
    if along < across:  # the line runs down: its long edges are the second and the fourth
        first, second, third, fourth = second, third, fourth, first
        wide = not wide
        slant = abs(second[1] - first[1]) if wide else abs(second[0] - first[0])
    high = min(along, across)
    pieces = max(1, min(MAX_PIECES, int(np.ceil(slant / max(1.0, SLANT * high)))))
    cuts = np.linspace(0, 1, pieces + 1)
    aside, down = ASIDE * high + LEAST_MARGIN_PX, DOWN * high + LEAST_MARGIN_PX
    found = []
    for start, end in pairwise(cuts):
        corners = np.array(
            [first + (second - first) * at for at in (start, end)]
            + [fourth + (third - fourth) * at for at in (start, end)]
        )
        (left, top), (right, bottom) = corners.min(0), corners.max(0)
        x, y = (aside, down) if wide else (down, aside)
        found.append(
            (
                max(0, int(top - y)),
                max(0, int(left - x)),
                min(shape[0], int(np.ceil(bottom + y)) + 1),
                min(shape[1], int(np.ceil(right + x)) + 1),
            )
        )
    return found


def continues(line: Place, known: Place) -> bool:
    """Whether a line goes on where a known one ends: on the same level, as high, no more than a sign away."""
    wide = known[3] - known[1] >= known[2] - known[0]
    (top, bottom), (above, below) = ((p[0], p[2]) if wide else (p[1], p[3]) for p in (line, known))
    (start, end), (first, last) = ((p[1], p[3]) if wide else (p[0], p[2]) for p in (line, known))
    high = below - above
    if last - first < LINE_LONG * high or bottom - top > LINE_HIGH * high:
        return False
    shared = min(bottom, below) - max(top, above)
    beyond = max(start, first) - min(end, last)  # less than nothing where they overlap
    return shared >= LINE_SHARED * (bottom - top) and -LINE_OVER * (end - start) <= beyond <= high


def gap_of(one: Place, other: Place) -> Place | None:
    """Between the end of a line and the beginning of another on its level, along rows or columns."""
    for turn in (False, True):
        a, b = ((p[1], p[0], p[3], p[2]) if turn else p for p in (one, other))
        high, higher = sorted((a[2] - a[0], b[2] - b[0]))
        shared = min(a[2], b[2]) - max(a[0], b[0])
        lines = all(p[3] - p[1] >= LINE_LONG * (p[2] - p[0]) for p in (a, b))
        level = higher <= LINE_HIGH * high and shared >= BRIDGE_SHARED * higher
        if lines and level and 0 < b[1] - a[3] <= BRIDGE_LONG * high:
            gap = min(a[0], b[0]), a[3], max(a[2], b[2]), b[1]
            return (gap[1], gap[0], gap[3], gap[2]) if turn else gap
    return None


def covered_share(place: Place, places: Sequence[Place]) -> float:
    """Which share of a place known places cover; 0 for an empty one."""
    top, left, bottom, right = place
    inside = np.zeros((max(0, bottom - top), max(0, right - left)), bool)
    for t, x, b, r in places:
        inside[max(0, t - top) : max(0, b - top), max(0, x - left) : max(0, r - left)] = True
    return float(inside.mean()) if inside.size else 0.0


def on_known(line: Line, known: Sequence[Place]) -> bool:
    """Whether much of a line lies on known places."""
    top, left, bottom, right = (max(0, round(side)) for side in line.extent)
    return covered_share((top, left, bottom, right), known) >= GHOST
