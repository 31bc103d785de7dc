"""Lines that were found, judged one by one and beside each other: text, the rest of text, nothing, or doubtful."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.pixels.text_boxes import continues, on_known, places_of
from gateway.pixels.text_closer import Doubt
from gateway.pixels.text_engine import Engine, Line
from gateway.pixels.text_ground import Place, is_solid
from gateway.pixels.text_judge import CLEAR, HALF_READ, HIGH_PX, READ, SURE, Hit, Judge, Kind, most_high
from gateway.pixels.text_opinion import second_opinion
from gateway.pixels.text_sheet import ReadLine
from gateway.pixels.text_words import MIN_FUZZY, folded

UNREAD, UNREAD_LONG = 0.8, 4.0  # seen so clearly and times as long as high, somebody must look at a line
REST, SEEN, FEW_SIGNS = 0.2, 0.6, 2  # how well the rest of a line must be read, or seen; so few signs may be blobs
REST_LONG = 1.6  # times as long as high: more than a sign or two must be read half as well as a line of its own
SIGNS, SIGN = 5, 0.85  # so many signs of whatever script, so surely seen, are a line
BLOCK_SIGNS = 3  # well read, of a tall line of a block that is higher than print needs to be
ASK_LONG, OPINION, OPINION_SIGNS = 2.0, 0.75, 4  # which lines tesseract is asked about, and when it is believed
CLOSER, CLOSER_LONG = 0.7, 1.8  # a line seen so clearly, and times as long as high, is looked at closer
FAINT_CLOSER, FAINT_LONG = 0.8, 1.8  # the same at local contrast, which makes lines of what is none
TALL, TALLEST, TALL_LONG = 0.06, 0.1, 2.5  # of the picture's side: what is so high, short or long, and not read


@dataclass(frozen=True, slots=True)
class Seen:
    """A line that was judged by itself."""

    box: Place
    places: list[Place]
    kind: Kind | None
    score: float
    sure: float
    high: float  # in pixels
    long: float  # times as long as high
    doubtful: bool  # somebody must look closer before it is nothing, or before a person must
    tall: bool = False  # closer views alone do not make it text

    def doubt(self) -> Doubt:
        return Doubt(self.box, tuple(self.places), self.score, self.high, self.tall)

    def may_be_rest(self, seen: float) -> bool:
        """Whether this is text where a line goes on. `seen` is how clearly one must be seen that is not read."""
        if self.kind not in (None, Kind.UNCERTAIN) or (self.long > REST_LONG and self.sure < HALF_READ):
            return False
        return self.sure >= REST or self.score >= seen


def line_seen(
    read: ReadLine, shape: tuple[int, ...], engine: Engine, judge: Judge, side: float, known: Sequence[Hit] | None
) -> Seen:
    """What a line of a picture of this shape is by itself. `side` is that of a square as large as the frame; `known` is
    what was found before and is covered now, None at the first look.
    """
    line, sure = read.line, read.sure
    kind = judge.kind(line, read.text, sure, side)
    if kind in (None, Kind.UNCERTAIN):  # a block goes with any line of it
        kinds = {
            judge.kind(part, text, how_sure, side)
            for part, text, how_sure in read.parts
            if min(line.sides) <= most_high(side) or _stands_for_block(part, text, how_sure, judge, side)
        }
        kind = next((one for one in (Kind.HINT, Kind.TEXT) if one in kinds), kind)
    ghost = False
    unclear = kind is Kind.UNCERTAIN or (kind is Kind.TEXT and (sure < READ or len(folded(read.text)) <= FEW_SIGNS))
    if known is not None and unclear and on_known(line, [hit.place for hit in known]):
        kind, ghost = None, True  # what is left beside a covered line looks like one
    elif kind in (None, Kind.UNCERTAIN):
        if known is None and line.score >= UNREAD and _is_long(line, UNREAD_LONG, side):
            kind = Kind.UNCERTAIN  # a script that the recogniser makes nothing of
        kind = _asked(read, kind, judge, side)
        if kind is Kind.UNCERTAIN and _has_signs(read, engine):
            kind = Kind.TEXT
        if known is not None and kind is Kind.UNCERTAIN and line.score < CLEAR:
            kind = None  # local contrast makes lines of what is none
    solid = kind is Kind.TEXT and len(folded(read.text)) == 1 and is_solid(read.cut_out())
    if solid:
        kind = None
    clear, long = (CLOSER, CLOSER_LONG) if known is None else (FAINT_CLOSER, FAINT_LONG)
    doubtful = kind in (None, Kind.UNCERTAIN) and line.score >= clear and _is_long(line, long, side)
    high, times = min(line.sides), max(line.sides) / max(1.0, min(line.sides))
    top, left, bottom, right = (max(0, round(edge)) for edge in line.extent)
    return Seen(
        (top, left, min(bottom, shape[0]), min(right, shape[1])),
        places_of(line, shape),
        kind,
        round(line.score, 3),
        sure,
        high,
        times,
        doubtful and not ghost and not solid,
        high > max(HIGH_PX, (TALL if times < TALL_LONG else TALLEST) * side),
    )


def joined(lines: Sequence[Seen], known: Sequence[Hit] | None) -> list[Hit]:
    """Lines as hits. What goes on where text ends is the rest of it, a sign or two that alone would be nothing."""
    hits = [Hit(place, one.kind, one.score) for one in lines if one.kind is not None for place in one.places]
    text = [hit.place for hit in (*(known or ()), *hits) if hit.kind in (Kind.TEXT, Kind.HINT)]
    rest = beside(lines, text, first=known is None)
    places = {hit.place for hit in rest}
    return [hit for hit in hits if hit.place not in places] + rest


def beside(lines: Sequence[Seen], text: Sequence[Place], *, first: bool) -> list[Hit]:
    """Those of the lines that go on where text ends, and what goes on where these do. `first` where they were seen at
    the first look: local contrast makes much of little.
    """
    open_ = [one for one in lines if one.may_be_rest(SEEN if first else CLEAR)]
    found: list[Hit] = []
    while text:
        rest = [one for one in open_ if any(continues(place, before) for place in one.places for before in text)]
        open_ = [one for one in open_ if one not in rest]
        text = [place for one in rest for place in one.places]
        found += [Hit(place, Kind.TEXT, one.score) for one in rest for place in one.places]
    return found


def _stands_for_block(part: Line, text: str, sure: float, judge: Judge, side: float) -> bool:
    """Whether one line of a block that is higher than print needs to be makes text of all of it: large anatomy has an X
    somewhere, as large as itself.
    """
    if min(part.sides) <= max(HIGH_PX, TALL * side) or judge.kind(part, text, sure, side) is Kind.HINT:
        return True
    return sure >= READ and len(folded(text)) >= BLOCK_SIGNS


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
