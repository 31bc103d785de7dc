"""The frames of one series that lie over each other, looked at in few passes.

Read whole: the first frame in two presentations, and the brightest and darkest projection over all frames, in which
text that stands still comes out against a changing background. Of the other frames the screen says where text may have
appeared (`text_screen`); those places are cut out and read. Memory: three pictures and the sheet, whatever the number
of frames.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gateway.gate.pixel_places import Seen
from gateway.gate.pixel_views import Grey, Shown, flat, window
from gateway.gate.text_screen import Region, regions, strokes
from gateway.gate.text_sheets import EVERY_FRAME, Origin, Placed, Sheets

WINDOW_PIXELS = 1024  # a side: large letters; small ones are read in the other presentation
LINE_PIXELS = 8  # neither rows nor columns below hold a legible line


class Stack:
    """One place and one view of a series, frame by frame. `instance` of a projection is that of the last frame."""

    def __init__(self, sheets: Sheets) -> None:
        self._sheets = sheets
        self.frames = 0
        self._brightest: Grey | None = None
        self._darkest: Grey | None = None
        self._before: Shown | None = None
        self._last: tuple[str, Seen] | None = None

    def add(self, instance: str, seen: Seen) -> Iterator[Placed]:
        """Take one frame; gives what was read on the way."""
        grey = seen.grey
        if min(grey.shape) < LINE_PIXELS or grey.min() == grey.max():
            return
        even = flat(grey, step=seen.step)
        now = strokes(even)
        self.frames += 1
        self._last = instance, seen
        if self._brightest is None or self._darkest is None or self._before is None:
            self._brightest, self._darkest = grey.copy(), grey.copy()
            whole = Origin(instance, seen.place, seen.frame)
            yield from self._sheets.add(window(grey), whole, most=WINDOW_PIXELS)
            yield from self._sheets.add(even, whole)
        else:
            np.maximum(self._brightest, grey, out=self._brightest)
            np.minimum(self._darkest, grey, out=self._darkest)
            for region in regions(now, self._before):
                yield from self._cut(even, region, Origin(instance, seen.place, seen.frame))
        self._before = now

    def _cut(self, picture: Shown, region: Region, origin: Origin) -> Iterator[Placed]:
        part = picture[region.top : region.bottom, region.left : region.right]
        place = Origin(origin.instance, origin.place, origin.frame, region.top, region.left)
        yield from self._sheets.add(np.ascontiguousarray(part), place)

    def finish(self) -> Iterator[Placed]:
        """Add the projections."""
        if self.frames < 2 or self._last is None or self._brightest is None or self._darkest is None:
            return
        instance, seen = self._last
        for projection in (self._brightest, self._darkest):
            yield from self._sheets.add(flat(projection, step=seen.step), Origin(instance, seen.place, EVERY_FRAME))
