"""What may be decided about one item of a sequence as a whole, beside the plan that decides attribute by attribute.

A rule looks at an item's elements and says that the item goes (None), or how certain of its attributes are treated
instead of as the plan says: another decision, or the new value field. Rules belong to sequences whose items say by one
attribute what another one means: content items, key objects, graphic annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from gateway.header.actions import Decision
from gateway.header.elements import Element, Item, Reader

CONTENT_SEQUENCE = 0x0040A730

Override = Decision | bytes
Overrides = Mapping[int, Override]
UNCHANGED: Overrides = {}


class ItemRule(Protocol):
    """`depth` is 1 for an item of a top-level sequence. Raises Hold and Malformed."""

    def __call__(self, elements: Sequence[Element], reader: Reader, depth: int) -> Overrides | None: ...


def value_of(elements: Sequence[Element], tag: int, reader: Reader) -> bytes:
    """The value field of an element of the item, without padding; b"" where there is none."""
    for element in elements:
        if element.tag == tag and not element.undefined:
            return bytes(reader.buffer[element.start : element.end]).strip(b" \0")
    return b""


def items_of(elements: Sequence[Element], tag: int, reader: Reader, depth: int) -> list[tuple[Item, Reader]]:
    """The items of a sequence among `elements`, each with the reader of its own elements. Raises Malformed."""
    for element in elements:
        if element.tag == tag:
            inner = reader.implicit_little if element.vr == "UN" else reader
            items = element.items
            if items is None:
                items = inner.items(element.start, element.end, depth, delimited=False)
            return [(item, inner) for item in items]
    return []


def elements_of(item: Item, reader: Reader, depth: int) -> Sequence[Element]:
    """The elements of an item. Raises Malformed."""
    return item.elements if item.elements is not None else reader.elements(item.start, item.end, depth)
