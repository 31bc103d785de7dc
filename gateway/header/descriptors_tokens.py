"""Where the words of a text begin and end: letters and digits of every script, with the marks that belong to them."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARKS = (
    "\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200b-\u200d\u2060\ufeff"
)
_TOKEN = re.compile(rf"(?:[^\W_]+|[{_MARKS}]+)+")
_ASCII_TOKEN = re.compile("[A-Za-z0-9]+")
_new = tuple.__new__  # a named tuple's own is twice as slow
Span = tuple[int, int]


class Token(NamedTuple):
    """A run of letters and digits with its place in the text."""

    start: int
    end: int
    text: str


class Trait(NamedTuple):
    """What a token is to an object: a strong name or number of it, a weak part of these names, one of their initials.

    And what it may begin: one of its numbers, one of its phrases, one of its names written `apart`; `date` is what it
    may be in one of its days.
    """

    strong: bool = False
    weak: frozenset[int] = frozenset()
    initial: bool = False
    number: bool = False
    phrase: bool = False
    apart: bool = False
    date: int | None = None


NO_TRAIT = Trait()


def tokens_of(text: str) -> list[Token]:
    pattern = _ASCII_TOKEN if text.isascii() else _TOKEN
    return [_new(Token, (*match.span(), match[0])) for match in pattern.finditer(text)]
