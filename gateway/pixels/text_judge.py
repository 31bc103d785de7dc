"""What a line is: text, a word of the header, something that everybody has on screen, or what somebody must look at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.pixels.text_engine import Line
from gateway.pixels.text_ground import Place
from gateway.pixels.text_words import MIN_FUZZY, MIN_HINT, Hints, Kept, folded

SURE, SURE_ONE = 0.5, 0.8  # a line, or a single sign, seen so clearly that it is text when it can be read
READ_ONE, READ_TWO, READ = 0.9, 0.8, 0.6  # how well one sign, two signs and more must be read: blobs look like O and 8
CLEAR, HALF_READ = 0.85, 0.4  # seen so clearly, a long line is text in a script that the recogniser lacks
DOUBTFUL, HARDLY_READ = 0.7, 0.35  # somebody must look at such a line
CERTAIN = 0.8  # how well a line must be read to be kept
ALONE_LONG, DOUBTFUL_LONG = 2.5, 2.5  # times as long as high
HIGH, HIGH_PX = 0.12, 32  # of the picture's side, and at least: higher print must be read well and have several signs


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
        if min(line.sides) > most_high(side):
            return None
        if signs < 2:
            return None
        if line.score >= CLEAR and sure >= HALF_READ and signs > 2 and long >= ALONE_LONG:
            return Kind.TEXT
        if line.score >= DOUBTFUL and sure >= HARDLY_READ and long >= DOUBTFUL_LONG:
            return Kind.UNCERTAIN
        return None


def _is_read(signs: int, sure: float, line: Line, side: float) -> bool:
    if min(line.sides) > most_high(side):
        return signs > 3 and sure >= READ_TWO
    return signs > 0 and sure >= {1: READ_ONE, 2: READ_TWO}.get(signs, READ)


def most_high(side: float) -> float:
    """Of a line, in pixels, that needs not be read well."""
    return max(HIGH * side, HIGH_PX)
