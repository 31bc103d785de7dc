"""A DICOM file as it came: file meta, transfer syntax, and the bytes of its data set (PS3.10 chapter 7, PS3.5 Annex A).

Files without preamble, prefix or file meta are read where their encoding is evident from the first element; anything
doubtful is held. A deflated data set is inflated here, within a bound. Pixel data is neither decoded nor copied: a
large file is mapped, and its bytes are written from the map.
"""

from __future__ import annotations

import mmap
import os
import zlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydicom._uid_dict import UID_dictionary

from gateway.errors import Hold
from gateway.header.elements import (
    EXPLICIT_BIG,
    EXPLICIT_LITTLE,
    IMPLICIT_LITTLE,
    KNOWN_VRS,
    PIXEL_DATA,
    Element,
    Malformed,
    Reader,
    Syntax,
)

MAP_FROM_BYTES = 1 << 20
MAX_INFLATED_BYTES = 1 << 30
IMPLICIT, EXPLICIT, DEFLATED, BIG_ENDIAN = (
    "1.2.840.10008.1.2",
    "1.2.840.10008.1.2.1",
    "1.2.840.10008.1.2.1.99",
    "1.2.840.10008.1.2.2",
)
# Known to PS3.6, but no data set that can be cleaned here: MIME and XML encodings, Papyrus (it redefines sequences),
# JPIP (the pixels are somewhere else), SMPTE (streams, not files).
NOT_HERE = (
    *("1.2.840.10008.1.2.6.", "1.2.840.10008.1.20", "1.2.840.10008.1.2.4.94", "1.2.840.10008.1.2.4.95"),
    *("1.2.840.10008.1.2.4.204", "1.2.840.10008.1.2.4.205", "1.2.840.10008.1.2.7."),
)


@dataclass(frozen=True, slots=True)
class Source:
    """`data` is the encoded data set, inflated if need be; `meta_sop_class` is what file meta says, "" for nothing.

    `guessed`: no file meta named the transfer syntax.
    """

    data: memoryview
    syntax: Syntax
    transfer_syntax: str
    meta_sop_class: str
    guessed: bool

    @property
    def deflated(self) -> bool:
        return self.transfer_syntax == DEFLATED


def open_source(path: Path) -> Source:
    """Read or map a file. Raises Hold (unreadable_object, unsupported_transfer_syntax) and OSError."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size >= MAP_FROM_BYTES:
            buffer = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
        else:
            buffer = memoryview(file.read())
    start = 132 if bytes(buffer[128:132]) == b"DICM" else 0
    try:
        meta, start = _file_meta(buffer, start)
    except Malformed:
        raise Hold("unreadable_object", at="file meta") from None
    data = buffer[start:]
    declared = meta.get(0x00020010, "")
    syntax_uid = declared or _guessed(data)
    return Source(
        _inflated(data) if syntax_uid == DEFLATED else data,
        _syntax(syntax_uid, data),
        syntax_uid,
        meta.get(0x00020002, ""),
        not declared,
    )


def _file_meta(buffer: memoryview, start: int) -> tuple[dict[int, str], int]:
    """Group 0002 (always explicit VR little endian) and where the data set begins."""
    reader = Reader(buffer, EXPLICIT_LITTLE)
    meta = {}
    while bytes(buffer[start : start + 2]) == b"\x02\x00":
        element = reader.element(start, len(buffer))
        if element.tag in (0x00020002, 0x00020010):
            meta[element.tag] = bytes(buffer[element.start : element.end]).decode("latin-1").strip(" \0")
        start = element.stop
    return meta, start


def _guessed(data: memoryview) -> str:
    """The transfer syntax of a data set that nothing describes, by its first element. Raises Hold when in doubt."""
    head = bytes(data[:8])
    explicit = head[4:6] in KNOWN_VRS
    if len(head) == 8 and head[1] == 0 and head[0]:  # a low group number, little endian
        return EXPLICIT if explicit else IMPLICIT
    if len(head) == 8 and head[0] == 0 and head[1] and explicit:
        return BIG_ENDIAN
    raise Hold("unreadable_object", at="the first element")


def _syntax(uid: str, data: memoryview) -> Syntax:
    """Raises Hold for a transfer syntax that is not known, or that the first element contradicts."""
    kind = UID_dictionary.get(uid)
    if kind is None or kind[1] != "Transfer Syntax" or uid.startswith(NOT_HERE):
        raise Hold("unsupported_transfer_syntax")
    if uid == DEFLATED:
        return EXPLICIT_LITTLE
    if (bytes(data[4:6]) in KNOWN_VRS) is (uid == IMPLICIT):
        raise Hold("unreadable_object", at="the first element: not in the transfer syntax of the file meta")
    if uid == IMPLICIT:
        return IMPLICIT_LITTLE
    return EXPLICIT_BIG if uid == BIG_ENDIAN else EXPLICIT_LITTLE


def _inflated(data: memoryview) -> memoryview:
    """A deflated data set (PS3.5 A.5): raw deflate, at most MAX_INFLATED_BYTES."""
    engine = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    try:
        plain = engine.decompress(data, MAX_INFLATED_BYTES)
    except zlib.error:
        raise Hold("unreadable_object", at="the deflated data set") from None
    if not engine.eof:
        raise Hold("unreadable_object", at="the deflated data set")
    return memoryview(plain)


def top_level(source: Source) -> tuple[Reader, list[Element], bool]:
    """The elements of the data set in ascending order, and whether bytes behind the last one were left out.

    What follows Pixel Data or fills the file with zeros and is no element is not part of the data set. Raises Hold for
    other bytes that are no element, and for a tag that comes twice.
    """
    reader = Reader(source.data, source.syntax)
    end = len(source.data)
    found: list[Element] = []
    position = 0
    trailing = False
    while position < end:
        try:
            if bytes(source.data[position : position + 4]) == bytes(4):
                raise Malformed
            element = reader.element(position, end)
        except Malformed:
            behind_pixels = bool(found) and found[-1].tag >= PIXEL_DATA
            if not behind_pixels and any(source.data[position:]):
                raise Hold("unreadable_object", at="the data set") from None
            trailing = True
            break
        found.append(element)
        position = element.stop
    if source.guessed and any(element.tag == PIXEL_DATA and element.undefined for element in found):
        raise Hold("unsupported_transfer_syntax", at="compressed pixels without file meta")
    tags = [element.tag for element in found]
    if any(later <= earlier for earlier, later in pairwise(tags)):
        if len(set(tags)) != len(tags):
            raise Hold("unreadable_object", at="an element that comes twice")
        found.sort(key=lambda element: element.tag)
    return reader, found, trailing
