"""What was found on one frame or projection of a stack, looked for on all of its frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_boxes import covered_share
from gateway.pixels.text_frames import FrameHit, Stack, away_from
from gateway.pixels.text_ground import Place
from gateway.pixels.text_judge import Hit

Bytes = NDArray[np.uint8]

PRESENT = 0.35  # correlation of a place with what was found there
AS_STRONG = 0.5  # strokes half as strong as those that were found: there may be other text at that place
DIFFERENT_LEVELS = 8  # of 255, in the mean of a place
SEEN_ALREADY = 0.6  # share of a place that known places cover


@dataclass(frozen=True, slots=True)
class Source:
    """A hit and the pixels of its place in the picture in which it was found; `median` where that is the median."""

    hit: Hit
    patch: Bytes
    median: bool

    @classmethod
    def of(cls, hit: Hit, picture: Bytes, *, median: bool = True) -> Self:
        """Cut out of a whole picture."""
        top, left, bottom, right = hit.place
        return cls(hit, picture[top:bottom, left:right].copy(), median)


def is_known(place: Place, places: Sequence[Place]) -> bool:
    """Whether known places cover most of a place."""
    return covered_share(place, places) >= SEEN_ALREADY


def on_all_frames(stack: Stack, sources: Sequence[Source], median: Bytes) -> Iterator[FrameHit]:
    """Each hit on every frame that shows at its place what was found there, or that shows something else than the
    median does, with strokes about as strong (the text of a place changes); on all frames when none does.
    """
    if not sources:
        return
    patterns = [_pattern(source.patch, source, median) for source in sources]
    found: list[list[int]] = [[] for _ in sources]
    for frame in range(len(stack)):
        shown = stack.shown(frame)
        away = away_from(shown, median)
        for at, source in enumerate(sources):
            top, left, bottom, right = source.hit.place
            here = _pattern(shown[top:bottom, left:right], source, median)
            differs = float(away[top:bottom, left:right].mean()) > DIFFERENT_LEVELS
            other = differs and float(here.std()) >= AS_STRONG * float(patterns[at].std())
            if other or _correlation(patterns[at], here) >= PRESENT:
                found[at].append(frame)
    for source, frames in zip(sources, found, strict=True):
        for frame in frames or range(len(stack)):
            yield FrameHit(frame, source.hit)


def _pattern(patch: Bytes, source: Source, median: Bytes) -> NDArray[np.float32]:
    """The strokes of a frame at a place; for what was found on another picture than the median, those beyond it."""
    here = _strokes(patch)
    top, left, bottom, right = source.hit.place
    return here if source.median else here - _strokes(median[top:bottom, left:right])


def _strokes(patch: Bytes) -> NDArray[np.float32]:
    """Local differences inside a place: glyphs and not the ground they stand on."""
    import cv2

    window = patch.astype(np.float32)
    grey = window if window.ndim == 2 else window.max(2)
    return np.asarray(grey - cv2.blur(grey, (11, 11)), np.float32)


def _correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    a, b = one - one.mean(), other - other.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / size if size else 0.0
