"""Replacement values: plausible, right for the VR, ASCII (so that every declared character set can hold them).

Identifiers, names and labels become keyed tokens: equal originals stay equal within a project, so machines, specimens
and tracked findings can still be told apart, and nobody without the key can go back. Dates and times become one moment,
the same in DA, TM and DT (cases.md 44: a plausible year, not 0001).
"""

from __future__ import annotations

from gateway.header.elements import Syntax
from gateway.header.encoding import element, sequence
from gateway.pseudonyms import Pseudonyms

DUMMY_DATE, DUMMY_TIME = "20000101", "120000"
TOKEN_LENGTH = 11  # with its prefix 16 characters: the longest SH and AE

_FIXED = {
    "AS": b"030Y",
    "DA": DUMMY_DATE.encode(),
    "TM": DUMMY_TIME.encode(),
    "DT": (DUMMY_DATE + DUMMY_TIME).encode(),
    "DS": b"0",
    "IS": b"0",
    "CS": b"OTHER",
    **{vr: bytes(2) for vr in ("OB", "OW", "UN", "SS", "US")},
    **{vr: bytes(4) for vr in ("AT", "FL", "OF", "OL", "SL", "UL")},
    **{vr: bytes(8) for vr in ("FD", "OD", "OV", "SV", "UV")},
}
# Attributes with enumerated values of their own (PS3.3 C.12.1.1.9, C.7.1.1).
_ENUMERATED = {"ReasonForTheAttributeModification": b"CORRECT", "PatientSexNeutered": b"UNALTERED"}
# PS3.3 8.8: a code needs these three; the scheme is private ("99" prefix, PS3.16 8).
_CODE = (
    (0x00080100, "SH", b"REMOVED"),
    (0x00080102, "SH", b"99DEID"),
    (0x00080104, "LO", b"Removed"),
)


def dummy_value(vr: str, keyword: str, original: bytes, pseudonyms: Pseudonyms) -> bytes:
    """A value of this VR in place of `original` (unpadded bytes); consistent for equal originals in text VRs."""
    fixed = _ENUMERATED.get(keyword) or _FIXED.get(vr.split(" or ", maxsplit=1)[0])
    if fixed is not None:
        return fixed
    token = pseudonyms.token("text", original.decode("latin-1").strip(" \0"), length=TOKEN_LENGTH)
    if vr == "UR":
        return f"urn:x-deid:{token}".encode()
    return f"ANON-{token}".encode()


def dummy_code_sequence(syntax: Syntax, tag: int) -> bytes:
    """A code sequence with one item that names nothing."""
    return sequence(syntax, tag, [b"".join(element(syntax, *part) for part in _CODE)])
