"""Data elements of an encoded data set, each with its byte offsets (PS3.5 chapter 7); values are not looked at.

Only what a rewriting of the pixel module needs: the top level, and the items below it on demand. Every failure is
`Malformed`: the bytes are not a data set.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from gateway.frames.syntaxes import TransferSyntax

UNDEFINED = 0xFFFFFFFF
ITEM, ITEM_END, SEQUENCE_END = 0xFFFEE000, 0xFFFEE00D, 0xFFFEE0DD
PIXEL_DATA, FLOAT_PIXELS, DOUBLE_PIXELS = 0x7FE00010, 0x7FE00008, 0x7FE00009
MAX_DEPTH = 64

LONG_VRS = frozenset({"OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"})
SHORT_VRS = frozenset(
    {
        *("AE", "AS", "AT", "CS", "DA", "DS", "DT", "FD", "FL", "IS", "LO", "LT", "PN"),
        *("SH", "SL", "SS", "ST", "TM", "UI", "UL", "US"),
    }
)

Buffer = bytes | memoryview


class Malformed(Exception):
    """These bytes are not a well-formed data set. Carries no text: a message would quote what was read."""


class Encoding(NamedTuple):
    """How elements are written: the part of a transfer syntax that concerns the data set."""

    implicit: bool = False
    big: bool = False

    @classmethod
    def of(cls, syntax: TransferSyntax) -> Encoding:
        return cls(syntax.implicit, syntax.big)


class Element(NamedTuple):
    """Header at `head`, value [start, end), whole [head, stop). `vr` is "" in implicit VR; a value of undefined length
    ends before its Sequence Delimitation Item.
    """

    tag: int
    vr: str
    head: int
    start: int
    end: int
    stop: int
    undefined: bool


class Reader:
    """Reads elements of one encoding out of one buffer. Holds no position: every call says where."""

    def __init__(self, buffer: Buffer, encoding: Encoding) -> None:
        self.buffer = buffer
        self.encoding = encoding
        order = ">" if encoding.big else "<"
        self._u16 = struct.Struct(order + "H").unpack_from
        self._u32 = struct.Struct(order + "I").unpack_from
        self._head = struct.Struct(order + "HHI").unpack_from

    def elements(self, start: int, end: int, depth: int = 0) -> Iterator[Element]:
        """All elements of [start, end). Raises Malformed when they do not end exactly at `end`."""
        position = start
        while position < end:
            element = self.element(position, end, depth)
            yield element
            position = element.stop

    def element(self, head: int, limit: int, depth: int = 0) -> Element:
        """The element whose header is at `head` and that must end by `limit`. Raises Malformed."""
        if limit - head < 8 or depth > MAX_DEPTH:
            raise Malformed
        group, number, length = self._head(self.buffer, head)
        tag, vr, start = group << 16 | number, "", head + 8
        if group == 0xFFFE:
            raise Malformed
        if not self.encoding.implicit:
            vr = bytes(self.buffer[head + 4 : head + 6]).decode("latin-1")
            if vr in SHORT_VRS:
                length = self._u16(self.buffer, head + 6)[0]
            elif vr in LONG_VRS and limit - head >= 12:
                length, start = self._u32(self.buffer, head + 8)[0], head + 12
            else:
                raise Malformed
        if length != UNDEFINED:
            if length > limit - start:
                raise Malformed
            return Element(tag, vr, head, start, start + length, start + length, undefined=False)
        end = self._delimiter(tag, vr, start, limit, depth)
        return Element(tag, vr, head, start, end, end + 8, undefined=True)

    def _delimiter(self, tag: int, vr: str, start: int, limit: int, depth: int) -> int:
        """Offset of the Sequence Delimitation Item that ends a value of undefined length."""
        if tag == PIXEL_DATA and vr in ("", "OB", "OW", "UN"):
            end = start
            for _, end, _ in self.fragments(start, limit):  # noqa: B007 - the last one is the delimiter
                pass
            return end
        if vr == "UN":
            return self.unknown(start, limit, depth)[0]
        if vr not in ("", "SQ"):
            raise Malformed
        return self._end_of_items(start, limit, depth)

    def unknown(self, start: int, limit: int, depth: int) -> tuple[int, Encoding]:
        """Where a UN of undefined length ends and how its items are written: implicit VR little endian (PS3.5 6.2.2),
        though some writers keep the file's own encoding.
        """
        try:
            plain = Encoding(implicit=True)
            return Reader(self.buffer, plain)._end_of_items(start, limit, depth), plain  # noqa: SLF001
        except Malformed:
            return self._end_of_items(start, limit, depth), self.encoding

    def _end_of_items(self, start: int, limit: int, depth: int) -> int:
        end = start
        for _, _, stop in self.items(start, limit, depth, delimited=True):
            end = stop
        return end

    def items(self, start: int, limit: int, depth: int, *, delimited: bool) -> Iterator[tuple[int, int, int]]:
        """(start, end, stop) of each item's contents: up to `limit` exactly, or to a delimiter. Raises Malformed."""
        position = start
        while delimited or position < limit:
            if limit - position < 8:
                raise Malformed
            group, number, length = self._head(self.buffer, position)
            tag = group << 16 | number
            if tag == SEQUENCE_END and delimited:
                return
            if tag != ITEM:
                raise Malformed
            inside = position + 8
            if length != UNDEFINED:
                if length > limit - inside:
                    raise Malformed
                end = stop = inside + length
            else:
                end = self._end_of_item(inside, limit, depth + 1)
                stop = end + 8
            yield inside, end, stop
            position = stop

    def _end_of_item(self, position: int, limit: int, depth: int) -> int:
        while True:
            if limit - position < 8:
                raise Malformed
            group, number, _ = self._head(self.buffer, position)
            if group << 16 | number == ITEM_END:
                return position
            position = self.element(position, limit, depth).stop

    def fragments(self, start: int, limit: int) -> Iterator[tuple[int, int, int]]:
        """(head, start, end) of each fragment, the offset table first; last the delimiter, as (-1, its offset, -1)."""
        position = start
        while limit - position >= 8:
            group, number, length = self._head(self.buffer, position)
            tag = group << 16 | number
            if tag == SEQUENCE_END:
                yield -1, position, -1
                return
            if tag != ITEM or length == UNDEFINED or length > limit - position - 8:
                raise Malformed
            yield position, position + 8, position + 8 + length
            position += 8 + length
        raise Malformed


def header(encoding: Encoding, tag: int, vr: str, length: int) -> bytes:
    """Tag, VR and length of an element. A short VR longer than 65534 bytes becomes UN (PS3.5 6.2.2 note)."""
    order = ">" if encoding.big else "<"
    if encoding.implicit:
        return struct.pack(order + "HHI", tag >> 16, tag & 0xFFFF, length)
    if vr in LONG_VRS or length > 0xFFFE:
        code = vr if vr in LONG_VRS else "UN"
        return struct.pack(order + "HH2sHI", tag >> 16, tag & 0xFFFF, code.encode(), 0, length)
    return struct.pack(order + "HH2sH", tag >> 16, tag & 0xFFFF, vr.encode(), length)


def item_header(encoding: Encoding, tag: int, length: int) -> bytes:
    """Header of an item, of an item's delimiter or of a sequence's delimiter."""
    return struct.pack((">" if encoding.big else "<") + "HHI", tag >> 16, tag & 0xFFFF, length)
