"""A DICOM file opened for its pixels: where its elements lie, its header as a data set (PS3.10 chapter 7).

The file is mapped: no pixel is read before it is asked for. A deflated data set is inflated into memory, within a
bound. Files without preamble or file meta are read where their first element shows how they are encoded.
"""

from __future__ import annotations

import mmap
import os
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pydicom
from pydicom.dataset import Dataset
from pydicom.filereader import read_dataset

from gateway.errors import Hold
from gateway.frames.elements import (
    DOUBLE_PIXELS,
    FLOAT_PIXELS,
    LONG_VRS,
    PIXEL_DATA,
    SHORT_VRS,
    Element,
    Encoding,
    Malformed,
    Reader,
)
from gateway.frames.syntaxes import EXPLICIT_BIG, EXPLICIT_LITTLE, IMPLICIT_LITTLE, TransferSyntax, syntax_of

MAX_INFLATED_BYTES = 1 << 30
PIXEL_TAGS = (FLOAT_PIXELS, DOUBLE_PIXELS, PIXEL_DATA)
OFFSETS, OFFSET_LENGTHS = 0x7FE00001, 0x7FE00002  # Extended Offset Table, its lengths
EXPLICIT = Encoding()


@dataclass(frozen=True, slots=True)
class Source:
    """`buffer` holds the elements: the file itself, or the inflated data set. `meta` is group 0002 as it stands in the
    file, (tag, vr, value). `trailing` counts the bytes behind the last element, which are no part of the data set.
    """

    buffer: memoryview
    syntax: TransferSyntax
    meta: tuple[tuple[int, str, bytes], ...]
    elements: tuple[Element, ...]
    trailing: int

    @property
    def encoding(self) -> Encoding:
        return Encoding.of(self.syntax)

    def find(self, tag: int) -> Element | None:
        """The top-level element with this tag."""
        return next((element for element in self.elements if element.tag == tag), None)

    @property
    def pixels(self) -> Element | None:
        """The element that bears the pixels. Raises Hold when several do."""
        found = [element for element in self.elements if element.tag in PIXEL_TAGS]
        if len(found) > 1:
            raise Hold("pixels_unreadable", at="(7FE0,xxxx): several elements of pixel data")
        return found[0] if found else None

    def header(self) -> Dataset:
        """Everything before the pixel data group, without its offset tables. Raises Hold."""
        before = [element for element in self.elements if element.tag < OFFSETS]
        data = BytesIO(b"".join(bytes(self.buffer[element.head : element.stop]) for element in before))
        try:
            dataset = read_dataset(data, is_implicit_VR=self.syntax.implicit, is_little_endian=not self.syntax.big)
        except PYDICOM_FAILURES:
            raise Hold("pixels_unreadable", at="the header") from None
        return dataset


PYDICOM_FAILURES = (
    *(ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, EOFError, NotImplementedError),
    *(RecursionError, AssertionError, pydicom.errors.BytesLengthException, pydicom.errors.InvalidDicomError),
)


def open_source(path: Path) -> Source:
    """Map a file and find its elements. Raises Hold (pixels_unreadable, video_unsupported,
    unsupported_transfer_syntax) and OSError.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise Hold("pixels_unreadable", at="an empty file")
        buffer = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    start = 132 if bytes(buffer[128:132]) == b"DICM" else 0
    try:
        meta, start = _file_meta(buffer, start)
        declared = {tag: value for tag, _, value in meta}.get(0x00020010, b"").decode("latin-1").strip(" \0")
        syntax = syntax_of(declared or _guessed(bytes(buffer[start : start + 8])))
        if syntax.deflated:
            buffer, start = _inflated(buffer[start:]), 0
        elements, end = _elements(buffer, start, Encoding.of(syntax))
    except Malformed:
        raise Hold("pixels_unreadable", at="the data set") from None
    return Source(buffer, syntax, meta, elements, len(buffer) - end)


def _file_meta(buffer: memoryview, start: int) -> tuple[tuple[tuple[int, str, bytes], ...], int]:
    """Group 0002, always explicit VR little endian, and where the data set begins."""
    reader = Reader(buffer, EXPLICIT)
    found = []
    while bytes(buffer[start : start + 2]) == b"\x02\x00":
        element = reader.element(start, len(buffer))
        found.append((element.tag, element.vr, bytes(buffer[element.start : element.end])))
        start = element.stop
    return tuple(found), start


def _guessed(head: bytes) -> str:
    """The transfer syntax of a data set that nothing describes, by its first element. Raises Malformed."""
    explicit = head[4:6].decode("latin-1") in LONG_VRS | SHORT_VRS
    if len(head) == 8 and head[1] == 0 and head[0]:
        return EXPLICIT_LITTLE if explicit else IMPLICIT_LITTLE
    if len(head) == 8 and head[0] == 0 and head[1] and explicit:
        return EXPLICIT_BIG
    raise Malformed


def _inflated(data: memoryview) -> memoryview:
    """A deflated data set (PS3.5 A.5): raw deflate. Raises Malformed when it is none, or too large."""
    engine = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    try:
        plain = engine.decompress(data, MAX_INFLATED_BYTES)
    except zlib.error:
        raise Malformed from None
    if not engine.eof:
        raise Malformed
    return memoryview(plain)


def _elements(buffer: memoryview, start: int, encoding: Encoding) -> tuple[tuple[Element, ...], int]:
    """The top-level elements in ascending order, and where the last one ends.

    What follows Pixel Data, or fills the file with zeros, and is no element, is not part of the data set.
    """
    reader = Reader(buffer, encoding)
    found: list[Element] = []
    position, end = start, len(buffer)
    while position < end:
        try:
            if bytes(buffer[position : position + 4]) == bytes(4):
                raise Malformed
            element = reader.element(position, end)
        except Malformed:
            behind_pixels = bool(found) and found[-1].tag >= FLOAT_PIXELS
            if not behind_pixels and not _zeros(buffer, position):
                raise
            break
        found.append(element)
        position = element.stop
    found.sort(key=lambda element: element.tag)
    if len({element.tag for element in found}) != len(found):
        raise Malformed
    return tuple(found), position


def _zeros(buffer: memoryview, start: int) -> bool:
    """True when nothing but zeros follows; read in pieces, up to the first that holds something else."""
    return not any(bytes(buffer[at : at + (1 << 20)]).strip(b"\0") for at in range(start, len(buffer), 1 << 20))
