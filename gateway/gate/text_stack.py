"""The frames of one series that lie over each other, looked at in few passes.

Read whole: the first frame in two presentations, and the brightest and darkest projection over all frames, in which
text that stands still comes out against a changing background; of large frames only what the projections show beyond
the first. Of the other frames the screen says where text may have appeared (`text_screen`); those places are cut out
and read. Of a second view of the same frames (the darkest of the channels beside the brightest) that much is looked at
as differs from the first. Memory: four pictures and the sheet, whatever the number of frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from gateway.gate.pixel_places import Seen
from gateway.gate.pixel_views import Grey, Shown, flat, window
from gateway.gate.text_screen import MARGIN_PIXELS, Region, regions, strokes
from gateway.gate.text_sheets import EVERY_FRAME, Origin, Placed, Sheets

WINDOW_PIXELS = 1024  # a side: large letters; small ones are read in the other presentation
APART, MOST_OF_IT = 0.015, 0.6  # of the range of values; of a picture
LINE_PIXELS = 8  # neither rows nor columns below hold a legible line


class Stack:
    """One place and one view of a series, frame by frame. `instance` of a projection is that of the last frame."""

    def __init__(self, sheets: Sheets) -> None:
        self._sheets = sheets
        self.frames = 0
        self._brightest: Grey | None = None
        self._darkest: Grey | None = None
        self._first: Shown | None = None  # strokes of the first frame, and of the one before
        self._before: Shown | None = None
        self._last: tuple[str, Seen] | None = None
        self._differs: NDArray[np.bool_] | None = None  # from the other view, on any frame; None where there is none

    def add(self, instance: str, seen: Seen, other: Grey | None = None) -> Iterator[Placed]:
        """Take one frame; gives what was read on the way. `other` is a view of the same frame that is read whole."""
        grey = seen.grey
        if min(grey.shape) < LINE_PIXELS or grey.min() == grey.max():
            return
        even = flat(grey, step=seen.step)
        now = strokes(even)
        self.frames += 1
        self._last = instance, seen
        apart = None if other is None else _apart(grey, other)
        if self._brightest is None or self._darkest is None or self._before is None:
            self._brightest, self._darkest = grey.copy(), grey.copy()
            self._first, self._differs = now, apart
            whole = Origin(instance, seen.place, seen.frame)
            if apart is None:
                yield from self._sheets.add(window(grey), whole, most=WINDOW_PIXELS)
                yield from self._sheets.add(even, whole)
            else:
                yield from self._cuts(even, parts(apart), whole)
        else:
            np.maximum(self._brightest, grey, out=self._brightest)
            np.minimum(self._darkest, grey, out=self._darkest)
            new = regions(now, self._before)
            if self._differs is not None:
                self._differs = self._differs | apart if apart is not None else np.ones(grey.shape, bool)
                new = [region for region in new if apart is None or _any(apart, region)]
            yield from self._cuts(even, new, Origin(instance, seen.place, seen.frame))
        self._before = now

    def _cuts(self, picture: Shown, places: Iterable[Region], origin: Origin) -> Iterator[Placed]:
        for place in places:
            part = picture[place.top : place.bottom, place.left : place.right]
            there = Origin(origin.instance, origin.place, origin.frame, place.top, place.left)
            yield from self._sheets.add(np.ascontiguousarray(part), there)

    def finish(self) -> Iterator[Placed]:
        """Add the projections."""
        if self.frames < 2 or self._last is None or self._brightest is None or self._darkest is None:
            return
        instance, seen = self._last
        for projection in (self._brightest, self._darkest):
            even, origin = flat(projection, step=seen.step), Origin(instance, seen.place, EVERY_FRAME)
            if self._differs is None and max(even.shape) <= WINDOW_PIXELS:
                yield from self._sheets.add(even, origin)
                continue
            new = regions(strokes(even), self._first) if self._first is not None else []
            yield from self._cuts(
                even, [one for one in new if self._differs is None or _any(self._differs, one)], origin
            )


def _apart(grey: Grey, other: Grey) -> NDArray[np.bool_]:
    """Where a view differs from another by as much as text might."""
    return np.asarray(np.abs(grey - other) > APART * max(1.0, float(other.max() - other.min())))


def _any(mask: NDArray[np.bool_], region: Region) -> bool:
    return bool(mask[region.top : region.bottom, region.left : region.right].any())


def parts(mask: NDArray[np.bool_]) -> list[Region]:
    """Boxes around what a mask marks, with a margin, those that meet as one; the whole where they are most of it."""
    import cv2

    side = 2 * MARGIN_PIXELS + 1
    grown = cv2.dilate(mask.astype(np.uint8), np.ones((side, side), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(grown)
    found = [
        Region(int(top), int(left), int(top + height), int(left + width))
        for left, top, width, height, _ in stats[1:count]
    ]
    area = sum((one.bottom - one.top) * (one.right - one.left) for one in found)
    return found if area < MOST_OF_IT * mask.size else [Region(0, 0, *mask.shape)]
