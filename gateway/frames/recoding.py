"""A data set from one native encoding to another (PS3.5 7.1, Annex A), element by element, without reading values.

Byte order changes by the width that the VR gives to its words; text is copied. From implicit VR the dictionary tells
the VR, and for what it does not know VR is UN (PS3.5 6.2.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from pydicom.datadict import dictionary_VR

from gateway.errors import Hold
from gateway.frames.elements import (
    ITEM,
    PIXEL_DATA,
    SEQUENCE_END,
    UNDEFINED,
    Buffer,
    Element,
    Encoding,
    Reader,
    header,
    item_header,
)

WORD_BYTES = {
    **dict.fromkeys(("US", "SS", "OW", "AT"), 2),
    **dict.fromkeys(("UL", "SL", "FL", "OF", "OL"), 4),
    **dict.fromkeys(("FD", "OD", "UV", "SV", "OV"), 8),
}
CHUNK_BYTES = 1 << 20  # a multiple of every word
PIXEL_REPRESENTATION = 0x00280103


def is_signed(reader: Reader, elements: Iterable[Element], *, outer: bool = False) -> bool:
    """Pixel Representation of one level, data set or item, or of the one around it: "US or SS" depends on it."""
    for element in elements:
        if element.tag == PIXEL_REPRESENTATION and element.end - element.start == 2:
            return any(reader.buffer[element.start : element.end])
    return outer


def recoded(reader: Reader, element: Element, target: Encoding, *, signed: bool, depth: int = 0) -> Iterator[Buffer]:
    """One element in the encoding `target`. Raises Malformed, and Hold("transcoding_failed")."""
    source = reader.encoding
    vr = element.vr
    if source.implicit or (vr == "UN" and source.big and not element.undefined):
        vr = vr_of(element.tag, signed=signed)
    if vr == "SQ" or (element.undefined and element.tag != PIXEL_DATA):
        yield from _sequence(reader, element, target, signed=signed, depth=depth)
        return
    size, turned = element.end - element.start, source.big is not target.big
    if size % WORD_BYTES.get(vr, 1):
        vr = "UN"  # not what the dictionary says it is
    if vr == "UN" and turned and size:
        raise Hold("transcoding_failed", at=f"{element.tag:08X}: byte order of an unknown value")
    yield header(target, element.tag, vr, size)
    yield from words(reader.buffer, element.start, element.end, WORD_BYTES.get(vr, 1) if turned else 1)


def words(buffer: Buffer, start: int, end: int, width: int) -> Iterator[Buffer]:
    """[start, end) with the bytes of each word of `width` reversed, in pieces."""
    for at in range(start, end, CHUNK_BYTES):
        piece = buffer[at : min(at + CHUNK_BYTES, end)]
        yield piece if width == 1 else np.frombuffer(piece, f"u{width}").byteswap().tobytes()


def has_nested_fragments(reader: Reader, elements: Iterable[Element], depth: int = 0) -> bool:
    """Whether an item below holds encapsulated pixel data, such as a compressed icon: it must be in the syntax of the
    whole. Raises Malformed.
    """
    for element in elements:
        if element.tag == PIXEL_DATA:
            if depth and element.undefined:
                return True
        elif element.vr == "SQ":
            for start, end, _ in reader.items(element.start, element.end, depth, delimited=False):
                if has_nested_fragments(reader, reader.elements(start, end, depth + 1), depth + 1):
                    return True
    return False


def _sequence(reader: Reader, element: Element, target: Encoding, *, signed: bool, depth: int) -> Iterator[Buffer]:
    """A sequence, with items and delimiters of undefined length: their lengths change with the encoding."""
    start, end, inner = element.start, element.end, reader
    if element.vr == "UN":
        if element.undefined:
            inner = Reader(reader.buffer, reader.unknown(start, end + 8, depth)[1])
        else:
            inner = Reader(reader.buffer, Encoding(implicit=True))
    yield header(target, element.tag, "SQ", UNDEFINED)
    for item_start, item_end, _ in inner.items(start, end, depth, delimited=False):
        yield item_header(target, ITEM, UNDEFINED)
        elements = list(inner.elements(item_start, item_end, depth + 1))
        within = is_signed(inner, elements, outer=signed)
        for one in elements:
            if one.tag & 0xFFFF:  # group lengths would be wrong
                yield from recoded(inner, one, target, signed=within, depth=depth + 1)
        yield item_header(target, 0xFFFEE00D, 0)
    yield item_header(target, SEQUENCE_END, 0)


def vr_of(tag: int, *, signed: bool) -> str:
    """The VR that the standard gives to a tag; UN for private ones, which a file may fill as it likes."""
    if tag >> 16 & 1:
        return "LO" if 0x10 <= tag & 0xFFFF <= 0xFF else "UN"
    try:
        vr = "UL" if tag & 0xFFFF == 0 else dictionary_VR(tag)
    except KeyError:
        return "UN"
    if " or " not in vr:
        return vr
    if "OW" in vr:  # as implicit VR has it: Pixel Data, Overlay Data, LUT Data are OW (PS3.5 A.1)
        return "OW"
    return "SS" if signed else "US"
