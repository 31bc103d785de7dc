"""One picture, looked at twice: as a viewer shows it, then once more with what was found filled in.

The second look is at local contrast, so that faint text and the ends of lines come out; what it finds beside a line is
the rest of that line. It is the check of the redaction as well: what is covered cannot be found again. What may be text
is looked at closer (`text_closer`) on the sheet of the next pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_boxes import covered_share, gap_of
from gateway.pixels.text_closer import Answer, Doubt, View, answer_of, settled, views_of
from gateway.pixels.text_ends import drawn_out
from gateway.pixels.text_engine import Engine
from gateway.pixels.text_ground import LOCAL_FLOOR, Place, blended, local_contrast
from gateway.pixels.text_judge import Hit, Judge, Kind
from gateway.pixels.text_lines import Seen, beside, joined, line_seen
from gateway.pixels.text_reach import reached
from gateway.pixels.text_sheet import read_lines

Bytes = NDArray[np.uint8]

FLOOR = 0.3  # of the detector: below is nothing
BRIDGE_STRENGTH, BRIDGED = 0.75, 0.6  # of a gap in a line, for that of its parts; share that is no gap any more
SIDE_PX, MIN_SCALE, MAX_SCALE = 1024, 0.75, 2.0
NOISE_FLOOR = 0.002  # of the range: deep pixels show less than 8 bits can
MOST_CLOSER = 8  # of a picture, those seen most clearly


@dataclass(frozen=True, slots=True)
class Found:
    """What a pass found in one picture: hits, uncertain ones among them, and what is to be looked at closer. `lines`
    are all that were seen, at the `first` look or a later one.
    """

    hits: list[Hit]
    doubts: list[Doubt]
    lines: list[Seen]
    first: bool

    def settled(self, answers: Sequence[Answer]) -> list[Hit]:
        """Hits once the doubts are answered: what turned out to be text takes along what goes on where it ends."""
        answers = [doubt.answered(said) for doubt, said in zip(self.doubts, answers, strict=True)]
        asked = zip(self.doubts, answers, strict=True)
        text = [place for doubt, said in asked if said is Answer.TEXT for place in doubt.places]
        rest = beside(self.lines, text, first=self.first)
        places = {hit.place for hit in rest}
        hits = settled(self.hits, self.doubts, answers)
        return [hit for hit in hits if hit.place not in places] + rest


def scale_of(shape: tuple[int, ...]) -> float:
    """How much a picture is enlarged for the detector: small print needs it, large films need less."""
    return min(MAX_SCALE, max(MIN_SCALE, SIDE_PX / max(shape[:2])))


def look(
    shown: Bytes, engine: Engine, judge: Judge, *, deep: NDArray[np.float32] | None = None, passes: int = 3
) -> list[Hit]:
    """Every line of a picture (rows, columns) or (rows, columns, 3), in two passes, and a third over what may be faint
    text where there is any and `passes` allows it. `deep`, (rows, columns) in about 0..1, is the picture before it
    became 8 bits: the second look is at that.
    """
    picture = in_colour(shown)
    scale = scale_of(picture.shape)
    (first,), _ = judged([picture], engine, judge, scale)
    values, floor = values_of(picture, deep)
    rest = rest_of(values, first.hits, floor)
    views = [views_of(picture, doubt, scale) for doubt in first.doubts]
    (second,), answers = judged([rest], engine, judge, scale, [first.hits], views=views)
    hits = first.settled(answers)
    second = replace(second, doubts=_undecided(second.doubts, hits) if passes > 2 else [])
    views = [views_of(rest, doubt, scale) for doubt in second.doubts]
    answers = judged([], engine, judge, scale, views=views)[1] if views else []
    return completed([*hits, *second.settled(answers)], picture, values, floor, engine)


def _undecided(doubts: Sequence[Doubt], hits: Sequence[Hit]) -> list[Doubt]:
    """Those that are not text by now."""
    text = [hit.place for hit in hits if hit.kind is not Kind.UNCERTAIN]
    return [doubt for doubt in doubts if covered_share(doubt.box, text) < BRIDGED]


def in_colour(shown: Bytes) -> Bytes:
    """(rows, columns, 3)."""
    return np.repeat(shown[..., None], 3, 2) if shown.ndim == 2 else shown


def values_of(picture: Bytes, deep: NDArray[np.float32] | None = None) -> tuple[NDArray[np.float32], float]:
    """What the second look is at, (rows, columns, channels) in about 0..1, and the contrast that is noise there."""
    if deep is not None:
        return np.asarray(deep[..., None], np.float32), NOISE_FLOOR
    return np.asarray(picture / 255, np.float32), LOCAL_FLOOR


def rest_of(values: NDArray[np.float32], hits: Sequence[Hit], floor: float) -> Bytes:
    """A picture for the second look: what was found is gone, the rest at local contrast."""
    return local_contrast(blended(values, [hit.place for hit in hits]), floor)


def completed(
    hits: Sequence[Hit], picture: Bytes, values: NDArray[np.float32], floor: float, engine: Engine
) -> list[Hit]:
    """Lines of a picture (rows, columns, 3) to their ends, with what lies between their parts."""
    if not hits:
        return []
    shown = picture, local_contrast(values, floor)
    drawn = []
    for hit in hits:
        place = reached(shown, hit.place, engine) if hit.kind in (Kind.TEXT, Kind.HINT) else hit.place
        drawn.append(hit if hit.kind is Kind.KEPT else replace(hit, place=drawn_out(values, place)))
    return drawn + list(_bridges(drawn, values))


def _bridges(hits: Sequence[Hit], values: NDArray[np.float32]) -> Iterator[Hit]:
    """What lies between two parts of one line and has strokes as they have: a word that was not seen by itself."""
    text = [hit for hit in hits if hit.kind in (Kind.TEXT, Kind.HINT)]
    places = [hit.place for hit in text]
    for one in text:
        for other in text:
            gap = gap_of(one.place, other.place)
            if gap is None or covered_share(gap, places) >= BRIDGED:
                continue
            least = min(_strength(values, one.place), _strength(values, other.place))
            if _strength(values, gap) >= BRIDGE_STRENGTH * least:
                yield Hit(gap, Kind.TEXT, min(one.score, other.score))


def _strength(values: NDArray[np.float32], place: Place) -> float:
    """Spread of what is left of a place without its ground."""
    import cv2

    window = values[place[0] : place[2], place[1] : place[3]].mean(2)
    return float((window - cv2.blur(window, (11, 11))).std())


def judged(
    pictures: Sequence[Bytes],
    engine: Engine,
    judge: Judge,
    scale: float,
    known: Sequence[Sequence[Hit] | None] = (),
    side: float = 0.0,
    views: Sequence[Sequence[View]] = (),
) -> tuple[list[Found], list[Answer]]:
    """Lines of each picture (rows, columns, 3), and what becomes of each place of which there are views, in one pass
    where they fit on one sheet. `known` is what was found in each picture before and is covered now, None for what is
    looked at as it shows; `side` is that of a square as large as the frame that they are cut out of.
    """
    every = [*pictures, *(view.pixels for place in views for view in place)]
    read = read_lines(every, engine, scale, FLOOR)
    found = []
    for at, (picture, lines) in enumerate(zip(pictures, read, strict=False)):
        area = side or float(np.sqrt(picture.shape[0] * picture.shape[1]))
        before = known[at] if known else None
        seen = [line_seen(line, picture.shape, engine, judge, area, before) for line in lines]
        hits = joined(seen, before)
        doubts = _undecided([one.doubt() for one in seen if one.doubtful], hits)
        doubts = sorted(doubts, key=lambda one: -one.score)[:MOST_CLOSER]
        found.append(Found(hits, doubts, seen, first=before is None))
    again = iter(read[len(pictures) :])
    return found, [answer_of(place, [[one.line for one in next(again)] for _ in place]) for place in views]
