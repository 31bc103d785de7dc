"""One picture, looked at twice: as a viewer shows it, then once more with what was found filled in.

The second look is at local contrast, so that faint text and the ends of lines come out; what it finds beside a line is
the rest of that line. It is the check of the redaction as well: what is covered cannot be found again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_boxes import continues, covered_share, gap_of, on_known, places_of
from gateway.pixels.text_ends import drawn_out
from gateway.pixels.text_engine import Engine, Line
from gateway.pixels.text_ground import LOCAL_FLOOR, Place, blended, local_contrast
from gateway.pixels.text_opinion import second_opinion
from gateway.pixels.text_sheet import ReadLine, read_lines
from gateway.pixels.text_words import MIN_FUZZY, MIN_HINT, Hints, Kept, folded

Bytes = NDArray[np.uint8]

FLOOR = 0.3  # of the detector: below is nothing
SURE, SURE_ONE = 0.5, 0.8  # a line, or a single sign, seen so clearly that it is text when it can be read
READ_ONE, READ_TWO, READ = 0.9, 0.8, 0.6  # how well one sign, two signs and more must be read: blobs look like O and 8
CLEAR, HALF_READ = 0.85, 0.4  # seen so clearly, a long line is text in a script that the recogniser lacks
DOUBTFUL, HARDLY_READ, UNREAD = 0.7, 0.35, 0.8  # somebody must look at such a line
CERTAIN = 0.8  # how well a line must be read to be kept
ALONE_LONG, DOUBTFUL_LONG, UNREAD_LONG = 2.5, 2.5, 4.0  # times as long as high
BRIDGE_STRENGTH, BRIDGED = 0.75, 0.6  # of a gap in a line, for that of its parts; share that is no gap any more
HIGH, HIGH_PX = 0.12, 32  # of the picture's side, and at least: higher print must be read well and have several signs
REST, SEEN, FEW_SIGNS = 0.2, 0.6, 2  # how well the rest of a line must be read, or seen; so few signs may be blobs
SIDE_PX, MIN_SCALE, MAX_SCALE = 1024, 0.75, 2.0
ASK_LONG, OPINION, OPINION_SIGNS = 2.0, 0.75, 4  # which lines tesseract is asked about, and when it is believed
NOISE_FLOOR = 0.002  # of the range: deep pixels show less than 8 bits can


class Kind(StrEnum):
    """What a line is."""

    TEXT = "text"
    HINT = "hint"  # a word of the header
    KEPT = "kept"  # read well, and everybody has it
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class Hit:
    """One line: where (with the margin that covers its glyphs and shadows), what, and how sure the detector is."""

    place: Place
    kind: Kind
    score: float


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides what a line is. `keep` is None where all text goes."""

    hints: Hints
    keep: Kept | None = None

    def kind(self, line: Line, text: str, sure: float, side: float) -> Kind | None:
        """None for what is no text. `side` is that of a square as large as the picture."""
        if sure >= READ / 2 and self.hints.in_line(text, MIN_HINT if sure >= READ else MIN_FUZZY):
            return Kind.HINT
        signs = len(folded(text))
        if line.score >= (SURE if signs > 1 else SURE_ONE) and _is_read(signs, sure, line, side):
            if self.keep is not None and sure >= CERTAIN and self.keep.covers(text, self.hints):
                return Kind.KEPT
            return Kind.TEXT
        long = max(line.sides) / max(1.0, min(line.sides))
        if min(line.sides) > _most_high(side):
            return None
        if signs < 2:
            return None
        if line.score >= CLEAR and sure >= HALF_READ and signs > 2 and long >= ALONE_LONG:
            return Kind.TEXT
        if line.score >= DOUBTFUL and sure >= HARDLY_READ and long >= DOUBTFUL_LONG:
            return Kind.UNCERTAIN
        return None


def _is_read(signs: int, sure: float, line: Line, side: float) -> bool:
    if min(line.sides) > _most_high(side):
        return signs > 3 and sure >= READ_TWO
    return signs > 0 and sure >= {1: READ_ONE, 2: READ_TWO}.get(signs, READ)


def _most_high(side: float) -> float:
    return max(HIGH * side, HIGH_PX)


def scale_of(shape: tuple[int, ...]) -> float:
    """How much a picture is enlarged for the detector: small print needs it, large films need less."""
    return min(MAX_SCALE, max(MIN_SCALE, SIDE_PX / max(shape[:2])))


def look(shown: Bytes, engine: Engine, judge: Judge, *, deep: NDArray[np.float32] | None = None) -> list[Hit]:
    """Every line of a picture (rows, columns) or (rows, columns, 3), in two passes. `deep`, (rows, columns) in about
    0..1, is the picture before it became 8 bits: the second look is at that.
    """
    picture = in_colour(shown)
    scale = scale_of(picture.shape)
    (first,) = judged([picture], engine, judge, scale)
    values, floor = values_of(picture, deep)
    (second,) = judged([rest_of(values, first, floor)], engine, judge, scale, [first])
    return completed([*first, *second], values)


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


def completed(hits: Sequence[Hit], values: NDArray[np.float32]) -> list[Hit]:
    """Lines to their ends, with what lies between their parts."""
    drawn = [hit if hit.kind is Kind.KEPT else replace(hit, place=drawn_out(values, hit.place)) for hit in hits]
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
) -> list[list[Hit]]:
    """Lines of each picture (rows, columns, 3), all in one pass where they fit on one sheet. `known` is what was found
    in each before and is covered now, None for what is looked at as it shows; `side` is that of a square as large as
    the frame that they are cut out of.
    """
    found = []
    for at, (picture, lines) in enumerate(zip(pictures, read_lines(pictures, engine, scale, FLOOR), strict=True)):
        area = side or float(np.sqrt(picture.shape[0] * picture.shape[1]))
        before = known[at] if known else None
        found.append(_joined([_seen(line, picture.shape, judge, area, before) for line in lines], before))
    return found


@dataclass(frozen=True, slots=True)
class _Seen:
    """A line that was judged by itself."""

    places: list[Place]
    kind: Kind | None
    score: float
    sure: float


def _seen(read: ReadLine, shape: tuple[int, ...], judge: Judge, side: float, known: Sequence[Hit] | None) -> _Seen:
    line, sure = read.line, read.sure
    kind = judge.kind(line, read.text, sure, side)
    if kind in (None, Kind.UNCERTAIN):  # a block goes with any line of it
        kinds = {judge.kind(part, text, how_sure, side) for part, text, how_sure in read.parts}
        kind = next((one for one in (Kind.HINT, Kind.TEXT) if one in kinds), kind)
    unclear = kind is Kind.UNCERTAIN or (kind is Kind.TEXT and (sure < READ or len(folded(read.text)) <= FEW_SIGNS))
    if known is not None and unclear and on_known(line, [hit.place for hit in known]):
        kind = None  # what is left beside a covered line looks like one
    elif kind in (None, Kind.UNCERTAIN):
        if known is None and line.score >= UNREAD and _is_long(line, UNREAD_LONG, side):
            kind = Kind.UNCERTAIN  # a script that the recogniser makes nothing of
        kind = _asked(read, kind, judge, side)
        if known is not None and kind is Kind.UNCERTAIN and line.score < CLEAR:
            kind = None  # local contrast makes lines of what is none
    return _Seen(places_of(line, shape), kind, round(line.score, 3), sure)


def _joined(lines: Sequence[_Seen], known: Sequence[Hit] | None) -> list[Hit]:
    """Lines as hits. What goes on where text ends is the rest of it, a sign or two that alone would be nothing."""
    hits = [Hit(place, one.kind, one.score) for one in lines if one.kind is not None for place in one.places]
    text = [hit.place for hit in (*(known or ()), *hits) if hit.kind in (Kind.TEXT, Kind.HINT)]
    least = SEEN if known is None else CLEAR  # local contrast makes much of little
    open_ = [one for one in lines if one.kind in (None, Kind.UNCERTAIN) and (one.sure >= REST or one.score >= least)]
    while True:
        rest = [one for one in open_ if any(continues(place, before) for place in one.places for before in text)]
        if not rest:
            return hits
        open_ = [one for one in open_ if one not in rest]
        places = [place for one in rest for place in one.places]
        hits = [hit for hit in hits if hit.place not in places]
        hits += [Hit(place, Kind.TEXT, one.score) for one in rest for place in one.places]
        text = places


def _is_long(line: Line, long: float, side: float) -> bool:
    return max(line.sides) >= long * min(line.sides) and min(line.sides) <= _most_high(side)


def _asked(read: ReadLine, kind: Kind | None, judge: Judge, side: float) -> Kind | None:
    """What tesseract says of a line that is doubtful, or that the recogniser made nothing of."""
    if read.line.score < SURE or not _is_long(read.line, ASK_LONG, side):
        return kind
    text, sure = second_opinion(read.cut_out())
    signs = len(folded(text))
    if signs >= MIN_FUZZY and sure >= READ / 2 and judge.hints.in_line(text, MIN_FUZZY):
        return Kind.HINT
    return Kind.TEXT if signs >= OPINION_SIGNS and sure >= OPINION else kind
