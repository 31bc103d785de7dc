"""What a compressed frame says of itself, and whether anything lies in it beside the coded picture.

Read before any decoder sees the bytes: a codestream whose size differs from the header's is not decoded (memory, and
hostile files), one that ends before its value does hides something behind its end, and one that carries a second
picture (EXIF and JFXX thumbnails, large comments) shows it to whoever looks there. ISO/IEC 10918-1 B (JPEG), 14495-1 C
(JPEG-LS), 15444-1 A (JPEG 2000), PS3.5 G (RLE).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from struct import unpack, unpack_from

from gateway.gate.pixel_layout import Layout, Unseen

MAX_APPLICATION_BYTES = 1024  # as for private elements: a picture of 32 x 32
_PADDING = b"\0\xff"
_SOI, _EOI, _SOS, _COM, _SOF55 = 0xD8, 0xD9, 0xDA, 0xFE, 0xF7
_FRAME_HEADERS = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF, _SOF55})
_JPEG_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")  # not stuffing, not RSTn
_JPEG_LS_MARKER = re.compile(rb"\xff[\x80-\xcf\xd8-\xfe]")  # bit stuffing leaves bit 7 zero; not RSTn
_HARMLESS = (b"ICC_PROFILE\0", b"Adobe")

JPEG = frozenset({"1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.51"})
JPEG_LOSSLESS = frozenset({"1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70"})
JPEG_LS_LOSSLESS, JPEG_LS_NEAR = "1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.81"
JPEG_LS = frozenset({JPEG_LS_LOSSLESS, JPEG_LS_NEAR})
JPEG_2000 = frozenset({"1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.91"})
HTJ2K = frozenset({"1.2.840.10008.1.2.4.201", "1.2.840.10008.1.2.4.202", "1.2.840.10008.1.2.4.203"})
RLE = "1.2.840.10008.1.2.5"


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one codestream. `precision` in bits; `coding` is the JPEG frame header's marker, 0 for other kinds. `shift` is
    the point transform of lossless JPEG: how many bits it leaves off below (10918-1 H.1.2.1).
    """

    rows: int
    columns: int
    samples: int
    precision: int
    signed: bool = False
    coding: int = 0
    shift: int = 0


def examine(layout: Layout, stream: bytes, place: str) -> Facts:
    """Facts of a frame's codestream. Raises Unseen when it is not what the layout says, or holds anything else."""
    try:
        if layout.syntax in JPEG | JPEG_LOSSLESS | JPEG_LS:
            facts = examine_jpeg(stream, place)
        elif layout.syntax in JPEG_2000 | HTJ2K:
            facts = _jpeg_2000(stream, place)
        elif layout.syntax == RLE:
            facts = _rle(layout, stream, place)
        else:
            raise Unseen(place, "a transfer syntax that cannot be looked at")
    except (IndexError, ValueError, struct.error):
        raise Unseen(place, "the codestream is cut short") from None
    if (facts.rows, facts.columns, facts.samples) != (layout.rows, layout.columns, layout.samples):
        raise Unseen(place, "the codestream is of another size than the header says")
    if facts.precision > layout.allocated:
        raise Unseen(place, "the codestream has more bits than the header allocates")
    return facts


def _rest_is_padding(stream: bytes, at: int, place: str) -> None:
    if stream[at:].strip(_PADDING):
        raise Unseen(place, "bytes behind the end of the codestream")


def _application(stream: bytes, marker: int, at: int, length: int, place: str) -> int:
    """How many bytes of an APPn or COM segment tell nothing that is known; profiles and colour transforms are."""
    body = stream[at + 2 : at + length]
    if body.startswith(_HARMLESS):
        return 0
    thumbnail = marker == 0xE0 and body[:5] == b"JFIF\0" and len(body) > 14
    if thumbnail or length > MAX_APPLICATION_BYTES or b"\xff\xd8\xff" in body:
        raise Unseen(place, "application data in the codestream, large enough for a picture")
    return length


def examine_jpeg(stream: bytes, place: str) -> Facts:
    """Facts of a JPEG or JPEG-LS codestream. Raises Unseen; IndexError, ValueError and struct.error when cut short."""
    if stream[:2] != b"\xff\xd8":
        raise Unseen(place, "no codestream of its transfer syntax")
    at, facts, scans, application, shift = 2, None, 0, 0, 0
    while True:
        marker, at = _marker(stream, at, place)
        if marker == _EOI:
            break
        (length,) = unpack_from(">H", stream, at)
        if length < 2 or at + length > len(stream):
            raise Unseen(place, "the codestream is cut short")
        if marker in _FRAME_HEADERS:
            if facts is not None:
                raise Unseen(place, "two frames in one codestream")
            precision, rows, columns, samples = unpack_from(">BHHB", stream, at + 2)
            facts = Facts(rows, columns, samples, precision, coding=marker)
        elif 0xE0 <= marker <= 0xEF or marker == _COM:
            application += _application(stream, marker, at, length, place)
            if application > 4 * MAX_APPLICATION_BYTES:
                raise Unseen(place, "application data in the codestream, large enough for a picture")
        at += length
        if marker == _SOS:
            scans += 1
            shift = stream[at - 1] & 15
            at = _scan_end(stream, at, facts, place)
    if facts is None or not scans:
        raise Unseen(place, "a codestream without a picture")
    _rest_is_padding(stream, at, place)
    return replace(facts, shift=shift)


def _marker(stream: bytes, at: int, place: str) -> tuple[int, int]:
    """A marker and the offset behind it; fill bytes may stand before it (B.1.1.2)."""
    while stream[at] == 0xFF and stream[at + 1] == 0xFF:
        at += 1
    if stream[at] != 0xFF:
        raise Unseen(place, "bytes between the parts of the codestream")
    return stream[at + 1], at + 2


def _scan_end(stream: bytes, at: int, facts: Facts | None, place: str) -> int:
    """Where the entropy-coded data of a scan ends: at the next marker that is no restart."""
    if facts is None:
        raise Unseen(place, "a scan before its frame header")
    found = (_JPEG_LS_MARKER if facts.coding == _SOF55 else _JPEG_MARKER).search(stream, at)
    if found is None:
        raise Unseen(place, "the codestream is cut short")
    return found.start()


def _jpeg_2000(stream: bytes, place: str) -> Facts:
    if stream[:4] != b"\xff\x4f\xff\x51":
        raise Unseen(place, "no codestream of its transfer syntax")
    width, height, left, top = unpack_from(">IIII", stream, 8)
    (samples,) = unpack_from(">H", stream, 40)
    depths = {stream[42 + 3 * index] for index in range(samples)}
    steps = {stream[43 + 3 * index : 45 + 3 * index] for index in range(samples)}
    if len(depths) != 1 or steps != {b"\1\1"}:
        raise Unseen(place, "components of different size or depth")
    depth = depths.pop()
    at, comments = 2, 0
    while True:
        (marker,) = unpack_from(">H", stream, at)
        if marker == 0xFFD9:
            break
        (length,) = unpack_from(">H", stream, at + 2)
        if marker == 0xFF64:
            comments += length
            if comments > MAX_APPLICATION_BYTES:
                raise Unseen(place, "application data in the codestream, large enough for a picture")
        if marker == 0xFF90:  # SOT: the tile part's own length leads to the next one
            (size,) = unpack_from(">I", stream, at + 6)
            if size == 0:  # the last tile part, up to EOC
                at = stream.rindex(b"\xff\xd9")
                continue
            length = size - 2
        if length < 2 or at + 2 + length > len(stream):
            raise Unseen(place, "the codestream is cut short")
        at += 2 + length
    _rest_is_padding(stream, at + 2, place)
    return Facts(height - top, width - left, samples, (depth & 0x7F) + 1, signed=depth > 0x7F)


def _rle(layout: Layout, stream: bytes, place: str) -> Facts:
    """The header of a frame: as many segments as bytes in a pixel, one behind the other (PS3.5 G.3, G.5)."""
    planes = layout.samples * layout.allocated // 8
    bounds = segment_bounds(stream)
    if len(bounds) - 1 != planes or planes > 15 or bounds[0] != 64 or bounds != sorted(bounds):
        raise Unseen(place, "the segments do not add up")
    return Facts(layout.rows, layout.columns, layout.samples, layout.allocated)


def segment_bounds(stream: bytes) -> list[int]:
    """Where the segments of an RLE frame begin, and the end of the last. Raises ValueError for a senseless header."""
    count, *offsets = unpack("<16I", stream[:64])
    if count > 15 or any(offsets[count:]):
        raise ValueError("no RLE header")
    return [*offsets[:count], len(stream)]


def unpack_bits(stream: bytes, at: int, end: int, wanted: int) -> bytes:
    """One segment, which must hold `wanted` bytes and then nothing but padding (PS3.5 G.3.2). Raises ValueError."""
    out = bytearray()
    while len(out) < wanted:
        code = stream[at]
        if code < 128:
            out += stream[at + 1 : at + code + 2]
            at += code + 2
        elif code > 128:
            out += stream[at + 1 : at + 2] * (257 - code)
            at += 2
        else:
            at += 1
        if at > end:
            raise ValueError("a segment is cut short")
    if len(out) > wanted or stream[at:end].strip(_PADDING):
        raise ValueError("a segment holds more than its plane")
    return bytes(out)
