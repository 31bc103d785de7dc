"""What a compressed frame says of itself, read from its markers before it is decoded.

JPEG (ISO/IEC 10918-1 Annex B), JPEG-LS (14495-1 Annex C), JPEG 2000 and HTJ2K (15444-1 Annex A, 15444-15). A frame
whose own sizes are not those of the header holds: it is another picture, or a decompression bomb.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.errors import Hold
from gateway.frames.layout import Layout
from gateway.frames.syntaxes import Codec

SOI, EOI, SOS, DHT, COM, APP0, APP8, APP14 = 0xD8, 0xD9, 0xDA, 0xC4, 0xFE, 0xE0, 0xE8, 0xEE
SOF_BASELINE, SOF_EXTENDED, SOF_LOSSLESS, SOF_JPEG_LS = 0xC0, 0xC1, 0xC3, 0xF7
STARTS_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {DHT, 0xC8, 0xCC} | {SOF_JPEG_LS}
COD, SOT, SOD, EOC, J2K_COM = 0x52, 0x90, 0x93, 0xD9, 0x64
ALLOWED = {
    Codec.JPEG: frozenset({SOF_BASELINE, SOF_EXTENDED}),
    Codec.JPEG_LOSSLESS: frozenset({SOF_LOSSLESS}),
    Codec.JPEG_LS: frozenset({SOF_JPEG_LS}),
}


@dataclass(frozen=True, slots=True)
class Stream:
    """`components` are (identifier, horizontal, vertical sampling factor). `colour` is what the markers say of the
    colour: "ybr", "rgb", or "" when they are silent. `near` is JPEG-LS's error bound, `reversible` JPEG 2000's wavelet.
    """

    rows: int
    columns: int
    bits: int
    signed: bool
    components: tuple[tuple[int, int, int], ...]
    colour: str = ""
    certain: bool = True
    near: int = 0
    reversible: bool = True
    predictor: int = 0

    @property
    def subsampled(self) -> bool:
        return len({factors[1:] for factors in self.components}) > 1


def read_stream(data: bytes, codec: Codec) -> Stream:
    """Raises Hold("pixels_unreadable") for a stream that is not of `codec`, or ends too early."""
    try:
        if codec in (Codec.JPEG_2000, Codec.HTJ2K):
            return _jpeg_2000(data)
        return _jpeg(data, codec)
    except (struct.error, IndexError):
        raise Hold("pixels_unreadable", at="(7FE0,0010): the markers of a frame") from None


def check_stream(stream: Stream, layout: Layout) -> None:
    """Raises Hold("pixels_unreadable") when frame and header do not describe the same picture."""
    same = (stream.rows, stream.columns, len(stream.components)) == (layout.rows, layout.columns, layout.samples)
    if not same or stream.bits > layout.bits_allocated or layout.kind == "f":
        raise Hold("pixels_unreadable", at="(7FE0,0010): a frame's own size is not that of the header")


def segments(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(marker, where its FF is, start, end of its contents) of a JPEG or JPEG-LS stream, up to the first SOS, that one
    included. Raises struct.error or IndexError when the stream ends within them, Hold when there is no marker.
    """
    position = 2
    if data[:2] != b"\xff\xd8":
        raise _strange()
    while True:
        head = position
        if data[position] != 0xFF:
            raise _strange()
        while data[position] == 0xFF:  # fill bytes
            position += 1
        marker = data[position]
        (length,) = struct.unpack_from(">H", data, position + 1)
        start, end = position + 3, position + 1 + length
        if length < 2 or end > len(data) or marker in (0, SOI, EOI):
            raise _strange()
        yield marker, head, start, end
        if marker == SOS:
            return
        position = end


def _strange() -> Hold:
    return Hold("pixels_unreadable", at="(7FE0,0010): the markers of a frame")


def _jpeg(data: bytes, codec: Codec) -> Stream:
    frame: tuple[int, int, int, tuple[tuple[int, int, int], ...]] | None = None
    jfif, adobe, near, predictor = False, -1, 0, 0
    for marker, _, start, end in segments(data):
        if marker in STARTS_OF_FRAME:
            if marker not in ALLOWED[codec] or frame is not None:
                raise Hold("pixels_unreadable", at="(7FE0,0010): a frame of another process than the transfer syntax")
            bits, rows, columns, count = struct.unpack_from(">BHHB", data, start)
            parts = tuple(
                (data[at], data[at + 1] >> 4, data[at + 1] & 15) for at in range(start + 6, start + 6 + 3 * count, 3)
            )
            frame = rows, columns, bits, parts
        elif marker == APP0:
            jfif = jfif or data[start:end].startswith(b"JFIF\0")
        elif marker == APP14 and data[start:end].startswith(b"Adobe") and end - start >= 12:
            adobe = data[start + 11]
        elif marker == SOS:
            near = predictor = data[start + 1 + 2 * data[start]]  # NEAR of JPEG-LS, Ss of the others
    if frame is None:
        raise _strange()
    rows, columns, bits, parts = frame
    colour = _jpeg_colour(parts, adobe, jfif=jfif) if codec is Codec.JPEG and len(parts) == 3 else ""
    certain = adobe >= 0 or not jfif or len({part[1:] for part in parts}) > 1
    return Stream(
        *(rows, columns, bits, False, parts, colour, certain),
        near=near if codec is Codec.JPEG_LS else 0,
        predictor=predictor,
    )


def _jpeg_colour(parts: tuple[tuple[int, int, int], ...], adobe: int, *, jfif: bool) -> str:
    """What the stream itself says: Adobe's transform flag, component names, JFIF (always YCbCr), half chroma."""
    if adobe >= 0:
        return "ybr" if adobe else "rgb"
    if bytes(part[0] for part in parts) == b"RGB":
        return "rgb"
    halved = len({part[1:] for part in parts}) > 1
    return "ybr" if jfif or halved else ""


def _jpeg_2000(data: bytes) -> Stream:
    data = codestream_of(data)
    width, height, left, top = struct.unpack_from(">4I", data, 8)
    (count,) = struct.unpack_from(">H", data, 40)
    if not 1 <= count <= 4 or len(data) < 42 + 3 * count or left >= width or top >= height:
        raise _strange()
    parts = tuple((index, data[43 + 3 * index], data[44 + 3 * index]) for index in range(count))
    depths = {data[42 + 3 * index] for index in range(count)}
    if len(depths) > 1 or any(part[1:] != (1, 1) for part in parts):
        raise Hold("pixels_unreadable", at="(7FE0,0010): components of different sizes or depths")
    depth = depths.pop()
    colour, reversible = "", True
    for marker, start, _ in main_header(data):
        if marker == COD:
            colour = "rgb" if data[start + 4] else ""  # a component transform: what comes out of it is RGB
            reversible = data[start + 9] == 1
    return Stream(
        height - top, width - left, (depth & 0x7F) + 1, bool(depth & 0x80), parts, colour, reversible=reversible
    )


def codestream_of(data: bytes) -> bytes:
    """A JPEG 2000 codestream out of the JP2 boxes that some writers leave around it, though PS3.5 A.4.4 forbids them.

    Raises Hold("pixels_unreadable").
    """
    if data[4:8] == b"jP  ":
        at = data.find(b"jp2c")
        if at < 4:
            raise _strange()
        length = int(struct.unpack_from(">I", data, at - 4)[0])
        data = data[at + 4 : at - 4 + length if length > 8 else len(data)]
    if data[:4] != b"\xff\x4f\xff\x51":
        raise _strange()
    return data


def main_header(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(marker, start, end of its contents) of a JPEG 2000 main header, behind SOC. Raises struct.error when cut off."""
    position = 2
    while True:
        prefix, marker, length = struct.unpack_from(">BBH", data, position)
        if prefix != 0xFF:
            raise _strange()
        if marker in (SOT, EOC):
            return
        yield marker, position + 4, position + 2 + length
        position += 2 + length
