"""All frames of a series that have one size, looked at together: what stands still is read once, not on every frame.

Frames come one at a time; what stays in memory is a handful of projections and samples, whatever the number of frames.
A stack that stands still (most pixels hardly change over nine frames of ten) is seen through its projections
(`text_projections`). Of any other stack every frame is looked at. What is found once is looked for on all frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.machine_codes import beside, codes_through
from gateway.pixels.text_closer import views_of
from gateway.pixels.text_engine import Engine
from gateway.pixels.text_frames import FrameHit, Stack, away_from
from gateway.pixels.text_ground import local_contrast
from gateway.pixels.text_judge import Hit, Judge, Kind
from gateway.pixels.text_look import completed, in_colour, judged, look, rest_of, scale_of, values_of
from gateway.pixels.text_presence import Source, is_known, on_all_frames
from gateway.pixels.text_projections import NEW_PIXELS, Projections, through_projections

Bytes = NDArray[np.uint8]

FEW, STILL_FEW = 4, 0.8  # so many frames are looked at one by one, unless so much of them stands still
SAMPLES = 9  # frames that the median is taken of
STILL_LEVELS, STILL_FRAMES, STILL_PIXELS = 8, 0.9, 0.5
SAME_LEVELS = 3  # frames that differ by less show the same
FAINT_SHRINK = 2  # of frames of a stack that moves, at local contrast
FAINT_LEAST_PX = 128  # a smaller frame is not shrunk: its letters would be lost


def look_through(stack: Stack, engine: Engine, judge: Judge) -> list[FrameHit]:
    """Every line, and every machine-readable code, on every frame. Raises what the frames raise."""
    median = _median(stack)
    codes = codes_through(stack, median)
    return [*beside(_lines(stack, median, engine, judge), codes), *codes]


def _lines(stack: Stack, median: Bytes, engine: Engine, judge: Judge) -> list[FrameHit]:
    if len(stack) == 1:
        return list(_one_by_one(stack, engine, judge, twice=True))
    motion = _motion(stack, median)
    if motion.alike:
        return [FrameHit(frame, hit) for hit in look(median, engine, judge, passes=2) for frame in range(len(stack))]
    if motion.still >= (STILL_PIXELS if len(stack) > FEW else STILL_FEW):
        return list(through_projections(stack, motion.projections, engine, judge))
    if len(stack) <= FEW:
        return list(_one_by_one(stack, engine, judge, twice=True))
    found = list(_one_by_one(stack, engine, judge, twice=False))
    places = [one.hit.place for one in found]
    static = [hit for hit in look(median, engine, judge) if not is_known(hit.place, places)]
    return found + list(on_all_frames(stack, [Source.of(hit, median) for hit in static], median))


def _one_by_one(stack: Stack, engine: Engine, judge: Judge, *, twice: bool) -> Iterator[FrameHit]:
    """Each frame by itself; one that shows the same as the one looked at last has the same hits."""
    last: Bytes | None = None
    hits: list[Hit] = []
    for frame in range(len(stack)):
        shown = stack.shown(frame)
        if last is None or away_from(shown, last).max(initial=0) > SAME_LEVELS:
            deep, last = stack.deep(frame), shown
            hits = look(shown, engine, judge, deep=deep) if twice else _look_once(shown, deep, engine, judge)
        yield from (FrameHit(frame, hit) for hit in hits)


def _look_once(shown: Bytes, deep: NDArray[np.float32] | None, engine: Engine, judge: Judge) -> list[Hit]:
    """One pass over a frame as it shows and, smaller, at local contrast; a second where the first found something."""
    import cv2

    picture = in_colour(shown)
    scale = scale_of(picture.shape)
    values, floor = values_of(picture, deep)
    pictures, shrink = [picture], FAINT_SHRINK if min(picture.shape[:2]) >= FAINT_LEAST_PX else 1
    faint = local_contrast(values, floor)
    size = (picture.shape[1] // shrink, picture.shape[0] // shrink)
    pictures.append(np.asarray(cv2.resize(faint, size, interpolation=cv2.INTER_AREA), np.uint8))
    side = float(np.sqrt(picture.shape[0] * picture.shape[1]))
    (found, small), _ = judged(pictures, engine, judge, scale, [None, []], side)
    first = found.hits
    if first or found.doubts:
        rest = [rest_of(values, first, floor)] if first else []
        views = [views_of(picture, doubt, scale) for doubt in found.doubts]
        second, answers = judged(rest, engine, judge, scale, [first], side, views)
        first = [*found.settled(answers), *(hit for one in second for hit in one.hits)]
    places = [hit.place for hit in first]
    for hit in small.hits:
        top, left, bottom, right = (edge * shrink for edge in hit.place)
        place = top, left, min(bottom, picture.shape[0]), min(right, picture.shape[1])
        if hit.kind is not Kind.UNCERTAIN and not is_known(place, places):
            first.append(replace(hit, place=place))
    return completed(first, picture, values, floor, engine)


def _median(stack: Stack) -> Bytes:
    numbers = sorted({round(at) for at in np.linspace(0, len(stack) - 1, SAMPLES)})
    return np.asarray(np.median(np.stack([stack.shown(frame) for frame in numbers]), 0), np.uint8)


@dataclass(frozen=True, slots=True)
class _Motion:
    """Share of the pixels that stand still, and whether no frame shows anything else than the median does."""

    still: float
    alike: bool
    projections: Projections


def _motion(stack: Stack, median: Bytes) -> _Motion:
    """How the stack moves, the lightest and the darkest of every pixel, and how far each is from its median."""
    high, low = median.copy(), median.copy()
    near = np.zeros(median.shape[:2], np.uint32)
    away_sum = np.zeros(median.shape[:2], np.float32)
    alike = True
    for frame in range(len(stack)):
        shown = stack.shown(frame)
        np.maximum(high, shown, out=high)
        np.minimum(low, shown, out=low)
        away = away_from(shown, median)
        near += away <= STILL_LEVELS
        away_sum += away
        alike = alike and float((away > STILL_LEVELS).mean()) < NEW_PIXELS
    still = float((near >= STILL_FRAMES * len(stack)).mean())
    return _Motion(still, alike, Projections(median, high, low, away_sum / np.float32(len(stack))))
