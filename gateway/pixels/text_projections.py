"""A stack that stands still, seen through few pictures: its median, and what extremes and single frames have beyond.

Two passes, whatever the number of frames, as long as all fits on a sheet: the first over the median and those parts of
the lightest and darkest projection that the median lacks; the second over what the first left, at local contrast, and
the parts of frames on which the screen saw strokes appear. Beside them lie the views of what the first was unsure of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_closer import views_of
from gateway.pixels.text_engine import Engine
from gateway.pixels.text_frames import FrameHit, Stack, away_from
from gateway.pixels.text_ground import Place
from gateway.pixels.text_judge import Hit, Judge, Kind
from gateway.pixels.text_look import Found, completed, in_colour, judged, rest_of, scale_of, values_of
from gateway.pixels.text_presence import Source, is_known, on_all_frames
from gateway.pixels.text_screen import appearing
from gateway.pixels.text_sheet import sheet_area

Bytes = NDArray[np.uint8]

NEW_LEVELS, NEW_PIXELS = 32, 0.0005  # by how much, on which share of a picture, an extreme has news
LIGHT = 90  # of 255: a ground on which dark text shows
ROOM_PX = 48  # around a place
SAME_LEVELS = 3  # frames that differ by less show the same


@dataclass(frozen=True, slots=True)
class Projections:
    """Median, lightest and darkest of every pixel, and its mean distance from the median, (rows, columns)."""

    median: Bytes
    high: Bytes
    low: Bytes
    restless: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a frame or of a projection, and where its first pixel lies."""

    pixels: Bytes
    top: int
    left: int

    def source(self, hit: Hit) -> Source:
        """A hit in this part, in pixels of the frame."""
        top, left, bottom, right = hit.place
        place = top + self.top, left + self.left, bottom + self.top, right + self.left
        return Source(replace(hit, place=place), self.pixels[top:bottom, left:right].copy(), median=False)


def through_projections(stack: Stack, seen: Projections, engine: Engine, judge: Judge) -> Iterator[FrameHit]:
    """Every line on every frame of a stack that stands still. Raises what the frames raise."""
    look = _Look(seen, engine, judge)
    look.projections()
    before = seen.median
    for frame in range(len(stack)):
        shown = stack.shown(frame)
        if away_from(shown, before).max(initial=0) > SAME_LEVELS:
            news = [place for place in appearing(before, shown, seen.restless) if not is_known(place, look.places)]
            if news:
                look.part(_cut(shown, news))
        before = shown
    look.finish()
    yield from on_all_frames(stack, look.sources, seen.median)


@dataclass(slots=True)
class _Look:
    """Collects pictures for a pass. `places` are those found so far."""

    seen: Projections
    engine: Engine
    judge: Judge
    sources: list[Source] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    _first: Found = field(default_factory=lambda: Found([], [], [], first=True))
    _rest: list[Bytes] = field(default_factory=list)  # at most one, of the median
    _unsure: list[tuple[_Part, Found]] = field(default_factory=list)  # of the extremes
    _parts: list[_Part] = field(default_factory=list)

    @property
    def _scale(self) -> float:
        return scale_of(self.seen.median.shape)

    @property
    def _side(self) -> float:
        rows, columns = self.seen.median.shape[:2]
        return float(np.sqrt(rows * columns))

    def projections(self) -> None:
        """The first pass; what the second looks at of the median waits."""
        picture = in_colour(self.seen.median)
        parts = [part for part in (self._news(dark=False), self._news(dark=True)) if part is not None]
        pictures = [picture, *(in_colour(part.pixels) for part in parts)]
        (self._first, *others), _ = judged(pictures, self.engine, self.judge, self._scale, side=self._side)
        self.places = [hit.place for hit in self._first.hits]
        values, floor = values_of(picture)
        self._rest = [rest_of(values, self._first.hits, floor)]
        for part, found in zip(parts, others, strict=True):
            self._take(part, [hit for hit in found.hits if hit.kind is not Kind.UNCERTAIN])
            self._unsure.append((part, found))

    def _news(self, *, dark: bool) -> _Part | None:
        """Where an extreme may show text that the median does not: dark text needs light ground, light text dark."""
        median, extreme = self.seen.median, self.seen.low if dark else self.seen.high
        ground = median if median.ndim == 2 else median.max(2)
        room = ground >= LIGHT if dark else ground <= 255 - LIGHT
        news = (away_from(median, extreme) > NEW_LEVELS) & room
        if float(news.mean()) <= NEW_PIXELS:
            return None
        rows, columns = np.flatnonzero(news.any(1)), np.flatnonzero(news.any(0))
        return _cut(extreme, [(int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)])

    def _take(self, part: _Part, hits: Sequence[Hit]) -> None:
        picture = in_colour(part.pixels)
        for hit in completed(hits, picture, *values_of(picture), self.engine):
            source = part.source(hit)
            if not is_known(source.hit.place, self.places):
                self.sources.append(source)
                self.places.append(source.hit.place)

    def part(self, part: _Part) -> None:
        """A part of a frame, for the next pass; that is at once when the sheet is full."""
        self._parts.append(part)
        if 2 * sum(one.pixels.shape[0] * one.pixels.shape[1] for one in self._parts) > sheet_area(self._scale):
            self._pass()

    def finish(self) -> None:
        """What waits."""
        self._pass()

    def _pass(self) -> None:
        """Parts as they show and at local contrast, and the rest of the median where that was not looked at yet."""
        parts, rest, unsure = self._parts, self._rest, self._unsure
        self._parts, self._rest, self._unsure = [], [], []
        pictures = [*rest]
        known: list[Sequence[Hit] | None] = [self._first.hits for _ in rest]
        for part in parts:
            picture = in_colour(part.pixels)
            pictures += [picture, rest_of(*_bare(picture))]
            known += [None, []]
        if not pictures:
            return
        median = in_colour(self.seen.median)
        asked = [(median, doubt) for doubt in self._first.doubts] if rest else []
        asked += [(in_colour(part.pixels), doubt) for part, found in unsure for doubt in found.doubts]
        views = [views_of(picture, doubt, self._scale) for picture, doubt in asked]
        found, said = judged(pictures, self.engine, self.judge, self._scale, known, self._side, views)
        answers = iter(said)
        if rest:
            first = self._first.settled([next(answers) for _ in self._first.doubts])
            hits = completed([*first, *found.pop(0).hits], median, *values_of(median), self.engine)
            self.sources += [Source.of(hit, self.seen.median) for hit in hits]
            self.places += [hit.place for hit in hits]
        for part, before in unsure:
            hits = before.settled([next(answers) for _ in before.doubts])
            self._take(part, [hit for hit in hits if hit.kind is Kind.UNCERTAIN or hit not in before.hits])
        for part, plain, faint in zip(parts, found[::2], found[1::2], strict=True):
            self._take(part, [*plain.hits, *faint.hits])


def _bare(picture: Bytes) -> tuple[NDArray[np.float32], list[Hit], float]:
    values, floor = values_of(picture)
    return values, [], floor


def _cut(shown: Bytes, places: Sequence[Place]) -> _Part:
    """The part of a picture that the places lie in, with room around it."""
    rows, columns = shown.shape[:2]
    top, left = (max(0, min(place[side] for place in places) - ROOM_PX) for side in (0, 1))
    bottom = min(rows, max(place[2] for place in places) + ROOM_PX)
    right = min(columns, max(place[3] for place in places) + ROOM_PX)
    return _Part(np.ascontiguousarray(shown[top:bottom, left:right]), top, left)
