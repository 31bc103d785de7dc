"""A DICOM file as it came: file meta, transfer syntax, and the bytes of its data set (PS3.10 chapter 7, PS3.5 Annex A).

Files without preamble, prefix or file meta are read where their encoding is evident from the first element; anything
doubtful is held. A deflated data set is inflated here, within a bound. Pixel data is neither decoded nor copied: a
large file is mapped, and what is kept of it goes from file to file (`streaming`).
"""

from __future__ import annotations

import mmap
import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
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
    Buffer,
    Element,
    Malformed,
    Reader,
    Syntax,
)

MAP_FROM_BYTES = 1 << 20
MAX_INFLATED_BYTES = 1 << 30
ZEROS_AT_ONCE = 1 << 20
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

    `offset` is where it begins in the file, whether deflated or not. `guessed`: no file meta named the transfer syntax.
    """

    data: memoryview
    syntax: Syntax
    transfer_syntax: str
    meta_sop_class: str
    guessed: bool
    offset: int

    @property
    def deflated(self) -> bool:
        return self.transfer_syntax == DEFLATED

    def release(self) -> None:
        """Let go of the mapped pages that were looked at; they come back when they are looked at again."""
        mapped = self.data.obj
        if isinstance(mapped, mmap.mmap):
            mapped.madvise(mmap.MADV_DONTNEED)


def open_source(path: Path) -> Source:
    """Read or map a file. Raises Hold (unreadable_object, unsupported_transfer_syntax) and OSError."""
    with open(path, "rb") as file:
        return read_source(file.fileno())


def read_source(descriptor: int) -> Source:
    """The same for an open file, which may be closed afterwards."""
    size = os.fstat(descriptor).st_size
    if size >= MAP_FROM_BYTES:
        buffer = memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))
    else:
        buffer = memoryview(os.pread(descriptor, size, 0))
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
        syntax_of(syntax_uid, bytes(data[4:6])),
        syntax_uid,
        meta.get(0x00020002, ""),
        not declared,
        start,
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


def syntax_of(uid: str, vr: bytes) -> Syntax:
    """How a data set is encoded, `vr` being what is where its first element would say its VR.

    Raises Hold for a transfer syntax that is not known, or that the first element contradicts.
    """
    syntax = _named_syntax(uid)
    if uid != DEFLATED and (vr in KNOWN_VRS) is syntax.implicit:
        raise Hold("unreadable_object", at="the first element: not in the transfer syntax of the file meta")
    return syntax


@lru_cache(maxsize=128)
def _named_syntax(uid: str) -> Syntax:
    kind = UID_dictionary.get(uid)
    if kind is None or kind[1] != "Transfer Syntax" or uid.startswith(NOT_HERE):
        raise Hold("unsupported_transfer_syntax")
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


def only_zeros(data: Buffer) -> bool:
    """True for a filling of zeros, of any length."""
    return all(not bytes(data[at : at + ZEROS_AT_ONCE]).strip(b"\0") for at in range(0, len(data), ZEROS_AT_ONCE))


def top_level(source: Source) -> tuple[Reader, list[Element], bool]:
    """The elements of the data set in ascending order, and whether bytes behind the last one were left out.

    What follows Pixel Data or fills the file with zeros and is no element is not part of the data set. Raises Hold for
    other bytes that are no element, and for a tag that comes twice.
    """
    reader = Reader(source.data, source.syntax, source.release)
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
            if not behind_pixels and not only_zeros(source.data[position:]):
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
