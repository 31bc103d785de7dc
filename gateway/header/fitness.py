"""Is a value that is about to be kept what its attribute says it is?

VR and values are claims of the sender. An attribute that is kept for being technical (a number, a code, a UID of a
class) must look like one: a name sent in Rows, in a Slice Thickness or under a wrong VR is not kept. Free-form text
and code strings cannot be judged this way; the gate's search for residual identifiers sees them.

In implicit VR the bytes of a name may stand where numbers belong. One number of two or four bytes holds four letters at
most, and any four letters are a possible number: it stays. From eight bytes on, and wherever there are more numbers
than PS3.6 allows (VM), a value that is letters, digits and the marks of names throughout is text. Of numbers that
mean something none looks like that: a double of eight such bytes is over 131072 or below 1e-76.
"""

from __future__ import annotations

import re
from functools import cache

from pydicom._dicom_dict import DicomDictionary

from gateway.header.dates import capped_age, shifted
from gateway.header.elements import BULK_VRS, PIXEL_DATA, Element, Reader
from gateway.header.uids import is_uid

_SIZES = {"US": 2, "SS": 2, "UL": 4, "SL": 4, "FL": 4, "AT": 4, "FD": 8, "SV": 8, "UV": 8}
_TEXTUAL = frozenset({"AS", "CS", "DS", "IS", "LO", "LT", "SH", "ST", "UC", "UT"})
_NUMBERS = re.compile(rb"[0-9+\-.eE \\\0]*")
_TEXT = re.compile(rb"[A-Za-z0-9^ ,.'_=-]+[ \0]*")
_TEXT_BYTES, _TEXT_SIGNS = 8, 3  # shortest value that is text, and letters and digits in it
_CODE_STRING = re.compile(rb"[ -~\t\r\n\0]*")  # no escapes: what they hide no search for words finds
ITEM_LITTLE, ITEM_BIG = b"\xfe\xff\x00\xe0", b"\xff\xfe\xe0\x00"
_UNSAID = ("", "UN")  # implicit VR, or a writer that did not know better: PS3.6 decides


def _uids(value: bytes) -> list[str]:
    return [one.strip(" \0") for one in value.decode("latin-1").split("\\")]


@cache
def _most_values(tag: int) -> int | None:
    """The largest VM of PS3.6, None where it has no end or the tag is not in the dictionary."""
    entry = DicomDictionary.get(tag)
    last = entry[1].rpartition("-")[2] if entry is not None else "n"
    return int(last) if last.isdecimal() else None


def _is_text(tag: int, value: bytes, size: int) -> bool:
    """True for bytes that say something to a reader and nothing as numbers of `size` bytes."""
    most = _most_values(tag)
    too_many = most is not None and len(value) > most * size
    if not (too_many or len(value) >= _TEXT_BYTES) or _TEXT.fullmatch(value) is None:
        return False
    return sum(map(str.isalnum, value.decode("ascii"))) >= _TEXT_SIGNS


def _is_in_items(element: Element, reader: Reader) -> bool:
    """True for what came as a sequence where bulk belongs: nobody judges its elements (PS3.5 6.2.2)."""
    start = bytes(reader.buffer[element.start : element.start + 4])
    read = element.items is not None
    return read or (element.vr in _UNSAID and element.tag != PIXEL_DATA and start in (ITEM_LITTLE, ITEM_BIG))


@cache
def _choices(vr: str) -> tuple[list[str], bool]:
    """The VRs that PS3.6 names for an attribute, and whether bulk is among them."""
    choices = vr.split(" or ")
    return choices, not BULK_VRS.isdisjoint(choices)


def fits(vr: str, element: Element, reader: Reader) -> bool:
    """True when the element's own VR and value agree with `vr` of PS3.6."""
    choices, bulk = _choices(vr)
    said = element.vr
    if bulk:
        return (said in _UNSAID or said in BULK_VRS or said in _SIZES) and not _is_in_items(element, reader)
    if element.undefined:
        return False
    value = reader.buffer[element.start : element.end]
    if choices[0] in _SIZES:
        size = _SIZES.get(said, _SIZES[choices[0]])
        sized = (said in _UNSAID or said in _SIZES) and len(value) % size == 0
        return sized and not _is_text(element.tag, bytes(value), size)
    if said not in _UNSAID and said != vr and not (said in _TEXTUAL and vr in _TEXTUAL):
        return False
    if vr in ("DS", "IS"):
        return _NUMBERS.fullmatch(value) is not None
    if vr == "CS":
        return _CODE_STRING.fullmatch(value) is not None
    if vr == "UI":
        return all(not one or is_uid(one) for one in _uids(bytes(value)))
    if vr in ("DA", "DT", "TM"):
        return shifted(vr, bytes(value), 0) is not None
    if vr == "AS":
        return capped_age(bytes(value)) is not None
    return True
