"""All frames of a series that have one size, looked at together: what stands still is read once, not on every frame.

Frames come one at a time; what stays in memory is a handful of projections and samples, whatever the number of frames.
A stack that stands still (most pixels hardly change over nine frames of ten) is seen through its median and its
extremes, and a frame of it is looked at by itself where strokes appear that these do not show. Of any other stack
every frame is looked at. What is found once is looked for on all frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_engine import Engine
from gateway.pixels.text_look import Hit, Judge, Place, covered, look, scale_of
from gateway.pixels.text_screen import appearing

Bytes = NDArray[np.uint8]

FEW = 4  # so many frames are looked at one by one
SAMPLES = 9  # frames that the median is taken of
STILL_LEVELS, STILL_FRAMES, STILL_PIXELS = 8, 0.9, 0.5
SAME_LEVELS = 3  # frames that differ by less show the same
NEW_PIXELS = 0.0005  # share of pixels by which an extreme must differ from the median to be worth a look
LIGHT = 90  # of 255: a ground on which dark text shows
PRESENT = 0.35  # correlation of a place with what was found there
AS_STRONG = 0.5  # strokes half as strong as those that were found: there may be other text at that place
ROOM_PX = 48
SEEN_ALREADY = 0.6  # share of a screened place that known places cover


@dataclass(frozen=True, slots=True)
class FrameHit:
    """A hit on one frame of a stack."""

    frame: int
    hit: Hit


class Stack:
    """Frames by number, (rows, columns) or (rows, columns, 3), all of one shape. Subclassed by where they come from."""

    def __len__(self) -> int:
        raise NotImplementedError

    def shown(self, frame: int) -> Bytes:
        raise NotImplementedError

    def deep(self, frame: int) -> NDArray[np.float32] | None:
        """(rows, columns) in about 0..1 where a frame has more than 8 bits of grey."""
        raise NotImplementedError


def look_through(stack: Stack, engine: Engine, judge: Judge) -> list[FrameHit]:
    """Every line on every frame. Raises what the frames raise."""
    if len(stack) <= FEW:
        return list(_one_by_one(stack, engine, judge, twice=True))
    median = _median(stack)
    motion, high, low = _motion(stack, median)
    if motion.still < STILL_PIXELS:
        found = list(_one_by_one(stack, engine, judge, twice=False))
        static = [hit for hit in look(median, engine, judge) if not _known(hit.place, [one.hit.place for one in found])]
        return found + list(_on_all_frames(stack, [(hit, median) for hit in static], median))
    return list(_through_projections(stack, median, (high, low), motion.restless, engine, judge))


def _one_by_one(stack: Stack, engine: Engine, judge: Judge, *, twice: bool) -> Iterator[FrameHit]:
    """Each frame by itself; one that shows the same as the one looked at last has the same hits."""
    last: Bytes | None = None
    hits: list[Hit] = []
    for frame in range(len(stack)):
        shown = stack.shown(frame)
        if last is None or _differ(shown, last):
            deep = stack.deep(frame) if twice else None
            hits, last = look(shown, engine, judge, twice=twice, deep=deep), shown
        yield from (FrameHit(frame, hit) for hit in hits)


def _differ(one: Bytes, other: Bytes) -> bool:
    return bool(_away(one, other).max(initial=0) > SAME_LEVELS)


def _median(stack: Stack) -> Bytes:
    numbers = sorted({round(at) for at in np.linspace(0, len(stack) - 1, SAMPLES)})
    return np.asarray(np.median(np.stack([stack.shown(frame) for frame in numbers]), 0), np.uint8)


@dataclass(frozen=True, slots=True)
class _Motion:
    """Share of the pixels that stand still, and how far each is from its median in the mean, (rows, columns)."""

    still: float
    restless: NDArray[np.float32]


def _motion(stack: Stack, median: Bytes) -> tuple[_Motion, Bytes, Bytes]:
    """How the stack moves, the lightest and the darkest of every pixel."""
    high, low = median.copy(), median.copy()
    near = np.zeros(median.shape[:2], np.uint32)
    away_sum = np.zeros(median.shape[:2], np.float32)
    for frame in range(len(stack)):
        shown = stack.shown(frame)
        np.maximum(high, shown, out=high)
        np.minimum(low, shown, out=low)
        away = _away(shown, median)
        near += away <= STILL_LEVELS
        away_sum += away
    still = float((near >= STILL_FRAMES * len(stack)).mean())
    return _Motion(still, away_sum / np.float32(len(stack))), high, low


def _away(one: Bytes, other: Bytes) -> Bytes:
    """Distance of two pictures, the largest of the channels."""
    away = np.maximum(one, other) - np.minimum(one, other)
    return away if away.ndim == 2 else np.asarray(away.max(2))


def _through_projections(
    stack: Stack,
    median: Bytes,
    extremes: tuple[Bytes, Bytes],
    restless: NDArray[np.float32],
    engine: Engine,
    judge: Judge,
) -> Iterator[FrameHit]:
    sources: list[tuple[Hit, Bytes]] = [(hit, median) for hit in look(median, engine, judge)]
    for extreme, dark in zip(extremes, (False, True), strict=True):
        places = [hit.place for hit, _ in sources]
        if _news(median, extreme, dark=dark):
            fresh = look(_plain(extreme, places), engine, judge, twice=False)
            sources += [(hit, extreme) for hit in fresh if not _known(hit.place, places)]
    places = [hit.place for hit, _ in sources]
    before = median
    for frame in range(len(stack)):
        shown = stack.shown(frame)
        if _differ(shown, before):
            news = [place for place in appearing(before, shown, restless) if not _known(place, places)]
            fresh = [hit for hit in _look_at(shown, news, engine, judge) if not _known(hit.place, places)]
            sources += [(hit, shown) for hit in fresh]
            places += [hit.place for hit in fresh]
        before = shown
    yield from _on_all_frames(stack, sources, median)


def _look_at(shown: Bytes, places: Sequence[Place], engine: Engine, judge: Judge) -> list[Hit]:
    """The part of a frame that the places lie in, with room around it."""
    if not places:
        return []
    rows, columns = shown.shape[:2]
    top, left = (max(0, min(place[side] for place in places) - ROOM_PX) for side in (0, 1))
    bottom = min(rows, max(place[2] for place in places) + ROOM_PX)
    right = min(columns, max(place[3] for place in places) + ROOM_PX)
    hits = look(shown[top:bottom, left:right], engine, judge, twice=False, scale=scale_of(shown.shape))
    return [
        replace(hit, place=(hit.place[0] + top, hit.place[1] + left, hit.place[2] + top, hit.place[3] + left))
        for hit in hits
    ]


def _news(median: Bytes, extreme: Bytes, *, dark: bool) -> bool:
    """Whether an extreme may show text that the median does not: dark text needs light ground, and light text dark."""
    ground = median if median.ndim == 2 else median.max(2)
    room = ground >= LIGHT if dark else ground <= 255 - LIGHT
    return bool(((_away(median, extreme) > 4 * STILL_LEVELS) & room).mean() > NEW_PIXELS)


def _plain(shown: Bytes, places: Sequence[Place]) -> Bytes:
    """The picture with known places covered."""
    picture = np.repeat(shown[..., None], 3, 2) if shown.ndim == 2 else shown
    return covered(picture, places)


def _known(place: Place, places: Sequence[Place]) -> bool:
    top, left, bottom, right = place
    inside = np.zeros((bottom - top, right - left), bool)
    for t, x, b, r in places:
        inside[max(0, t - top) : max(0, b - top), max(0, x - left) : max(0, r - left)] = True
    return bool(inside.size) and float(inside.mean()) >= SEEN_ALREADY


def _on_all_frames(stack: Stack, sources: Sequence[tuple[Hit, Bytes]], median: Bytes) -> Iterator[FrameHit]:
    """Each hit on every frame that shows at its place what was found there, or that shows something else than the
    median does, with strokes about as strong (the text of a place changes); on all frames when none does.
    """
    if not sources:
        return
    patterns = [_pattern(source, source, median, hit.place) for hit, source in sources]
    found: list[list[int]] = [[] for _ in sources]
    for frame in range(len(stack)):
        shown = stack.shown(frame)
        away = _away(shown, median)
        for at, (hit, source) in enumerate(sources):
            top, left, bottom, right = hit.place
            here = _pattern(shown, source, median, hit.place)
            differs = float(away[top:bottom, left:right].mean()) > STILL_LEVELS
            other = differs and float(here.std()) >= AS_STRONG * float(patterns[at].std())
            if other or _correlation(patterns[at], here) >= PRESENT:
                found[at].append(frame)
    for (hit, _), frames in zip(sources, found, strict=True):
        for frame in frames or range(len(stack)):
            yield FrameHit(frame, hit)


def _pattern(shown: Bytes, source: Bytes, median: Bytes, place: Place) -> NDArray[np.float32]:
    """The strokes of a frame at a place; for what was found on another picture than the median, those beyond it."""
    here = _strokes(shown, place)
    return here if source is median else here - _strokes(median, place)


def _strokes(shown: Bytes, place: Place) -> NDArray[np.float32]:
    """Local differences inside a place: glyphs and not the ground they stand on."""
    import cv2

    top, left, bottom, right = place
    window = shown[top:bottom, left:right].astype(np.float32)
    grey = window if window.ndim == 2 else window.max(2)
    return np.asarray(grey - cv2.blur(grey, (11, 11)), np.float32)


def _correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    a, b = one - one.mean(), other - other.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / size if size else 0.0
