"""What was read in a picture: a technical mark, text, or somebody's.

Text is a finding unless all of it stands in `text_marks.txt`, in the policy's `allow`, or is a number of a scale or an
exposure. Words of the original's header (names, numbers, dates) are looked for first and with errors of reading: what
the header and the picture both say is certain, however badly it was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gateway.gate.attributes import Kind
from gateway.gate.folding import fold
from gateway.gate.terms import Term, Terms

MARKS = Path(__file__).with_name("text_marks.txt")
MIN_LETTERS = 2  # a single character says nothing, and texture is full of them
EXACT_LETTERS, ONE_ERROR_LETTERS, TWO_ERRORS_LETTERS = 4, 6, 9
_SOUGHT = frozenset({Kind.NAME, Kind.ID, Kind.BIRTH, Kind.DATE, Kind.PHONE, Kind.ADDRESS, Kind.PLACE, Kind.DEVICE})
_LOOKALIKES = bytes.maketrans(b"oqdilzsbg", b"000112589")  # what readers take for each other
_SCALE = re.compile(r"[+\-±~<>=x]?\d{1,3}(?:[.,]\d{1,2})?(?:[x×/:]\d{1,3}(?:[.,]\d{1,2})?)?")
_MEASURE = re.compile(r"[+\-±]?\d{1,5}(?:[.,]\d{1,3})?(?P<unit>[^\W\d_][^\W\d_/²2]*(?:/[a-z]+|²|2)?|%|°|\")")
_LABELLED = re.compile(r"(?P<label>[^\W\d_]{1,8})[:=.]?\s*[+\-]?\d{1,4}(?:[.,]\d{1,3})?(?P<unit>[^\W\d_]{0,4}|%|°)")
_GLUED = re.compile(r"\d+(?:[.,]\d+)?|[^\W\d_]+|[^\w\s]")
_MONTHS = "jan|feb|mar|mär|mrz|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|fév|fev|avr|aoû|aou|déc|ene|abr|ago|dic"
_DATE = re.compile(rf"\d{{1,4}}[./\-\s]*(?:[./\-\s]\d{{1,2}}|(?:{_MONTHS})[a-zéûä]{{0,7}})[./\-\s]+\d{{2,4}}")
_TIME = re.compile(r"\d{1,2}[:.]\d{2}[:.]\d{2}|\d{1,2}:\d{2}\s*(?:am|pm|uhr)")
_EDGES = " .,;:!?'\"`´~_-–—=|/\\()[]{}<>*#+•·"


@cache
def marks() -> frozenset[str]:
    """The words of `text_marks.txt`."""
    lines = MARKS.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def is_technical(text: str, allow: frozenset[str] = frozenset()) -> bool:
    """True when every word is a mark, a number of a scale, or in `allow` (lower case)."""
    low = text.casefold().strip()
    if _DATE.search(low) or _TIME.search(low):
        return False
    words = [word.strip(_EDGES) for word in low.split()]
    return all(_stands(word, allow) for word in words if word)


def _stands(word: str, allow: frozenset[str]) -> bool:
    known = marks()
    if word in known or word in allow or _SCALE.fullmatch(word):
        return True
    measure = _MEASURE.fullmatch(word)
    if measure:
        unit = measure["unit"]
        return unit in known or unit in allow or unit in ("%", "°", '"')
    labelled = _LABELLED.fullmatch(word)
    if labelled:
        label, unit = labelled["label"], labelled["unit"]
        return (label in known or label in allow) and (not unit or unit in known or unit in ("%", "°"))
    parts = [part for part in re.split(r"[/\-:=.,_()\[\]<>~≤≥]+", word) if part]
    glued = _GLUED.findall(word)  # "120kVp200mA", as readers give it
    return any(
        len(pieces) > 1 and all(piece in known or piece in allow or _SCALE.fullmatch(piece) for piece in pieces)
        for pieces in (parts, glued)
    )


def letters(text: str) -> int:
    """Letters and digits of any script."""
    return sum(char.isalnum() for char in text)


@dataclass(frozen=True, slots=True)
class _Sought:
    compact: bytes
    plain: bytes
    term: Term


class HeaderWords:
    """The identifying words of the originals of a study, asked whether a text that was read holds one of them."""

    def __init__(self, terms: Terms) -> None:
        sought: dict[bytes, _Sought] = {}
        for key, term in terms.folded.items():
            plain = key.replace(b" ", b"")
            if term.kind in _SOUGHT and EXACT_LETTERS <= len(plain) <= 64:
                sought.setdefault(plain, _Sought(plain.translate(_LOOKALIKES), plain, term))
        self._sought = sorted(sought.values(), key=lambda one: (-len(one.plain), one.plain))
        # Short and common names ("Li Ma") count when all of their parts stand there.
        self._whole = [
            (frozenset(key.split()), term)
            for (_, key), term in sorted(terms.whole.items())
            if term.kind is Kind.NAME and b" " in key and len(key) > EXACT_LETTERS
        ]

    def rule_of(self, text: str) -> str:
        """The rule of the word that the text holds, "" when it holds none."""
        folded = fold(text)
        words = frozenset(folded.split())
        line = folded.replace(b" ", b"").translate(_LOOKALIKES)
        for one in self._sought:
            size = len(one.plain)
            if size < ONE_ERROR_LETTERS:
                if one.plain in words:
                    return one.term.rule
            elif _holds(line, one.compact, 1 if size < TWO_ERRORS_LETTERS else 2):
                return one.term.rule
        return next((f"whole {term.rule}" for parts, term in self._whole if parts <= words), "")


def _holds(line: bytes, word: bytes, errors: int) -> bool:
    """True when the word stands in the line with at most so many errors (Sellers 1980)."""
    if len(line) < len(word) - errors:
        return False
    if word in line:
        return True
    row = list(range(len(word) + 1))
    for byte in line:
        corner, row[0] = row[0], 0
        for index, wanted in enumerate(word, 1):
            best = min(corner + (byte != wanted), row[index] + 1, row[index - 1] + 1)
            corner, row[index] = row[index], best
        if row[-1] <= errors:
            return True
    return False


def words_of(allow: Iterable[str]) -> frozenset[str]:
    """The policy's own words, as they are compared."""
    return frozenset(word.casefold().strip() for word in allow)
