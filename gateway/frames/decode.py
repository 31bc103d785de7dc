"""One compressed frame to an array, by `imagecodecs`; what it says of itself is checked first (`codestream`)."""

from __future__ import annotations

from collections.abc import Callable

import imagecodecs
import numpy as np

from gateway.errors import Hold
from gateway.frames.codestream import Stream, check_stream, read_stream
from gateway.frames.layout import Array, Layout
from gateway.frames.syntaxes import Codec

MAX_PADDING_BYTES = 64  # behind a run-length segment: PS3.5 G.3.1 asks for one at most, some writers align
FAILURES = (ValueError, TypeError, RuntimeError, MemoryError, OverflowError, IndexError, NotImplementedError)


def decode_frame(data: bytes, codec: Codec, layout: Layout) -> Array:
    """(rows, columns[, samples]) as the stream stores it, components not converted; of any integer type, unmasked.

    Raises Hold("pixels_unreadable").
    """
    try:
        if codec is Codec.RLE:
            return _run_lengths(data, layout)
        stream = read_stream(data, codec)
        check_stream(stream, layout)
        array = np.asarray(DECODERS[codec](data, stream))
    except FAILURES:
        raise _undecodable() from None
    if array.shape != layout.shape or array.dtype.kind not in "ui":
        raise _undecodable()
    return array


def _undecodable() -> Hold:
    return Hold("pixels_unreadable", at="(7FE0,0010): a frame cannot be decoded")


def _run_lengths(data: bytes, layout: Layout) -> Array:
    """PS3.5 Annex G: one segment for each byte of each sample, the most significant first."""
    size = layout.bits_allocated // 8
    if layout.bits_allocated == 1 or layout.kind == "f":
        raise _undecodable()
    header = np.frombuffer(data, "<u4", 16)
    count, starts = int(header[0]), [int(value) for value in header[1:]]
    if layout.rows * layout.columns > 64 * len(data):  # two bytes make 128 at most
        raise _undecodable()
    if count != size * layout.samples or starts[0] != 64 or sorted(starts[:count]) != starts[:count]:
        raise _undecodable()
    stops = [*starts[1:count], len(data)]
    pixels = layout.rows * layout.columns
    planes = np.empty((layout.samples, pixels, size), np.uint8)
    for index, (start, stop) in enumerate(zip(starts, stops, strict=False)):
        sample, byte = divmod(index, size)
        planes[sample, :, size - 1 - byte] = _segment(data[start:stop], pixels)
    words = planes.view(f"<u{size}").reshape(layout.samples, layout.rows, layout.columns)
    return np.moveaxis(words, 0, -1) if layout.samples > 1 else words[0]


def _segment(data: bytes, pixels: int) -> Array:
    """One byte plane; a segment may end with zeros that pad it, each two of which read as a byte of 0."""
    plane = bytearray(pixels + MAX_PADDING_BYTES // 2)
    beyond = len(imagecodecs.packbits_decode(data, out=plane)) - pixels
    if beyond < 0 or any(data[len(data) - 2 * beyond :]):
        raise _undecodable()
    return np.frombuffer(plane, np.uint8, pixels)


def _jpeg(data: bytes, stream: Stream) -> Array:
    """Components as they are coded: naming the same colour space for both ends turns the conversion off."""
    colour = "GRAYSCALE" if len(stream.components) == 1 else "YCBCR"
    return imagecodecs.jpeg8_decode(data, colorspace=colour, outcolorspace=colour)


def _jpeg_lossless(data: bytes, stream: Stream) -> Array:
    colour = "GRAYSCALE" if len(stream.components) == 1 else "RGB"
    return imagecodecs.jpeg8_decode(data, colorspace=colour, outcolorspace=colour)


def _jpeg_ls(data: bytes, _stream: Stream) -> Array:
    return imagecodecs.jpegls_decode(data)


def _jpeg_2000(data: bytes, _stream: Stream) -> Array:
    return imagecodecs.jpeg2k_decode(data, numthreads=1)


DECODERS: dict[Codec, Callable[[bytes, Stream], Array]] = {
    Codec.JPEG: _jpeg,
    Codec.JPEG_LOSSLESS: _jpeg_lossless,
    Codec.JPEG_LS: _jpeg_ls,
    Codec.JPEG_2000: _jpeg_2000,
    Codec.HTJ2K: _jpeg_2000,
}
