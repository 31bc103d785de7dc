"""Is a value that is about to be kept what its attribute says it is?

VR and values are claims of the sender. An attribute that is kept for being technical (a number, a code, a UID of a
class) must look like one: a name sent in Rows, in a Slice Thickness or under a wrong VR is not kept. Free-form text
and code strings cannot be judged this way; the gate's search for residual identifiers sees them.
"""

from __future__ import annotations

import re

from gateway.header.dates import capped_age, shifted
from gateway.header.elements import BULK_VRS, Element, Reader
from gateway.header.uids import is_uid

_SIZES = {"US": 2, "SS": 2, "UL": 4, "SL": 4, "FL": 4, "AT": 4, "FD": 8, "SV": 8, "UV": 8}
_TEXTUAL = frozenset({"AS", "CS", "DS", "IS", "LO", "LT", "SH", "ST", "UC", "UT"})
_NUMBERS = re.compile(rb"[0-9+\-.eE \\\0]*")
_UNSAID = ("", "UN")  # implicit VR, or a writer that did not know better: PS3.6 decides


def _uids(value: bytes) -> list[str]:
    return [one.strip(" \0") for one in value.decode("latin-1").split("\\")]


def fits(vr: str, element: Element, reader: Reader) -> bool:
    """True when the element's own VR and value agree with `vr` of PS3.6."""
    choices = vr.split(" or ")
    said = element.vr
    if any(one in BULK_VRS for one in choices):
        return said in _UNSAID or said in BULK_VRS or said in _SIZES
    if element.undefined:
        return False
    value = reader.buffer[element.start : element.end]
    if choices[0] in _SIZES:
        size = _SIZES.get(said, _SIZES[choices[0]])
        return (said in _UNSAID or said in _SIZES) and len(value) % size == 0
    if said not in _UNSAID and said != vr and not (said in _TEXTUAL and vr in _TEXTUAL):
        return False
    if vr in ("DS", "IS"):
        return _NUMBERS.fullmatch(value) is not None
    if vr == "UI":
        return all(not one or is_uid(one) for one in _uids(bytes(value)))
    if vr in ("DA", "DT", "TM"):
        return shifted(vr, bytes(value), 0) is not None
    if vr == "AS":
        return capped_age(bytes(value)) is not None
    return True
