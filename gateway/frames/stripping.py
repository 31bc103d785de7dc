"""Compressed frames without what is no part of the picture: comments, application segments, bytes behind the end.

JPEG keeps of its application segments what decoders go by (Adobe's colour transform, HP's of JPEG-LS) and JFIF's size
and density, without its thumbnail. JPEG 2000 loses its boxes and comments. Of entropy-coded data not a bit changes.
"""

from __future__ import annotations

import re
import struct

from gateway.errors import Hold
from gateway.frames.codestream import (
    APP0,
    APP8,
    APP14,
    COM,
    EOC,
    EOI,
    J2K_COM,
    SOD,
    SOS,
    SOT,
    codestream_of,
)
from gateway.frames.syntaxes import Codec

# What ends entropy-coded data: a marker that is neither stuffing nor a restart nor fill (10918-1 B.1.1.5; JPEG-LS
# stuffs a bit, so that FF is followed by a byte below 80, 14495-1 A.1).
JPEG_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
JPEG_LS_MARKER = re.compile(rb"\xff[\x80-\xcf\xd8-\xfe]")
JFIF_BYTES = 14  # identifier to thumbnail size


def stripped(data: bytes, codec: Codec) -> bytes:
    """The same picture; `data` itself where nothing is to be taken out but padding.

    Raises Hold("pixels_unreadable") for a stream whose structure cannot be followed.
    """
    if codec is Codec.RLE:
        tidy = _run_lengths(data)
        return data if tidy == data else tidy
    try:
        out = _jpeg_2000(data) if codec in (Codec.JPEG_2000, Codec.HTJ2K) else _jpeg(data, codec)
    except (struct.error, IndexError):
        raise Hold("pixels_unreadable", at="(7FE0,0010): the markers of a frame") from None
    return data if data.rstrip(b"\0\xff") == out.rstrip(b"\0\xff") and len(data) - len(out) <= 1 else out


def _run_lengths(data: bytes) -> bytes:
    """Offsets of segments that are not there become 0 (PS3.5 G.5). What is behind a segment does not decode."""
    if len(data) < 64:
        raise Hold("pixels_unreadable", at="(7FE0,0010): a frame cannot be decoded")
    used = 4 + 4 * min(struct.unpack_from("<I", data)[0], 15)
    return data[:used] + bytes(64 - used) + data[64:]


def _jpeg(data: bytes, codec: Codec) -> bytes:
    marker_pattern = JPEG_LS_MARKER if codec is Codec.JPEG_LS else JPEG_MARKER
    out, position = bytearray(data[:2]), 2
    while True:
        if data[position] != 0xFF:
            raise Hold("pixels_unreadable", at="(7FE0,0010): the markers of a frame")
        while data[position + 1] == 0xFF:
            position += 1
        marker = data[position + 1]
        if marker == EOI:
            return bytes(out + data[position : position + 2])
        end = position + 2 + int(struct.unpack_from(">H", data, position + 2)[0])
        out += _segment(marker, data[position:end], codec)
        position = end
        if marker == SOS:
            found = marker_pattern.search(data, position)
            if found is None:  # no EOI: the rest is entropy-coded data
                return bytes(out + data[position:])
            out += data[position : found.start()]
            position = found.start()


def _segment(marker: int, segment: bytes, codec: Codec) -> bytes:
    contents = segment[4:]
    if marker == APP0 and contents.startswith(b"JFIF\0") and len(contents) >= JFIF_BYTES:
        kept = contents[: JFIF_BYTES - 2] + b"\0\0"
        return segment[:2] + struct.pack(">H", 2 + len(kept)) + kept
    if marker == APP14 and contents.startswith(b"Adobe") and len(contents) >= 12:
        return segment[:2] + struct.pack(">H", 14) + contents[:12]
    if marker == APP8 and codec is Codec.JPEG_LS and contents.startswith(b"mrfx") and len(contents) >= 5:
        return segment[:2] + struct.pack(">H", 7) + contents[:5]
    return b"" if 0xE0 <= marker <= 0xEF or marker == COM else segment


def _jpeg_2000(data: bytes) -> bytes:
    """Main header, tile-parts, EOC. A comment in a tile-part is blanked: its length is part of the tile-part's."""
    data = codestream_of(data)
    out, position = bytearray(data[:2]), 2
    while data[position + 1] not in (SOT, EOC):
        (length,) = struct.unpack_from(">H", data, position + 2)
        end = position + 2 + length
        if data[position] != 0xFF or end > len(data):
            raise Hold("pixels_unreadable", at="(7FE0,0010): the markers of a frame")
        if data[position + 1] != J2K_COM:
            out += data[position:end]
        position = end
    while data[position : position + 2] == bytes((0xFF, SOT)):
        (length,) = struct.unpack_from(">I", data, position + 6)
        end = position + length if length else len(data)  # 0: up to EOC (15444-1 A.4.2)
        if not length and data.rstrip(b"\0")[-2:] == bytes((0xFF, EOC)):
            end = len(data.rstrip(b"\0")) - 2
        if end > len(data) or (length and length < 14):
            raise Hold("pixels_unreadable", at="(7FE0,0010): the markers of a frame")
        out += _tile_part(bytearray(data[position:end]))
        position = end
        if position == len(data):  # no EOC: nothing behind it either
            return bytes(out)
    if data[position : position + 2] != bytes((0xFF, EOC)):
        raise Hold("pixels_unreadable", at="(7FE0,0010): the markers of a frame")
    return bytes(out + data[position : position + 2])


def _tile_part(part: bytearray) -> bytearray:
    position = 12
    while part[position + 1] != SOD:
        (length,) = struct.unpack_from(">H", part, position + 2)
        if part[position + 1] == J2K_COM:
            part[position + 6 : position + 2 + length] = bytes(max(length - 4, 0))
        position += 2 + length
    return part
