"""The writer's half of PS3.5 chapter 7: element and item headers in each encoding, values padded to even length."""

from __future__ import annotations

import struct

from gateway.header.elements import ITEM, LONG_VRS, UNDEFINED, Syntax

LONG = frozenset(vr.decode("ascii") for vr in LONG_VRS)
NUL_PADDED = frozenset({"UI", "OB", "UN"})  # PS3.5 6.2: text is padded with a space, these with NUL


def header(syntax: Syntax, tag: int, vr: str, length: int) -> bytes:
    """Tag, VR and length of a data element. A short VR longer than 65534 bytes becomes UN (PS3.5 6.2.2 note)."""
    order = ">" if syntax.big else "<"
    if syntax.implicit:
        return struct.pack(order + "HHI", tag >> 16, tag & 0xFFFF, length)
    if vr in LONG or length > 0xFFFE:
        code = vr if vr in LONG else "UN"
        return struct.pack(order + "HH2sHI", tag >> 16, tag & 0xFFFF, code.encode(), 0, length)
    return struct.pack(order + "HH2sH", tag >> 16, tag & 0xFFFF, vr.encode(), length)


def element(syntax: Syntax, tag: int, vr: str, value: bytes) -> bytes:
    """One whole data element; `value` is padded when its length is odd."""
    if len(value) & 1:
        value += b"\0" if vr in NUL_PADDED else b" "
    return header(syntax, tag, vr, len(value)) + value


def item_header(syntax: Syntax, length: int) -> bytes:
    """Header of an item; `length` may be UNDEFINED."""
    order = ">" if syntax.big else "<"
    return struct.pack(order + "HHI", ITEM >> 16, ITEM & 0xFFFF, length)


def sequence(syntax: Syntax, tag: int, items: list[bytes]) -> bytes:
    """A sequence of defined length from encoded items' contents."""
    body = b"".join(item_header(syntax, len(item)) + item for item in items)
    return header(syntax, tag, "SQ", len(body)) + body


def length_at(syntax: Syntax, vr: str) -> int:
    """Where the length field stands within an element's header, in bytes."""
    return 4 if syntax.implicit else 8 if vr in LONG else 6


__all__ = ["UNDEFINED", "element", "header", "item_header", "length_at", "sequence"]
