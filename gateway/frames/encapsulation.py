"""Encapsulated pixel data as it is written: one fragment a frame, offset tables that tell the truth (PS3.5 A.4)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from gateway.frames.elements import ITEM, PIXEL_DATA, SEQUENCE_END, UNDEFINED, Buffer, Encoding, header, item_header
from gateway.frames.source import OFFSET_LENGTHS, OFFSETS

EXPLICIT = Encoding()
WIDE_BYTES = 1 << 31  # native size from which 32-bit offsets might not reach, with room for what does not compress


class Encapsulator:
    """The elements of the pixel data group around compressed frames whose sizes show only as they come.

    `elements` leaves room for the offset table and `finish` fills it in, so that one frame at a time is in memory. The
    Extended Offset Table takes the place of the basic one where 32 bits might not reach (PS3.3 C.7.6.3.1.8).
    """

    def __init__(self, file: BinaryIO, frames: int, native_bytes: int) -> None:
        self._file = file
        self._frames = frames
        self._wide = native_bytes > WIDE_BYTES
        self._table_at = self._lengths_at = 0
        self._lengths: list[int] = []

    def elements(self, frames: Iterable[bytes]) -> Iterator[Buffer]:
        """`frames` are streams, padded here. Each piece is written before the next is asked for."""
        room = bytes((8 if self._wide else 4) * self._frames)
        if self._wide:
            yield header(EXPLICIT, OFFSETS, "OV", len(room))
            self._table_at = self._file.tell()
            yield room
            yield header(EXPLICIT, OFFSET_LENGTHS, "OV", len(room))
            self._lengths_at = self._file.tell()
            yield room
        yield header(EXPLICIT, PIXEL_DATA, "OB", UNDEFINED)
        yield item_header(EXPLICIT, ITEM, 0 if self._wide else len(room))
        if not self._wide:
            self._table_at = self._file.tell()
            yield room
        for data in frames:
            length = len(data) + len(data) % 2
            yield item_header(EXPLICIT, ITEM, length)
            yield data
            yield bytes(length - len(data))
            self._lengths.append(length)
        yield item_header(EXPLICIT, SEQUENCE_END, 0)

    def finish(self) -> None:
        """Fill in the offset table, now that the sizes are known."""
        if len(self._lengths) != self._frames:
            raise ValueError("as many frames as were announced")
        offsets = [0]
        for length in self._lengths[:-1]:
            offsets.append(offsets[-1] + 8 + length)
        code = "Q" if self._wide else "I"
        end = self._file.tell()
        self._file.seek(self._table_at)
        self._file.write(struct.pack(f"<{self._frames}{code}", *offsets))
        if self._wide:
            self._file.seek(self._lengths_at)
            self._file.write(struct.pack(f"<{self._frames}Q", *self._lengths))
        self._file.seek(end)
