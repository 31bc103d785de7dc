"""Private blocks (PS3.5 7.8.1): which creator an element belongs to, and creators that stay exactly as long as it does.

A block is reserved by an element (gggg,00bb) whose value is the creator's name; its elements are (gggg,bbee). The
number bb differs from object to object, so nothing here or in the lists depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gateway.header.elements import Element, Reader
from gateway.header.pieces import Pieces

FIRST_ELEMENT = 0x1000
MAX_CREATOR_BYTES = 64


class Outcome(NamedTuple):
    """What became of the elements of a private group: how many stay (creators not counted), how many went."""

    kept: int
    removed: int
    changed: bool


def creators_of(run: Sequence[Element], reader: Reader) -> Mapping[int, str]:
    """Creator by block number. A reservation that is not plain text, or comes twice, reserves nothing."""
    found: dict[int, str] = {}
    twice = set()
    for element in run:
        block = element.tag & 0xFFFF
        if not 0x10 <= block <= 0xFF or element.vr not in ("", "LO", "UN") or element.undefined:
            continue
        if element.end - element.start > MAX_CREATOR_BYTES:
            continue
        name = bytes(reader.buffer[element.start : element.end]).decode("latin-1").strip(" \0")
        if block in found:
            twice.add(block)
        if name.isprintable() and name.isascii() and name:
            found[block] = name
    return {block: name for block, name in found.items() if block not in twice}


def write_run(
    run: Sequence[Element],
    reader: Reader,
    pieces: Pieces,
    body: Pieces,
    write: Callable[[Element, str, Pieces], bool],
) -> Outcome:
    """Write the elements of one private group to `pieces`; `body` is empty and of the same input.

    `write` puts what stays of an element into what it is given, and says whether that is not what came.
    """
    creators = creators_of(run, reader)
    used: set[int] = set()
    kept = removed = 0
    changed = False
    for element in run:
        if element.tag & 0xFFFF < FIRST_ELEMENT:
            continue
        block = element.tag >> 8 & 0xFF
        before = body.size
        if block in creators:
            changed |= write(element, creators[block], body)
        if body.size > before:
            kept += 1
            used.add(block)
        else:
            removed += 1
    for element in run:
        if element.tag & 0xFFFF in used:
            pieces.keep(element.head, element.stop)
        elif element.tag & 0xFFFF < FIRST_ELEMENT:
            removed += 1
    pieces.take(body)
    return Outcome(kept, removed, changed or bool(removed))
