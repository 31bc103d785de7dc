"""Every frame as the words that it is made of, read twice where it is compressed.

Two decoders read each compressed frame: GDCM, and a codec called directly with settings of its own, no code of the
rooms that the gate judges. A viewer uses one or the other, so a picture that they do not agree upon is none:

    JPEG, lossless JPEG       GDCM (IJG)       libjpeg-turbo, jpegsof3
    JPEG-LS, JPEG 2000        GDCM             CharLS, OpenJPEG of imagecodecs
    HTJ2K                     OpenJPH          OpenJPEG (GDCM has none)
    RLE                       GDCM             byte runs unpacked here (GDCM mixes up colour of 16 bits: imagecodecs)

Lossless coding must agree exactly. Lossy JPEG and JPEG 2000 leave the last digit of a transform to the decoder:
`LOSSY_TOLERANCE` of the range. Native words are read here and by nobody else. Sizes are checked before any decoder sees
a codestream (`decoding_codestream`); a decoder that dies on hostile bytes takes its worker with it, which holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gateway.gate.decoding_codestream import (
    HTJ2K,
    JPEG,
    JPEG_2000,
    JPEG_LOSSLESS,
    JPEG_LS,
    RLE,
    Facts,
    examine,
    segment_bounds,
    unpack_bits,
)
from gateway.gate.pixel_layout import Layout, Unseen
from gateway.gate.walk import Leaf

LOSSY = frozenset({*JPEG, "1.2.840.10008.1.2.4.91", "1.2.840.10008.1.2.4.203"})
LOSSY_TOLERANCE = 4 / 256  # of the range of the codestream's precision

Words = NDArray[np.generic]


class Frames:
    """The frames of one layout, read one at a time."""

    def __init__(self, layout: Layout, leaves: Sequence[Leaf], streams: Sequence[Sequence[Leaf]] | None) -> None:
        """`leaves` as `pixel_layout.images` gives them; `streams` as `frame_streams` does, None for native samples.

        Raises Unseen when a native value is not as long as its layout.
        """
        self.layout, self._streams = layout, streams
        if streams is None:
            self._value = leaves[0]
            whole = (layout.frame_bits * layout.frames + 7) // 8
            if self._value.size not in (whole, whole + whole % 2):
                raise Unseen(layout.place, "the value is not as long as rows, columns, frames and bits say")

    def words(self, frame: int) -> Words:
        """Frame `frame` (from 0) as (rows, columns) or (rows, columns, samples), whole words without a sign.

        Floats as floats. Raises Unseen for a frame that cannot be decoded, or that two decoders see differently.
        """
        if self._streams is None:
            return self._native(frame)
        place = f"{self.layout.place} frame {frame}"
        stream = b"".join(leaf.raw for leaf in self._streams[frame])
        facts = examine(self.layout, stream, place)
        first, second = _decoded(self.layout, stream, facts, place)
        if not _agree(self.layout, facts, first, second):
            raise Unseen(place, "two decoders do not agree upon the picture")
        return second

    def _native(self, frame: int) -> Words:
        layout, value = self.layout, self._value
        bits = layout.frame_bits
        order = ">" if layout.big else "<"
        if layout.allocated == 1:
            first, end = bits * frame, bits * (frame + 1)
            raw = value.buffer[value.start + first // 8 : value.start + (end + 7) // 8]
            flat: Words = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")[first % 8 :][:bits]
            return flat.reshape(layout.shape)
        size = bits // 8
        at = value.start + size * frame
        if layout.allocated == 8 and layout.big and value.vr == "OW":  # bytes lie swapped in words (PS3.5 8.1.2)
            start, stop = at - (at - value.start) % 2, min(value.end, at + size + 1)
            pairs = np.frombuffer(value.buffer[start : start + (stop - start) // 2 * 2], ">u2").astype("<u2")
            flat = pairs.view(np.uint8)[at - start :][:size]
        else:
            kind = "f" if layout.kind == "float" else "u"
            flat = np.frombuffer(value.buffer[at : at + size], f"{order}{kind}{layout.allocated // 8}")
        if layout.is_422:
            four = flat.reshape(layout.rows, layout.columns // 2, 4)
            luma = four[..., :2].reshape(layout.rows, layout.columns)
            return np.stack([luma, np.repeat(four[..., 2], 2, 1), np.repeat(four[..., 3], 2, 1)], axis=-1)
        if layout.samples > 1 and layout.planar:
            return np.moveaxis(flat.reshape(layout.samples, layout.rows, layout.columns), 0, -1)
        return flat.reshape(layout.shape)


def stored_values(layout: Layout, words: Words) -> NDArray[np.int64]:
    """What the words say within BitsStored, sign extended (PS3.5 8.1.1)."""
    shifted = (words.astype(np.int64) >> (layout.high + 1 - layout.stored)) & ((1 << layout.stored) - 1)
    return _signed(shifted, layout.stored) if layout.signed else shifted


def unused_bits(layout: Layout, words: Words) -> NDArray[np.int64] | None:
    """The bits outside BitsStored, put together; None when there are none, or when they only carry on the sign.

    Where most of them carry on the sign, what is given is where they do not.
    """
    if layout.kind == "float" or layout.stored == layout.allocated:
        return None
    whole = words.astype(np.int64)
    low = layout.high + 1 - layout.stored
    above = whole >> (layout.high + 1)
    below = whole & ((1 << low) - 1)
    if not below.any():
        if above.min() == above.max():
            return None
        sign = (whole >> layout.high) & 1
        carried = above ^ sign * ((1 << (layout.allocated - layout.high - 1)) - 1)
        if not carried.any():
            return None
        above = min(above, carried, key=np.count_nonzero)
    return np.asarray(above << low | below, np.int64)


def _signed(values: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    half = 1 << (bits - 1)
    return np.asarray((values ^ half) - half, np.int64)


def _decoded(layout: Layout, stream: bytes, facts: Facts, place: str) -> tuple[Words, Words]:
    """The frame by two decoders, in unsigned words. Raises Unseen when one of them fails."""
    import imagecodecs

    try:
        first = _first(layout, stream)
        if layout.syntax in JPEG:
            space = "YCBCR" if layout.samples == 3 else None  # no conversion: the samples as they are coded
            second = imagecodecs.jpeg8_decode(stream, colorspace=space, outcolorspace=space)
        elif layout.syntax in JPEG_LOSSLESS:
            second = imagecodecs.jpegsof3_decode(stream) << facts.shift  # which leaves the bits off as they are coded
        elif layout.syntax in JPEG_LS:
            second = imagecodecs.jpegls_decode(stream)
        elif layout.syntax in JPEG_2000 | HTJ2K:
            second = imagecodecs.jpeg2k_decode(stream)
        elif layout.syntax == RLE:
            second = _rle(layout, stream)
        else:
            raise Unseen(place, "a transfer syntax that cannot be looked at")
    except (RuntimeError, ValueError, TypeError, LookupError, MemoryError, NotImplementedError):
        raise Unseen(place, "the codestream cannot be decoded") from None
    second = np.ascontiguousarray(second)
    if second.shape != layout.shape or first.size != second.size or first.dtype.kind not in "iu":
        raise Unseen(place, "a decoder gives another size than the header says")
    return _unsigned(first), _unsigned(second)


def _unsigned(words: Words) -> Words:
    return words.view(f"<u{words.dtype.itemsize}")


def _agree(layout: Layout, facts: Facts, first: Words, second: Words) -> bool:
    """`first` may come by plane or by pixel: what GDCM gives of colour depends on the codec."""
    precision = facts.precision
    one, two = (_value(words, layout, facts) for words in (first, second))
    limit = int(LOSSY_TOLERANCE * (1 << precision)) if layout.syntax in LOSSY else 0
    orders: list[NDArray[np.int64]] = [one.reshape(two.shape)]
    if layout.samples > 1:
        orders.append(one.reshape(layout.samples, layout.rows, layout.columns).transpose(1, 2, 0))
    return any(int(np.abs(each - two).max()) <= limit for each in orders)


def _value(words: Words, layout: Layout, facts: Facts) -> NDArray[np.int64]:
    """By the codestream's own precision and sign, in which every decoder's container agrees."""
    values = words.astype(np.int64) & ((1 << facts.precision) - 1)
    return _signed(values, facts.precision) if facts.signed or layout.signed else values


def _first(layout: Layout, stream: bytes) -> Words:
    import imagecodecs

    if layout.syntax in HTJ2K:
        return np.ascontiguousarray(imagecodecs.htj2k_decode(stream))
    if layout.syntax == RLE and layout.samples > 1 and layout.allocated > 8:
        raw = imagecodecs.dicomrle_decode(stream, dtype=f"<u{layout.allocated // 8}")
        return np.frombuffer(raw, f"<u{layout.allocated // 8}")
    return _gdcm(layout, stream)


def _rle(layout: Layout, stream: bytes) -> Words:
    """PS3.5 G.2: one segment for each byte of each sample, the most significant byte first."""
    bounds = segment_bounds(stream)
    pixels, width = layout.rows * layout.columns, layout.allocated // 8
    planes = [np.frombuffer(unpack_bits(stream, start, end, pixels), np.uint8) for start, end in pairwise(bounds)]
    samples = [
        np.stack(planes[width * index : width * (index + 1)][::-1], axis=-1).reshape(-1).view(f"<u{width}")
        for index in range(layout.samples)
    ]
    return np.stack(samples, axis=-1).reshape(layout.shape)


def _gdcm(layout: Layout, stream: bytes) -> Words:
    """One frame by GDCM, flat. Raises ValueError when it gives nothing that fits."""
    import gdcm

    for quiet in (gdcm.Trace.DebugOff, gdcm.Trace.WarningOff, gdcm.Trace.ErrorOff):
        quiet()
    fragment = gdcm.Fragment()
    fragment.SetByteStringValue(stream)
    fragments = gdcm.SequenceOfFragments.New()
    fragments.AddFragment(fragment)
    element = gdcm.DataElement(gdcm.Tag(0x7FE0, 0x0010))
    element.SetValue(fragments.__ref__())
    image = gdcm.Image()
    image.SetNumberOfDimensions(2)
    image.SetDimensions((layout.columns, layout.rows, 1))
    image.SetDataElement(element)
    kind = gdcm.PhotometricInterpretation.GetPIType(layout.photometric)
    image.SetPhotometricInterpretation(gdcm.PhotometricInterpretation(kind))
    if layout.samples > 1:
        image.SetPlanarConfiguration(layout.planar)
    image.SetTransferSyntax(gdcm.TransferSyntax(gdcm.TransferSyntax.GetTSType(layout.syntax)))
    image.SetPixelFormat(
        gdcm.PixelFormat(layout.samples, layout.allocated, layout.stored, layout.high, int(layout.signed))
    )
    buffer = image.GetBuffer()
    if buffer is None:
        raise ValueError("not decoded")
    raw = buffer.encode("utf-8", "surrogateescape")  # char* comes as str
    width, rest = divmod(len(raw), layout.rows * layout.columns * layout.samples)
    if rest or width not in (1, 2, 4):
        raise ValueError("another size")
    return np.frombuffer(raw, f"<u{width}")
