"""The beginning of a DICOM file (PS3.10 7.1): what a sender says of an object before its data set begins."""

from __future__ import annotations

import struct
from dataclasses import dataclass

LONGEST_BYTES = 64 * 1024
_LONG_VRS = frozenset((b"OB", b"OW", b"UN", b"UT", b"UC", b"UR", b"SQ", b"OD", b"OF", b"OL", b"OV", b"SV", b"UV"))
_CLASS_UID, _INSTANCE_UID, _SYNTAX = 0x0002, 0x0003, 0x0010


class NoFile(ValueError):
    """Not the beginning of a DICOM file, or one that names no transfer syntax."""


@dataclass(frozen=True, slots=True)
class FileHead:
    """UIDs as sent, without padding and not trusted; "" when absent. `size_bytes`: where the data set begins."""

    class_uid: str
    instance_uid: str
    transfer_syntax_uid: str
    size_bytes: int


def read_head(data: bytes | bytearray) -> FileHead | None:
    """The head of a file that begins with `data`; None when more of it must come. Raises NoFile."""
    if bytes(data[128:132]) != b"DICM"[: max(0, len(data) - 128)]:
        raise NoFile
    values: dict[int, str] = {}
    at = 132
    while len(data) >= at + 8:
        if bytes(data[at : at + 2]) != b"\x02\x00":
            if not values.get(_SYNTAX):
                raise NoFile
            return FileHead(values.get(_CLASS_UID, ""), values.get(_INSTANCE_UID, ""), values[_SYNTAX], at)
        (element,) = struct.unpack_from("<H", data, at + 2)
        if bytes(data[at + 4 : at + 6]) in _LONG_VRS:
            if len(data) < at + 12:
                break
            start, size = at + 12, struct.unpack_from("<I", data, at + 8)[0]
        else:
            start, size = at + 8, struct.unpack_from("<H", data, at + 6)[0]
        if start + size > LONGEST_BYTES:
            raise NoFile
        if len(data) < start + size:
            break
        values[element] = bytes(data[start : start + size]).decode("latin-1").strip(" \0")
        at = start + size
    if len(data) >= LONGEST_BYTES:
        raise NoFile
    return None
