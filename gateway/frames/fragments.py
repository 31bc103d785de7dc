"""Encapsulated pixel data: which bytes belong to which frame (PS3.5 A.4).

The fragments of a frame are found by the extended or the basic offset table, by their number, or, where neither says,
by where codestreams begin and end. Whatever does not add up holds: a frame that nobody looks at is a leak.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from gateway.errors import Hold
from gateway.frames.elements import Encoding, Malformed, Reader
from gateway.frames.source import OFFSET_LENGTHS, OFFSETS, Source
from gateway.frames.syntaxes import Codec

BEGINNINGS = {
    **dict.fromkeys((Codec.JPEG, Codec.JPEG_LOSSLESS, Codec.JPEG_LS), (b"\xff\xd8\xff",)),
    **dict.fromkeys((Codec.JPEG_2000, Codec.HTJ2K), (b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  ")),
}
END = b"\xff\xd9"  # EOI of JPEG and JPEG-LS, EOC of JPEG 2000
MAX_FRAGMENTS = 1 << 22
TAIL_BYTES = 64  # how far before the end of its last fragment a codestream may end: padding that some writers add


@dataclass(frozen=True, slots=True)
class Frames:
    """`spans[frame]` are the (start, end) of its fragments in the buffer. `beyond` counts frames after NumberOfFrames,
    `table` is the Basic Offset Table as (start, end).
    """

    spans: tuple[tuple[tuple[int, int], ...], ...]
    beyond: int


def frames_of(source: Source, frames: int) -> Frames:
    """Raises Hold("pixels_unreadable")."""
    pixels = source.pixels
    if pixels is None or not pixels.undefined:
        raise Hold("pixels_unreadable", at="(7FE0,0010): not encapsulated under an encapsulating transfer syntax")
    try:
        reader = Reader(source.buffer, Encoding.of(source.syntax))
        *found, last = islice(reader.fragments(pixels.start, pixels.end + 8), MAX_FRAGMENTS)
    except Malformed:
        raise Hold("pixels_unreadable", at="(7FE0,0010)") from None
    if last[0] != -1:
        raise Hold("pixels_unreadable", at="(7FE0,0010): more fragments than this machine takes")
    if not found:
        raise Hold("pixels_unreadable", at="(7FE0,0010): no offset table")
    (_, table_start, table_end), *items = found
    if not items:
        raise Hold("pixels_unreadable", at="(7FE0,0010): no fragments")
    groups = _grouped(source, items, bytes(source.buffer[table_start:table_end]), frames)
    if len(groups) < frames:
        raise Hold("pixels_unreadable", at="(7FE0,0010): fewer frames than (0028,0008) says")
    spans = tuple(tuple((start, end) for _, start, end in group) for group in groups[:frames])
    return Frames(spans, len(groups) - frames)


Item = tuple[int, int, int]


def _grouped(source: Source, items: Sequence[Item], table: bytes, frames: int) -> list[list[Item]]:
    offsets = _extended(source) or _basic(table)
    if offsets:
        heads = [head - items[0][0] for head, _, _ in items]
        if offsets[0] != 0 or any(later <= earlier for earlier, later in pairwise(offsets)):
            raise Hold("pixels_unreadable", at="(7FE0,0010): the offset table does not ascend from 0")
        starts = [bisect_left(heads, offset) for offset in offsets]
        if any(at == len(heads) or heads[at] != offset for at, offset in zip(starts, offsets, strict=True)):
            raise Hold("pixels_unreadable", at="(7FE0,0010): the offset table points between fragments")
        stops = [*starts[1:], len(items)]
        groups = [list(items[start:stop]) for start, stop in zip(starts, stops, strict=True)]
        return [part for group in groups for part in _split(source, group)]
    if len(items) == frames:
        return [[item] for item in items]
    if source.syntax.codec is Codec.RLE:  # one fragment a frame (PS3.5 A.4.2)
        return [[item] for item in items]
    return _split(source, items)


def _extended(source: Source) -> list[int]:
    """The Extended Offset Table (PS3.5 A.4): offsets of frames, each of one fragment."""
    element, lengths = source.find(OFFSETS), source.find(OFFSET_LENGTHS)
    if element is None:
        return []
    value = bytes(source.buffer[element.start : element.end])
    if not value or len(value) % 8 or lengths is None or lengths.end - lengths.start != len(value):
        raise Hold("pixels_unreadable", at="(7FE0,0001)")
    return list(struct.unpack(f"<{len(value) // 8}Q", value))


def _basic(table: bytes) -> list[int]:
    if len(table) % 4:
        raise Hold("pixels_unreadable", at="(7FE0,0010): the offset table is no list of offsets")
    return list(struct.unpack(f"<{len(table) // 4}I", table))


def _split(source: Source, items: Sequence[Item]) -> list[list[Item]]:
    """Fragments in codestreams: one begins where a fragment starts like one and the one before has ended."""
    groups: list[list[Item]] = []
    ended, tail = True, b""
    beginnings = BEGINNINGS.get(source.syntax.codec, ())
    for item in items:
        _, start, end = item
        begins = bytes(source.buffer[start : min(start + 8, end)]).startswith(beginnings)
        if not groups or (begins and ended):
            groups.append([])
            tail = b""
        groups[-1].append(item)
        tail = (tail + bytes(source.buffer[max(start, end - TAIL_BYTES) : end]))[-TAIL_BYTES:]
        ended = END in tail  # which two fragments may share
    return groups
