"""The tokenizer: an encoded data set as elements and items, each with its byte offsets; nothing is decoded or copied.

PS3.5 chapter 7: explicit and implicit VR, both byte orders, defined and undefined lengths, encapsulated fragments
(A.4), and VR UN (6.2.2: of undefined length, or with a sequence inside, it is implicit VR little endian). It must not
interpret values. Every failure is `Malformed`: the bytes are not a data set.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from gateway.header.dictionary import dictionary

UNDEFINED = 0xFFFFFFFF
ITEM, ITEM_END, SEQUENCE_END = 0xFFFEE000, 0xFFFEE00D, 0xFFFEE0DD
PIXEL_DATA = 0x7FE00010
RELEASE_EVERY_BYTES = 1 << 24  # of fragments that were passed over
MAX_DEPTH = 64  # far beyond any IOD (RTSTRUCT reaches 5); bounds recursion on hostile input

LONG_VRS = frozenset({b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR", b"UT", b"UV"})
SHORT_VRS = frozenset(
    {
        *(b"AE", b"AS", b"AT", b"CS", b"DA", b"DS", b"DT", b"FD", b"FL", b"IS", b"LO", b"LT", b"PN"),
        *(b"SH", b"SL", b"SS", b"ST", b"TM", b"UI", b"UL", b"US"),
    }
)
BULK_VRS = frozenset({"OB", "OD", "OF", "OL", "OV", "OW"})
KNOWN_VRS = LONG_VRS | SHORT_VRS
VR_NAMES = {vr: vr.decode("ascii") for vr in KNOWN_VRS}

Buffer = bytes | memoryview


class Malformed(Exception):
    """These bytes are not a well-formed data set. Carries no text: a message would quote what was read."""


class Syntax(NamedTuple):
    """How a data set is encoded: the part of a transfer syntax that elements depend on."""

    implicit: bool
    big: bool = False


IMPLICIT_LITTLE = Syntax(implicit=True)
EXPLICIT_LITTLE = Syntax(implicit=False)
EXPLICIT_BIG = Syntax(implicit=False, big=True)


class Item(NamedTuple):
    """One item of a sequence: header at `head`, contents [start, end), whole [head, stop)."""

    head: int
    start: int
    end: int
    stop: int
    undefined: bool
    elements: tuple[Element, ...] | None  # read already, when the length is undefined
    syntax: Syntax


class Element(NamedTuple):
    """One data element: header at `head`, value [start, end), whole [head, stop). `vr` is "" in implicit VR."""

    tag: int
    vr: str
    head: int
    start: int
    end: int
    stop: int
    undefined: bool
    items: tuple[Item, ...] | None  # read already, when the length is undefined and it is a sequence


_UNPACK = {
    big: tuple(struct.Struct(("> " if big else "< ") + form).unpack_from for form in ("HH", "H", "I", "HHI"))
    for big in (False, True)
}


class Reader:
    """Reads elements of one encoding out of one buffer. Holds no position: every call says where.

    `release` lets go of the pages of a mapped buffer that were looked at, so that a long walk stays small.
    """

    def __init__(self, buffer: Buffer, syntax: Syntax, release: Callable[[], None] | None = None) -> None:
        self.buffer = buffer
        self.syntax = syntax
        self._release = release
        self._tag, self._u16, self._u32, self._tag_u32 = _UNPACK[syntax.big]
        self._implicit_little: Reader | None = self if syntax == IMPLICIT_LITTLE else None

    def elements(self, start: int, end: int, depth: int = 0) -> list[Element]:
        """All elements of [start, end). Raises Malformed when they do not end exactly at `end`."""
        found = []
        position = start
        while position < end:
            element = self.element(position, end, depth)
            found.append(element)
            position = element.stop
        return found

    def element(self, position: int, limit: int, depth: int = 0) -> Element:
        """The element whose header is at `position` and that must end by `limit`. Raises Malformed."""
        if limit - position < 8 or depth > MAX_DEPTH:
            raise Malformed
        if self.syntax.implicit:
            group, number, length = self._tag_u32(self.buffer, position)
            vr, start = "", position + 8
            if length > 0xFFFF and length != UNDEFINED and self._looks_explicit(group << 16 | number, position):
                raise Malformed
        else:
            group, number = self._tag(self.buffer, position)
            code = bytes(self.buffer[position + 4 : position + 6])
            if code in SHORT_VRS:
                length, start = self._u16(self.buffer, position + 6)[0], position + 8
            elif code in LONG_VRS and limit - position >= 12:
                length, start = self._u32(self.buffer, position + 8)[0], position + 12
            else:
                raise Malformed
            vr = VR_NAMES[code]
        if group == 0xFFFE:
            raise Malformed
        tag = group << 16 | number
        if length != UNDEFINED:
            if length > limit - start:
                raise Malformed
            return Element(tag, vr, position, start, start + length, start + length, False, None)
        return self._undefined(tag, vr, position, start, limit, depth)

    def _looks_explicit(self, tag: int, position: int) -> bool:
        """True when the length field of an implicit element spells a VR: the data set is encoded otherwise than said.

        Taken at its word, the "length" would swallow the elements behind it, names included, into one kept value.
        """
        if bytes(self.buffer[position + 4 : position + 6]) not in KNOWN_VRS:
            return False
        entry = dictionary().get(tag)
        return entry is None or not set(entry.vr.split(" or ")) & BULK_VRS

    def _undefined(self, tag: int, vr: str, head: int, start: int, limit: int, depth: int) -> Element:
        """A sequence or encapsulated pixel data, up to its Sequence Delimitation Item (PS3.5 7.5, A.4)."""
        if vr in ("", "SQ") and tag != PIXEL_DATA:
            items = self.items(start, limit, depth, delimited=True)
        elif vr == "UN":
            items = self._items_of_unknown(start, limit, depth)
        else:
            end = self._fragments(start, limit)
            return Element(tag, vr, head, start, end, end + 8, True, None)
        end = items[-1].stop if items else start
        return Element(tag, vr, head, start, end, end + 8, True, items)

    def _items_of_unknown(self, start: int, limit: int, depth: int) -> tuple[Item, ...]:
        """UN of undefined length is implicit VR little endian; some writers keep the file's own encoding."""
        try:
            return self.implicit_little.items(start, limit, depth, delimited=True)
        except Malformed:
            if self.syntax == IMPLICIT_LITTLE:
                raise
            return self.items(start, limit, depth, delimited=True)

    @property
    def implicit_little(self) -> Reader:
        """The reader for what is inside a value of VR UN."""
        if self._implicit_little is None:
            self._implicit_little = Reader(self.buffer, IMPLICIT_LITTLE)
        return self._implicit_little

    def items(self, start: int, limit: int, depth: int, *, delimited: bool) -> tuple[Item, ...]:
        """Items of a sequence value: up to `limit` exactly, or to a delimiter before it. Raises Malformed."""
        found: list[Item] = []
        position = start
        while delimited or position < limit:
            if limit - position < 8:
                raise Malformed
            group, number, length = self._tag_u32(self.buffer, position)
            tag = group << 16 | number
            if tag == SEQUENCE_END and delimited:
                return tuple(found)
            if tag != ITEM:
                raise Malformed
            item = self._item(position, length, limit, depth + 1)
            found.append(item)
            position = item.stop
        return tuple(found)

    def _item(self, head: int, length: int, limit: int, depth: int) -> Item:
        start = head + 8
        if length != UNDEFINED:
            if length > limit - start:
                raise Malformed
            return Item(head, start, start + length, start + length, False, None, self.syntax)
        elements: list[Element] = []
        position = start
        while True:
            if limit - position < 8:
                raise Malformed
            group, number, _ = self._tag_u32(self.buffer, position)
            if group << 16 | number == ITEM_END:
                return Item(head, start, position, position + 8, True, tuple(elements), self.syntax)
            element = self.element(position, limit, depth)
            elements.append(element)
            position = element.stop

    def _fragments(self, start: int, limit: int) -> int:
        """Offset of the Sequence Delimitation Item behind encapsulated fragments."""
        position = released = start
        while limit - position >= 8:
            group, number, length = self._tag_u32(self.buffer, position)
            tag = group << 16 | number
            if tag == SEQUENCE_END:
                return position
            if tag != ITEM or length == UNDEFINED or length > limit - position - 8:
                raise Malformed
            position += 8 + length
            if self._release is not None and position - released > RELEASE_EVERY_BYTES:
                self._release()
                released = position
        raise Malformed


def is_sequence(element: Element) -> bool:
    """True when PS3.6, or for want of an entry the file itself, calls the element a sequence."""
    entry = dictionary().get(element.tag)
    return entry.vr == "SQ" if entry is not None else element.vr == "SQ" or element.items is not None
