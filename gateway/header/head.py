"""The first bytes of a file: where its data set begins, how it is encoded, and which series it may belong to."""

from __future__ import annotations

import os
from typing import NamedTuple

from gateway.errors import Hold
from gateway.header.elements import LONG_VRS, SHORT_VRS, Syntax
from gateway.header.source import DEFLATED, syntax_of

HEAD_BYTES, LONG_HEAD_BYTES = 1 << 15, 1 << 19  # most headers; those with protocols and functional groups in them
_META = b"\x02\x00"
MEDIA_CLASS, TRANSFER_SYNTAX = b"\x02\x00\x02\x00", b"\x02\x00\x10\x00"
_STUDY_LITTLE, _STUDY_BIG = b"\x20\x00\x0d\x00", b"\x00\x20\x00\x0d"
MAX_UID_BYTES = 64


class Head(NamedTuple):
    """`data` are the file's first bytes, `start` is where its data set begins, `size` that of the whole file."""

    data: bytes
    start: int
    size: int
    transfer_syntax: str
    syntax: Syntax
    sop_class: str  # of file meta

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.size


def read_head(descriptor: int, most: int = HEAD_BYTES) -> Head | None:
    """The head of a file with preamble and file meta; None for any other, and for one that must be read differently."""
    size = os.fstat(descriptor).st_size
    data = os.pread(descriptor, min(most, size), 0)
    if data[128:132] != b"DICM":
        return None
    at = 132
    found = {}
    while data[at : at + 2] == _META:
        vr = data[at + 4 : at + 6]
        if vr in SHORT_VRS:
            start = at + 8
            length = int.from_bytes(data[at + 6 : start], "little")
        elif vr in LONG_VRS:
            start = at + 12
            length = int.from_bytes(data[at + 8 : start], "little")
        else:
            return None
        tag = data[at : at + 4]
        at = start + length
        if at > len(data):
            return None
        if tag in (MEDIA_CLASS, TRANSFER_SYNTAX):
            found[tag] = data[start:at].decode("latin-1").strip(" \0")
    uid = found.get(TRANSFER_SYNTAX, "")
    if not uid or uid == DEFLATED:
        return None
    try:
        syntax = syntax_of(uid, data[at + 4 : at + 6])
    except Hold:
        return None
    return Head(data, at, size, uid, syntax, found.get(MEDIA_CLASS, ""))


def series_hint(head: Head) -> bytes:
    """Study and Series Instance UID as they are likely to be; b"" where they are not. Equal for a series, mostly.

    Only a place to look: whatever is found there is compared byte for byte.
    """
    data = head.data
    at = data.find(_STUDY_BIG if head.syntax.big else _STUDY_LITTLE, head.start)
    if at < 0:
        return b""
    end = _end(head, at)
    return data[at : _end(head, end)]


def _end(head: Head, at: int) -> int:
    order = "big" if head.syntax.big else "little"
    field = head.data[at + 4 : at + 8] if head.syntax.implicit else head.data[at + 6 : at + 8]
    return at + 8 + min(int.from_bytes(field, order), MAX_UID_BYTES)  # type: ignore[arg-type]
