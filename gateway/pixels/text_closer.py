"""Places that may show text, looked at once more and closer: cut out, larger, in full contrast, and turned round.

The detector sees a line of text however it is shown; what was a line of anatomy in one picture is none in the next one
(bench.text, development half: text scores about 0.9 in every view, anatomy nothing in most). So what it says of several
views decides where reading cannot, of any script. The views lie on the sheet of the next pass, so that they cost none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_boxes import covered_share
from gateway.pixels.text_engine import Line
from gateway.pixels.text_ground import Place, local_contrast
from gateway.pixels.text_judge import Hit, Kind

Bytes = NDArray[np.uint8]

LINE_PX, LONGEST_PX = 64, 1600  # height of a line in a view as the detector gets it, and the most of a view's length
ROOM, ROOM_PX = 0.8, 6  # around a line, for its height, and at least
DARKEST, LIGHTEST = 2.0, 99.5  # percent of the pixels of a cut-out that make its range
AGAIN, HALF = 0.8, 0.5  # how clearly a view must show a line again, and which share of it
NOTHING = 0.5  # a line seen less clearly was not seen
MEETS = 0.1  # share of a line that another one must lie on to be the same


class Answer(Enum):
    """What the views of a place say together."""

    TEXT = auto()  # most of them show the line
    NONE = auto()  # no view shows it
    OPEN = auto()


@dataclass(frozen=True, slots=True)
class Doubt:
    """A line that may be text: its upright box, its boxes with their margins, how clearly it was seen (0 to 1), and how
    high it is itself, in pixels: the box of a slanted one is higher. `tall`: print so high is read, or else it is not
    text only because it looks like it (`text_lines`).
    """

    box: Place
    places: tuple[Place, ...]
    score: float
    high: float
    tall: bool = False

    def answered(self, views: Answer) -> Answer:
        """What becomes of it after what its views say."""
        return Answer.OPEN if self.tall and views is Answer.TEXT else views


@dataclass(frozen=True, slots=True)
class View:
    """A place, (rows, columns, 3), and where in it the line lies."""

    pixels: Bytes
    box: Place

    def turned(self, quarters: int) -> View:
        """The same, so many quarter turns to the left."""
        view = self
        for _ in range(quarters):
            top, left, bottom, right = view.box
            columns = view.pixels.shape[1]
            view = View(np.ascontiguousarray(np.rot90(view.pixels)), (columns - right, top, columns - left, bottom))
        return view


def views_of(picture: Bytes, doubt: Doubt, scale: float) -> list[View]:
    """Three views of a line in a picture (rows, columns, 3) that a sheet will enlarge by `scale`. One that runs up or
    down is laid flat, either way, in two of them.
    """
    import cv2

    top, left, bottom, right = doubt.box
    high = max(1.0, min(doubt.high, bottom - top, right - left))
    room = max(ROOM_PX, round(ROOM * high))
    first, start = max(0, top - room), max(0, left - room)
    cut = picture[first : bottom + room, start : right + room]
    larger = min(LINE_PX / high, LONGEST_PX / max(cut.shape[:2])) / scale
    size = (max(1, round(cut.shape[1] * larger)), max(1, round(cut.shape[0] * larger)))
    how = cv2.INTER_CUBIC if larger > 1 else cv2.INTER_AREA
    bright, local = (
        np.asarray(cv2.resize(one, size, interpolation=how), np.uint8)
        for one in (_stretched(cut), local_contrast(np.asarray(cut / 255, np.float32)))
    )
    t, x, b, r = (round(edge * larger) for edge in (top - first, left - start, bottom - first, right - start))
    upright = View(local, (t, x, b, r))
    return [
        *(replace(upright, pixels=bright).turned(times) for times in ((1, 3) if b - t > r - x else (0, 2))),
        upright,
    ]


def answer_of(views: Sequence[View], lines: Sequence[Sequence[Line]]) -> Answer:
    """What the lines say that were found in each view of one place."""
    found = [_again(view.box, seen) for view, seen in zip(views, lines, strict=True)]
    if sum(score >= AGAIN and share >= HALF for score, share in found) * 2 > len(views):
        return Answer.TEXT
    return Answer.NONE if all(score < NOTHING for score, _ in found) else Answer.OPEN


def settled(hits: Sequence[Hit], doubts: Sequence[Doubt], answers: Sequence[Answer]) -> Iterator[Hit]:
    """Hits of a picture with what became of its doubtful lines. A line whose answer is open stays what it was."""
    gone = set()
    for doubt, answer in zip(doubts, answers, strict=True):
        if answer is not Answer.OPEN:
            gone |= set(doubt.places)
        if answer is Answer.TEXT:
            yield from (Hit(place, Kind.TEXT, doubt.score) for place in doubt.places)
    yield from (hit for hit in hits if hit.place not in gone)


def _stretched(cut: Bytes) -> Bytes:
    low, high = np.percentile(cut, (DARKEST, LIGHTEST))
    shades = (cut.astype(np.float32) - low) * (255 / max(float(high - low), 1.0))
    return np.asarray(np.clip(shades, 0, 255), np.uint8)


def _again(box: Place, lines: Sequence[Line]) -> tuple[float, float]:
    """How clearly a line is seen again (0 to 1), and which share of it."""
    places = []
    best = 0.0
    for line in lines:
        top, left, bottom, right = (max(0, round(edge)) for edge in line.extent)
        place = top, left, bottom, right
        if covered_share(box, [place]) > MEETS:
            best = max(best, line.score)
            if line.score >= NOTHING:
                places.append(place)
    return best, covered_share(box, places)
