"""Lookup tables in segments (PS3.3 C.7.9.2), expanded: how some devices write the palettes of their pictures.

Discrete and linear segments. An indirect one names its target by an offset that readers take for bytes or for words:
what a picture shows would hang on the reader, so it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

DISCRETE, LINEAR = 0, 1
MOST_ENTRIES = 1 << 16


def expanded(segments: Sequence[int]) -> list[int]:
    """The entries that segments of 8 or 16 bit numbers stand for. Raises ValueError for what is no table."""
    table: list[int] = []
    at = 0
    while at < len(segments) - 1:  # one more number is the pad byte of an odd number of them
        kind, length, rest = segments[at], segments[at + 1], segments[at + 2 :]
        at += 2 + (length if kind == DISCRETE else 1)
        if not length or at > len(segments):
            raise ValueError("a segment is cut off")
        if kind == DISCRETE:
            table.extend(rest[:length])
        elif kind == LINEAR and table:
            first, last = table[-1], rest[0]
            table.extend(round(first + (last - first) * step / length) for step in range(1, length + 1))
        else:
            raise ValueError("no such segment")
        if len(table) > MOST_ENTRIES:
            raise ValueError("more entries than a table has")
    return table
