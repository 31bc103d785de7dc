"""What an object says of its person, gathered to be recognised in private text that is about to be kept (cases.md 12).

A private attribute that some list calls safe may still repeat a name, an id, a date or a description that was removed
elsewhere. Its value is then not kept: this module only answers whether that is so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from gateway.header.actions import Act
from gateway.header.dictionary import dictionary, is_private
from gateway.header.elements import Element, Malformed, Reader, is_sequence
from gateway.header.iod import TOP
from gateway.header.items import elements_of, items_of
from gateway.header.plan import Plan

MIN_NAME, MIN_ANYWHERE = 3, 5  # shortest name part; shortest word that counts inside another one
MIN_DIGITS = 4  # of an id; it has as many different characters, or it is one of those that everybody uses
MIN_PHRASE = 8  # a single word of a description is too common below
TEXT = frozenset({"AE", "LO", "LT", "SH", "ST", "UC", "UT", "UR"})
_STAYS = frozenset({Act.KEEP, Act.CLEAN, Act.RECURSE})
_WORD = re.compile(r"[^\W_]+")
_DAY = re.compile(r"(\d{4})[.-]?(\d\d)[.-]?(\d\d)")


def folded(text: str) -> str:
    """Letters and digits in lower case, one space between words and at both ends."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def texts_of(value: bytes) -> set[str]:
    """A value as text, in the two ways that need no declaration."""
    if value.isascii():
        return {value.decode("ascii")}
    found = {value.decode("latin-1")}
    with suppress(UnicodeDecodeError):
        found.add(value.decode("utf-8"))
    return found


def numbers_of(value: bytes) -> set[str]:
    """The whole numbers of a value field, in the forms in which a word may be one of them."""
    numbers = [folded(one) for one in value.decode("latin-1").split("\\") if "." not in one]
    return {form for number in numbers for form in (number, number.rstrip(), number.strip())}


class OwnWords:
    """The identifying words of one object. Raises Malformed for one that cannot be read."""

    def __init__(self, elements: Sequence[Element], reader: Reader, plan: Plan) -> None:
        self._plan = plan
        self._phrases: set[str] = set()  # between spaces
        self._anywhere: set[str] = set()
        self._harvest(elements, reader, TOP, 0)

    def __bool__(self) -> bool:
        return bool(self._phrases or self._anywhere)

    def occur_in(self, value: bytes) -> bool:
        """True when a value field, text or not, holds one of the words."""
        return any(self.stand_in(folded(text)) for text in texts_of(value))

    def stand_in(self, words: str) -> bool:
        """True when a folded text, or one of several with line ends between them, holds one of the words."""
        return any(phrase in words for phrase in self._phrases) or any(word in words for word in self._anywhere)

    def equal(self, value: bytes) -> bool:
        """True when one of the numbers of a value field is one of the words: parts of numbers coincide easily."""
        return self.are_among(numbers_of(value))

    def are_among(self, numbers: AbstractSet[str]) -> bool:
        return not (numbers.isdisjoint(self._phrases) and numbers.isdisjoint(self._anywhere))

    def _harvest(self, elements: Sequence[Element], reader: Reader, parent: int, depth: int) -> None:
        for element in elements:
            if is_private(element.tag):
                continue
            if is_sequence(element):
                try:
                    for item, inner in items_of([element], element.tag, reader, depth):
                        self._harvest(elements_of(item, inner, depth + 1), inner, element.tag, depth + 1)
                except Malformed:
                    continue  # such a sequence is removed or holds the object; its words are those of the others
                continue
            entry = dictionary().get(element.tag)
            if entry is None or element.undefined or self._plan.decide(element.tag, parent).act in _STAYS:
                continue
            value = bytes(reader.buffer[element.start : element.end])
            for text in texts_of(value):
                self._take(entry.vr, text)

    def _take(self, vr: str, text: str) -> None:
        if vr == "PN":
            words = [word for word in _WORD.findall(text.casefold()) if len(word) >= MIN_NAME]
            self._phrases.update(f" {word} " for word in words)
            self._anywhere.update(word for word in words if len(word) >= MIN_ANYWHERE)
        elif vr in ("DA", "DT"):
            for match in _DAY.finditer(text):
                self._phrases.update(_forms(*match.groups()))
        elif vr == "UI":
            self._phrases.update(folded(one) for one in text.split("\\") if len(one) >= MIN_PHRASE)
        elif vr in TEXT:
            for one in text.split("\\"):
                phrase = folded(one)
                if len(phrase) - 2 >= MIN_PHRASE or (" " in phrase.strip() and len(phrase) > MIN_ANYWHERE):
                    self._phrases.add(phrase)
                digits = sum(char.isdigit() for char in phrase)
                if digits >= MIN_DIGITS and " " not in phrase.strip() and len(set(phrase)) > MIN_DIGITS:
                    self._anywhere.add(phrase.strip())


def _forms(year: str, month: str, day: str) -> Iterator[str]:
    yield f" {year}{month}{day}"  # followed by a time, too
    for m in {month, month.lstrip("0")}:
        for d in {day, day.lstrip("0")}:
            yield from (f" {year} {m} {d} ", f" {d} {m} {year} ", f" {m} {d} {year} ")
