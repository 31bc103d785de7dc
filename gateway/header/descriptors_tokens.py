"""Where the words of a text begin and end: letters and digits of every script, with the marks that belong to them."""

from __future__ import annotations

import re
from typing import NamedTuple

TOKEN = re.compile(
    "(?:[^\\W_]|[\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200b-\u200d\u2060\ufeff])+"
)
Span = tuple[int, int]


class Token(NamedTuple):
    """A run of letters and digits with its place in the text."""

    start: int
    end: int
    text: str


def tokens_of(text: str) -> list[Token]:
    return [Token(*match.span(), match[0]) for match in TOKEN.finditer(text)]
