"""What the output says of itself: that and how it was de-identified, and by whom (PS3.15 E.1.1, E.3.6; PS3.10 7.1).

Earlier de-identification: coded items of CID 7050 that the object already bears are kept, written in our words, and
ours follow. Free text of an earlier method is dropped, because it may name the site (cases.md 82), and so is a code
that contradicts what was done here (113106 and 113107 exclude each other).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache

from gateway.header.elements import EXPLICIT_LITTLE, Element, Malformed, Reader, Syntax
from gateway.header.encoding import element, header, sequence
from gateway.policy import HeaderPolicy
from gateway.policy.standard import OPTION_CODES
from gateway.study import IMPLEMENTATION_CLASS_UID, IMPLEMENTATION_VERSION_NAME

IDENTITY_REMOVED, METHOD, METHOD_CODES, TEMPORAL_MODIFIED = 0x00120062, 0x00120063, 0x00120064, 0x00280303
CODE_VALUE, SCHEME = 0x00080100, 0x00080102

BASIC = ("113100", "Basic Application Confidentiality Profile")
# CID 7050, PS3.16 2026d: all thirteen codes.
MEANINGS = dict(
    [
        BASIC,
        ("113101", "Clean Pixel Data Option"),
        ("113102", "Clean Recognizable Visual Features Option"),
        *OPTION_CODES.values(),
    ]
)
FULL_DATES, MODIFIED_DATES = "113106", "113107"


def codes_of(options: AbstractSet[str]) -> list[str]:
    """CID 7050 codes of the profile and of options that were carried out, in ascending order."""
    return [BASIC[0], *sorted(OPTION_CODES[option][0] for option in options)]


def temporal_information(policy: HeaderPolicy) -> str:
    """Longitudinal Temporal Information Modified (0028,0303)."""
    codes = codes_of(policy.options)
    return "UNMODIFIED" if FULL_DATES in codes else "MODIFIED" if MODIFIED_DATES in codes else "REMOVED"


def earlier_codes(method_codes: Element | None, reader: Reader) -> list[str]:
    """CID 7050 codes in the object's own De-identification Method Code Sequence."""
    if method_codes is None or method_codes.vr not in ("", "SQ"):
        return []
    found = []
    try:
        items = method_codes.items
        if items is None:
            items = reader.items(method_codes.start, method_codes.end, 0, delimited=False)
        for item in items:
            elements = item.elements or reader.elements(item.start, item.end, 1)
            texts = {one.tag: bytes(reader.buffer[one.start : one.end]).strip(b" \0") for one in elements}
            code = texts.get(CODE_VALUE, b"").decode("latin-1")
            if texts.get(SCHEME) == b"DCM" and code in MEANINGS:
                found.append(code)
    except Malformed:
        return []
    return found


STAMPED = (IDENTITY_REMOVED, METHOD, METHOD_CODES, TEMPORAL_MODIFIED)


def stamps(
    syntax: Syntax, policy: HeaderPolicy, earlier: Iterable[str], done: AbstractSet[str]
) -> list[tuple[int, bytes]]:
    """The elements to be written at top level, as (tag, encoded element), one for each of STAMPED.

    `done` are the policy's options that were carried out on this object.
    """
    ours = codes_of(done)
    dates = {FULL_DATES, MODIFIED_DATES} if {FULL_DATES, MODIFIED_DATES} & set(ours) else set()
    codes = list(dict.fromkeys([*(code for code in earlier if code not in dates), *ours]))
    items = [
        element(syntax, CODE_VALUE, "SH", code.encode())
        + element(syntax, SCHEME, "SH", b"DCM")
        + element(syntax, 0x00080104, "LO", MEANINGS[code].encode())
        for code in codes
    ]
    method = f"{IMPLEMENTATION_VERSION_NAME} PS3.15-{policy.edition} " + "+".join(code[3:] for code in ours)
    return [
        (IDENTITY_REMOVED, element(syntax, IDENTITY_REMOVED, "CS", b"YES")),
        (METHOD, element(syntax, METHOD, "LO", method[:64].encode())),
        (METHOD_CODES, sequence(syntax, METHOD_CODES, items)),
        (TEMPORAL_MODIFIED, element(syntax, TEMPORAL_MODIFIED, "CS", temporal_information(policy).encode())),
    ]


def file_meta(sop_class: str, sop_instance: str, transfer_syntax: str) -> bytes:
    """Preamble of zeros, prefix and a file meta group that describes this application and nothing before it."""
    before, after = _around_instance(sop_class, transfer_syntax)
    body = before + element(EXPLICIT_LITTLE, 0x00020003, "UI", sop_instance.encode("ascii")) + after
    return _BEFORE_META + struct.pack("<I", len(body)) + body


_BEFORE_META = bytes(128) + b"DICM" + header(EXPLICIT_LITTLE, 0x00020000, "UL", 4)


@lru_cache(maxsize=256)
def _around_instance(sop_class: str, transfer_syntax: str) -> tuple[bytes, bytes]:
    """What stands before and behind the instance's UID."""
    before = ((0x00020001, "OB", b"\0\1"), (0x00020002, "UI", sop_class.encode("ascii")))
    after = (
        (0x00020010, "UI", transfer_syntax.encode("ascii")),
        (0x00020012, "UI", IMPLEMENTATION_CLASS_UID.encode("ascii")),
        (0x00020013, "SH", IMPLEMENTATION_VERSION_NAME.encode("ascii")),
    )
    first, last = (b"".join(element(EXPLICIT_LITTLE, *part) for part in parts) for parts in (before, after))
    return first, last
