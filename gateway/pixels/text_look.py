"""One picture, looked at twice: as a viewer shows it, then once more with what was found filled in.

The second look is at local contrast, so that faint text and the ends of lines come out; what it finds beside a line is
the rest of that line. It is the check of the redaction as well: what is covered cannot be found again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_boxes import continues, covered_share, gap_of, on_known, places_of
from gateway.pixels.text_ends import drawn_out
from gateway.pixels.text_engine import Engine, Line
from gateway.pixels.text_ground import LOCAL_FLOOR, Place, blended, is_solid, local_contrast
from gateway.pixels.text_judge import CLEAR, HALF_READ, READ, SURE, Hit, Judge, Kind, most_high
from gateway.pixels.text_opinion import second_opinion
from gateway.pixels.text_reach import reached
from gateway.pixels.text_sheet import ReadLine, read_lines
from gateway.pixels.text_words import MIN_FUZZY, folded

Bytes = NDArray[np.uint8]

FLOOR = 0.3  # of the detector: below is nothing
UNREAD, UNREAD_LONG = 0.8, 4.0  # seen so clearly and times as long as high, somebody must look at a line
BRIDGE_STRENGTH, BRIDGED = 0.75, 0.6  # of a gap in a line, for that of its parts; share that is no gap any more
REST, SEEN, FEW_SIGNS = 0.2, 0.6, 2  # how well the rest of a line must be read, or seen; so few signs may be blobs
REST_LONG = 1.6  # times as long as high: more than a sign or two must be read half as well as a line of its own
SIGNS, SIGN = 5, 0.85  # so many signs of whatever script, so surely seen, are a line
SIDE_PX, MIN_SCALE, MAX_SCALE = 1024, 0.75, 2.0
ASK_LONG, OPINION, OPINION_SIGNS = 2.0, 0.75, 4  # which lines tesseract is asked about, and when it is believed
NOISE_FLOOR = 0.002  # of the range: deep pixels show less than 8 bits can


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
    return completed([*first, *second], picture, values, floor, engine)


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
) -> list[list[Hit]]:
    """Lines of each picture (rows, columns, 3), all in one pass where they fit on one sheet. `known` is what was found
    in each before and is covered now, None for what is looked at as it shows; `side` is that of a square as large as
    the frame that they are cut out of.
    """
    found = []
    for at, (picture, lines) in enumerate(zip(pictures, read_lines(pictures, engine, scale, FLOOR), strict=True)):
        area = side or float(np.sqrt(picture.shape[0] * picture.shape[1]))
        before = known[at] if known else None
        seen = [_seen(line, picture.shape, engine, judge, area, before) for line in lines]
        found.append(_joined(seen, before))
    return found


@dataclass(frozen=True, slots=True)
class _Seen:
    """A line that was judged by itself."""

    places: list[Place]
    kind: Kind | None
    score: float
    sure: float
    long: float  # times as long as high

    def may_be_rest(self, seen: float) -> bool:
        """Whether this is text where a line goes on. `seen` is how clearly one must be seen that is not read."""
        if self.kind not in (None, Kind.UNCERTAIN) or (self.long > REST_LONG and self.sure < HALF_READ):
            return False
        return self.sure >= REST or self.score >= seen


def _seen(
    read: ReadLine, shape: tuple[int, ...], engine: Engine, judge: Judge, side: float, known: Sequence[Hit] | None
) -> _Seen:
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
        if kind is Kind.UNCERTAIN and _has_signs(read, engine):
            kind = Kind.TEXT
        if known is not None and kind is Kind.UNCERTAIN and line.score < CLEAR:
            kind = None  # local contrast makes lines of what is none
    if kind is Kind.TEXT and len(folded(read.text)) == 1 and is_solid(read.cut_out()):
        kind = None
    long = max(line.sides) / max(1.0, min(line.sides))
    return _Seen(places_of(line, shape), kind, round(line.score, 3), sure, long)


def _joined(lines: Sequence[_Seen], known: Sequence[Hit] | None) -> list[Hit]:
    """Lines as hits. What goes on where text ends is the rest of it, a sign or two that alone would be nothing."""
    hits = [Hit(place, one.kind, one.score) for one in lines if one.kind is not None for place in one.places]
    text = [hit.place for hit in (*(known or ()), *hits) if hit.kind in (Kind.TEXT, Kind.HINT)]
    least = SEEN if known is None else CLEAR  # local contrast makes much of little
    open_ = [one for one in lines if one.may_be_rest(least)]
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
    return max(line.sides) >= long * min(line.sides) and min(line.sides) <= most_high(side)


def _has_signs(read: ReadLine, engine: Engine) -> bool:
    """Whether the recogniser sees signs in a line, of a script that it need not know."""
    upright = read.cut_out()
    for picture in (upright, np.rot90(upright, 2).copy()):
        sure = [sign.sure for sign in engine.signs(picture)]
        if len(sure) >= SIGNS and sum(sure) >= SIGN * len(sure):
            return True
    return False


def _asked(read: ReadLine, kind: Kind | None, judge: Judge, side: float) -> Kind | None:
    """What tesseract says of a line that is doubtful, or that the recogniser made nothing of."""
    if read.line.score < SURE or not _is_long(read.line, ASK_LONG, side):
        return kind
    text, sure = second_opinion(read.cut_out())
    signs = len(folded(text))
    if signs >= MIN_FUZZY and sure >= READ / 2 and judge.hints.in_line(text, MIN_FUZZY):
        return Kind.HINT
    return Kind.TEXT if signs >= OPINION_SIGNS and sure >= OPINION else kind
