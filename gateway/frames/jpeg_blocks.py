"""Boxes in baseline and extended JPEG of 8 bits, in the DCT domain (ISO/IEC 10918-1 A.3).

Every block of 8 by 8 samples that a box touches becomes one flat block of the fill; the quantised coefficients of all
others stay, so that nothing is compressed a second time. With halved chroma a chroma block spans 16 pixels.

The coefficients are read and written by libjpeg through `jpeglib`'s binding, from and to memory files: its Python
classes would put the frame into a temporary file, and keep state between calls. Callers pass only streams that were
decoded before; what libjpeg says of a damaged one goes to stderr and holds no values.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from jpeglib._bind import CJpegLib  # type: ignore[import-untyped]
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.frames.boxes import Box
from gateway.frames.codestream import DHT, SOS, Stream, segments

GREY, YCBCR = 1, 3  # J_COLOR_SPACE
DRI = 0xDD


def redacted_stream(data: bytes, stream: Stream, boxes: Sequence[Box], fill: Sequence[int | float]) -> bytes:
    """The stream with every block that a box touches filled. Raises Hold("pixels_unreadable")."""
    shapes = _block_shapes(stream)
    blocks, tables, table_of = _read(data, shapes)
    tallest, widest = (max(part[axis] for part in stream.components) for axis in (2, 1))
    for index, (_, across, down) in enumerate(stream.components):
        level = _flat(fill[index], int(tables[table_of[index], 0]))
        high, wide = 8 * tallest // down, 8 * widest // across  # pixels of one block
        for box in boxes:
            region = blocks[index][box.top // high : -(-box.bottom // high), box.left // wide : -(-box.right // wide)]
            region[...] = 0
            region[..., 0] = level
    written = _assembled(data, stream, _write(blocks, tables, table_of, stream))
    again, _, _ = _read(written, shapes)
    if not all(np.array_equal(one, other) for one, other in zip(blocks, again, strict=True)):
        raise Hold("pixels_unreadable", at="(7FE0,0010): coefficients did not come out as they went in")
    return written


def _assembled(data: bytes, stream: Stream, written: bytes) -> bytes:
    """The original's own markers, quantisation tables and component names around the scan that libjpeg wrote."""
    kept, end = [], 0
    for marker, head, _, end in segments(data):
        if marker not in (DHT, DRI, SOS):
            kept.append(data[head:end])
    if b"\xff\xdb" in data[end:]:  # cannot be entropy-coded data
        raise Hold("pixels_unreadable", at="(7FE0,0010): quantisation tables that change between scans")
    scan = bytearray()
    for marker, head, start, end in segments(written):
        if marker == SOS:
            scan = bytearray(written[head:end])
            for index, part in enumerate(stream.components):
                scan[start - head + 1 + 2 * index] = part[0]
            scan += written[end:]
        elif marker == DHT:
            kept.append(written[head:end])
    return b"\xff\xd8" + b"".join(kept) + bytes(scan)


def _flat(value: float, step: int) -> int:
    """The quantised DC of a flat block of `value`: rounded away from the middle, so that black is black."""
    exact = (value - 128) * 8 / max(step, 1)
    return int(np.floor(exact) if exact < 0 else np.ceil(exact))


def _block_shapes(stream: Stream) -> list[tuple[int, int]]:
    """(rows, columns) in blocks of each component (A.1.1)."""
    tallest, widest = (max(part[axis] for part in stream.components) for axis in (2, 1))
    if any(not part[1] or not part[2] or tallest % part[2] or widest % part[1] for part in stream.components):
        raise Hold("pixels_unreadable", at="(7FE0,0010): sampling factors that do not divide each other")
    return [
        (-(-stream.rows * down // (8 * tallest)), -(-stream.columns * across // (8 * widest)))
        for _, across, down in stream.components
    ]


Blocks = list[NDArray[np.int16]]


def _read(data: bytes, shapes: Sequence[tuple[int, int]]) -> tuple[Blocks, NDArray[np.uint16], list[int]]:
    """Coefficients (block rows, block columns, 64) of each component, the quantisation tables, and whose is which."""
    blocks = [np.zeros((*shape, 64), np.int16) for shape in shapes]
    tables, table_of = np.zeros((4, 64), np.uint16), np.zeros(4, np.int16)
    with _memory_file(data) as path:
        try:
            CJpegLib.read_jpeg_dct(path, *_pointers(blocks), _pointer(tables), _pointer(table_of))
        except OSError:
            raise Hold("pixels_unreadable", at="(7FE0,0010): a frame cannot be decoded") from None
    return blocks, tables, [int(number) for number in table_of[: len(shapes)]]


def _write(blocks: Blocks, tables: NDArray[np.uint16], table_of: Sequence[int], stream: Stream) -> bytes:
    """A baseline stream of these coefficients in one scan. Of its other markers nothing is used."""
    size = (ctypes.c_int * 2)(stream.rows, stream.columns)
    shapes = (ctypes.c_int * 8)(*(extent for block in blocks for extent in block.shape[:2]))
    factors = (ctypes.c_int * 8)(*(factor for _, across, down in stream.components for factor in (down, across)))
    numbers = np.full(4, -1, np.int16)
    numbers[: len(table_of)] = table_of
    colour = GREY if len(blocks) == 1 else YCBCR
    with _memory_file(b"") as path:
        try:
            CJpegLib.write_jpeg_dct(
                None,
                path,
                *_pointers(blocks),
                *(size, shapes, colour, len(blocks), factors),
                *(_pointer(tables), -1, _pointer(numbers), 0, None, None, None, []),
            )
        except OSError:
            raise Hold("pixels_unreadable", at="(7FE0,0010): a frame cannot be written") from None
        with open(path, "rb") as file:
            return file.read()


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _pointers(blocks: Blocks) -> list[ctypes.c_void_p | None]:
    """Y, Cb, Cr and K of the binding; None for a component that is not there."""
    return [*(_pointer(block) for block in blocks), *[None] * (4 - len(blocks))]


@contextmanager
def _memory_file(data: bytes) -> Iterator[str]:
    """A file that is in memory only, by a path that C code can open."""
    handle = os.memfd_create("frame", os.MFD_CLOEXEC)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)
