"""Values of data elements as one line of text for a person to read: any bytes, never an exception, nothing written.

Large values are abbreviated, bulk data is told by its length and the first digits of its sha256. Characters that do not
print, or that turn the direction of the text around them, are shown by their number.
"""

from __future__ import annotations

import hashlib
import struct
import unicodedata

from gateway.header.descriptors_charset import decoded_value
from gateway.header.elements import BULK_VRS, Buffer, Element, Reader

MAX_CHARACTERS = 240
MAX_NUMBERS = 16
DIGEST_DIGITS = 12
MAX_READ_BYTES = 1 << 16  # a text of which more is there is not read to its end for the sake of MAX_CHARACTERS
CODED = frozenset({"AE", "AS", "CS", "DA", "DS", "DT", "IS", "TM", "UI", "UR"})  # the default repertoire (PS3.5 6.1.2)
TEXT = frozenset({"LO", "LT", "PN", "SH", "ST", "UC", "UT"})
_NUMBERS = {
    "US": "H",
    "SS": "h",
    "UL": "I",
    "SL": "i",
    "FL": "f",
    "OF": "f",
    "FD": "d",
    "SV": "q",
    "UV": "Q",
    "AT": "HH",
}
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})  # control, direction, halves, nothing, space


def legible(text: str) -> str:
    """`text` with everything that cannot be seen, or that reorders what stands beside it, written as <U+XXXX>."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c == " " or unicodedata.category(c) not in _HIDDEN else f"<U+{ord(c):04X}>" for c in text)


def abbreviated(text: str) -> str:
    """`text` cut to MAX_CHARACTERS, with the length of the whole."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}… ({len(text):,} characters)"


def bulk(data: Buffer) -> str:
    """Length and digest prefix."""
    return f"{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()[:DIGEST_DIGITS]}…"


def shown(vr: str, element: Element, reader: Reader, character_set: bytes) -> str:
    """The value of an element that is no sequence, "" when it is empty. `vr` may be a choice such as "US or SS"."""
    data = memoryview(reader.buffer)[element.start : element.end]
    if element.undefined:
        return f"encapsulated, {bulk(data)}"
    kind = vr.split(" or ", maxsplit=1)[0]
    if not len(data):
        return ""
    if len(data) > MAX_READ_BYTES:
        return bulk(data)
    if kind in TEXT or kind in CODED:
        text = decoded_value(bytes(data), character_set if kind in TEXT else b"").text
        return abbreviated(legible("⏎".join(text.strip(" \0").splitlines())))
    if kind in _NUMBERS and " or O" not in vr:
        return _numbers(kind, data, big=reader.syntax.big) or bulk(data)
    if kind in BULK_VRS:
        return bulk(data)
    return _unknown(data)


def _numbers(vr: str, data: memoryview, *, big: bool) -> str:
    """Values of a binary VR, "" when the length does not fit it."""
    one = struct.Struct((">" if big else "<") + _NUMBERS[vr])
    if len(data) % one.size:
        return ""
    count = len(data) // one.size
    values = [one.unpack_from(data, place * one.size) for place in range(min(count, MAX_NUMBERS))]
    texts = [
        f"({value[0]:04X},{value[1]:04X})" if vr == "AT" else f"{value[0]:.9g}" if vr in "FL OF FD" else str(value[0])
        for value in values
    ]
    return "\\".join(texts) + (f"… ({count:,} values)" if count > len(values) else "")


def _unknown(data: memoryview) -> str:
    """UN: text where it looks like one, else bulk."""
    value = bytes(data).rstrip(b" \0")
    if value and value.isascii() and value.decode("ascii").isprintable():
        return abbreviated(value.decode("ascii"))
    return bulk(data)
