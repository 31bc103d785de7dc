"""One frame of stored values to a lossless stream, without the comments that encoders sign with.

Every stream is decoded again and compared: no frame that the codec changes is ever written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import imagecodecs
import numpy as np

from gateway.errors import Hold
from gateway.frames.decode import FAILURES, decode_frame
from gateway.frames.layout import Array, Layout
from gateway.frames.stripping import stripped
from gateway.frames.syntaxes import HTJ2K_RPCL, Codec, TransferSyntax


def encode_frame(values: Array, layout: Layout, syntax: TransferSyntax, *, transform: bool) -> bytes:
    """`values` as `layout` has them, (rows, columns[, samples]); signed ones in two's complement of BitsAllocated.

    `transform`: JPEG 2000's reversible colour transform, for RGB only. Raises Hold("transcoding_failed") for what the
    codec cannot write without a change.
    """
    if layout.kind == "f" or layout.bits_allocated == 1:
        raise Hold("transcoding_failed", at="(0028,0100): float, or one bit a pixel")
    words = np.ascontiguousarray(values, layout.dtype)
    if syntax.codec in UNSIGNED_ONLY:
        words = words.view(f"u{layout.bits_allocated // 8}")
    bits = layout.bits_allocated if layout.signed else layout.bits_stored
    try:
        data = stripped(
            bytes(ENCODERS[syntax.codec](words, bits, transform and layout.samples == 3, syntax)), syntax.codec
        )
        back = decode_frame(data, syntax.codec, replace(layout, planar=0))
    except (*FAILURES, Hold):
        raise Hold("transcoding_failed", at="(7FE0,0010): the codec cannot write a frame") from None
    if not np.array_equal(back.astype(words.dtype, casting="unsafe"), words):
        raise Hold("transcoding_failed", at="(7FE0,0010): the codec changes a frame")
    return data


def _run_lengths(words: Array, _bits: int, _transform: bool, _syntax: TransferSyntax) -> bytes | bytearray:  # noqa: FBT001
    """PS3.5 Annex G: byte planes, each row packed on its own, segments of even length."""
    planes = np.moveaxis(words, -1, 0) if words.ndim == 3 else words[None]
    size = words.dtype.itemsize
    if len(planes) * size > 15:
        raise ValueError
    segments = []
    for plane in planes:
        octets = np.ascontiguousarray(plane).astype(words.dtype.newbyteorder(">")).view(np.uint8)
        for byte in range(size):
            rows = np.ascontiguousarray(octets[:, byte::size])
            segment = b"".join(imagecodecs.packbits_encode(row.tobytes()) for row in rows)
            segments.append(segment + bytes(len(segment) & 1))
    starts = np.zeros(16, "<u4")
    starts[0] = len(segments)
    starts[1 : len(segments) + 1] = 64 + np.cumsum([0, *(len(segment) for segment in segments[:-1])])
    return starts.tobytes() + b"".join(segments)


def _jpeg_lossless(words: Array, bits: int, _transform: bool, _syntax: TransferSyntax) -> bytes | bytearray:  # noqa: FBT001
    """Process 14 with predictor 1, which is Selection Value 1 as well."""
    colour = "RGB" if words.ndim == 3 else "GRAYSCALE"
    width = words.dtype.itemsize * 8
    bits = min(max(bits, 2 if width == 8 else 9), width)  # a precision of up to 8 bits is one of bytes
    return imagecodecs.jpeg8_encode(
        words, lossless=True, predictor=1, bitspersample=bits, colorspace=colour, outcolorspace=colour
    )


def _jpeg_ls(words: Array, _bits: int, _transform: bool, _syntax: TransferSyntax) -> bytes | bytearray:  # noqa: FBT001
    return imagecodecs.jpegls_encode(words, out=2 * words.nbytes + 4096)  # noise grows


def _jpeg_2000(words: Array, bits: int, transform: bool, _syntax: TransferSyntax) -> bytes | bytearray:  # noqa: FBT001
    return imagecodecs.jpeg2k_encode(
        words, codecformat="j2k", level=0, reversible=True, bitspersample=bits, mct=transform, numthreads=1
    )


def _htj2k(words: Array, _bits: int, transform: bool, syntax: TransferSyntax) -> bytes | bytearray:  # noqa: FBT001
    return imagecodecs.htj2k_encode(words, reversible=True, rgb=transform, tlm=syntax.uid == HTJ2K_RPCL)


UNSIGNED_ONLY = frozenset({Codec.RLE, Codec.JPEG_LOSSLESS, Codec.JPEG_LS})
ENCODERS: dict[Codec, Callable[[Array, int, bool, TransferSyntax], bytes | bytearray]] = {
    Codec.RLE: _run_lengths,
    Codec.JPEG_LOSSLESS: _jpeg_lossless,
    Codec.JPEG_LS: _jpeg_ls,
    Codec.JPEG_2000: _jpeg_2000,
    Codec.HTJ2K: _htj2k,
}
