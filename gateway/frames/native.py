"""Native pixel data (PS3.5 8.1, 8.2, Annex D): one frame out of the mapped bytes, and back.

Where a frame begins is a bit offset: frames of one bit a pixel follow each other without padding (PS3.5 8.1.1).
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.frames.layout import HALF_CHROMA, Array, Layout

RINGING = 0.25  # of the range of values


def check_length(layout: Layout, length: int) -> Layout:
    """The layout that `length` bytes have, and that the header may have mislabelled. Raises Hold("pixels_unreadable").

    YBR_FULL_422 that is as long as three full samples, or YBR_FULL as long as half chroma, is read by its length; any
    other length holds when bytes lack. Bytes beyond the last frame are left out.
    """
    full, half = replace(layout, photometric="YBR_FULL"), replace(layout, photometric="YBR_FULL_422")
    if layout.photometric == "YBR_FULL_422" and _fits(full, length):
        return full
    if layout.photometric == "YBR_FULL" and _fits(half, length) and layout.bits_allocated == 8:
        layout = half
    if layout.photometric in HALF_CHROMA and (layout.columns % 2 or layout.planar):
        raise Hold("pixels_unreadable", at="(0028,0004): half chroma of an odd number of columns, or by plane")
    if length < byte_length(layout):
        raise Hold("pixels_unreadable", at="(7FE0,0010): shorter than the image pixel module says")
    return layout


def byte_length(layout: Layout) -> int:
    """Bytes of all frames without the pad byte."""
    return (layout.frames * layout.frame_bits + 7) // 8


def _fits(layout: Layout, length: int) -> bool:
    return 0 <= length - byte_length(layout) <= 1


def octets(data: memoryview, start: int, stop: int, *, swapped: bool) -> NDArray[np.uint8]:
    """Bytes [start, stop). `swapped`: they come in big-endian 16-bit words (OW of 8 bits or fewer, PS3.5 7.3)."""
    if not swapped:
        return np.frombuffer(data, np.uint8, stop - start, start)
    low, high = start - start % 2, min(stop + stop % 2, len(data))
    pairs = np.frombuffer(data, np.uint8, high - low, low)
    if (high - low) % 2:
        pairs = np.append(pairs, np.uint8(0))
    return pairs.reshape(-1, 2)[:, ::-1].reshape(-1)[start - low : stop - low]


def words_of(data: memoryview, layout: Layout, frame: int, *, big: bool, swapped: bool = False) -> Array:
    """One frame as it is stored, (rows, columns[, samples]): every allocated bit, unsigned; float stays float.

    Half chroma comes out with every chroma sample twice.
    """
    if layout.bits_allocated == 1:
        first = frame * layout.frame_bits
        start, skip = divmod(first, 8)
        packed = octets(data, start, (first + layout.frame_bits + 7) // 8, swapped=swapped)
        flat: Array = np.unpackbits(packed, bitorder="little")[skip : skip + layout.frame_bits]
    else:
        size = layout.frame_bits // 8
        dtype = np.dtype(f"{'f' if layout.kind == 'f' else 'u'}{layout.bits_allocated // 8}")
        raw = octets(data, frame * size, (frame + 1) * size, swapped=swapped)
        flat = raw.view(dtype.newbyteorder(">" if big else "<")).astype(dtype)
    if layout.photometric in HALF_CHROMA:
        return _full_chroma(flat.reshape(layout.rows, layout.columns // 2, 4))
    if layout.samples > 1 and layout.planar:
        return np.moveaxis(flat.reshape(layout.samples, layout.rows, layout.columns), 0, -1)
    return flat.reshape(layout.shape)


def _full_chroma(pairs: Array) -> Array:
    """(rows, columns / 2, [Y1 Y2 Cb Cr]) -> (rows, columns, [Y Cb Cr]) (PS3.3 C.7.6.3.1.2)."""
    rows, half, _ = pairs.shape
    out = np.empty((rows, half * 2, 3), pairs.dtype)
    out[:, 0::2, 0], out[:, 1::2, 0] = pairs[..., 0], pairs[..., 1]
    out[:, 0::2, 1:] = out[:, 1::2, 1:] = pairs[..., 2:]
    return out


def values_of(words: Array, layout: Layout) -> Array:
    """Stored values out of allocated words: bits outside Bits Stored masked away, sign extended."""
    if layout.kind == "f" or layout.bits_allocated == 1:
        return words
    low = layout.high_bit - layout.bits_stored + 1
    if low or layout.bits_stored < layout.bits_allocated:
        words = (words >> low) & words.dtype.type((1 << layout.bits_stored) - 1)
    if not layout.signed:
        return words
    unused = layout.bits_allocated - layout.bits_stored
    return (words << unused).view(layout.dtype) >> unused


def without_ringing(words: Array, layout: Layout) -> Array | None:
    """Stored values of whole words of a lossy frame: those beyond the range of Bits Stored become its ends.

    None when one lies further beyond than wavelets swing at an edge: then it is something else in the bits above.
    """
    low, high = layout.limits
    whole = words.view(layout.dtype)
    reach = int((high - low) * RINGING)
    if int(whole.min()) < low - reach or int(whole.max()) > high + reach:
        return None
    clipped: Array = np.clip(whole, low, high)
    return clipped


def words_from(values: Array, layout: Layout) -> Array:
    """Allocated words of stored values, not for one bit a pixel: unused bits are 0, of signed values the sign.

    Readers that take the whole word for the value get the value (PS3.5 8.1.1 leaves unused bits open).
    """
    if layout.kind == "f":
        return values.astype(layout.dtype, copy=False)
    words = values.astype(layout.dtype, copy=False).view(f"u{layout.bits_allocated // 8}")
    low = layout.high_bit + 1 - layout.bits_stored
    if layout.signed and not low:
        return words
    if layout.bits_stored < layout.bits_allocated:
        words = (words & words.dtype.type((1 << layout.bits_stored) - 1)) << low
    return words


def frame_bytes(values: Array, layout: Layout, *, big: bool = False) -> bytes:
    """Stored values of one frame as native bytes; not for one bit a pixel (`BitPacker`), nor for half chroma."""
    words = words_from(values, layout)
    if layout.samples > 1 and layout.planar:
        words = np.moveaxis(words, -1, 0)
    if big is (sys.byteorder == "little"):
        words = words.byteswap()
    return np.ascontiguousarray(words).tobytes()


class BitPacker:
    """Packs frames of one bit a pixel, which share bytes; `finish` gives the last, partly filled one."""

    def __init__(self, layout: Layout) -> None:
        self._planar = layout.samples > 1 and layout.planar == 1
        self._rest = np.zeros(0, np.uint8)

    def add(self, values: Array) -> bytes:
        """The whole bytes that are complete with this frame."""
        bits = np.moveaxis(values, -1, 0) if self._planar else values
        joined = np.concatenate([self._rest, bits.reshape(-1).astype(np.uint8)])
        whole = len(joined) // 8 * 8
        self._rest = joined[whole:]
        return np.packbits(joined[:whole], bitorder="little").tobytes()

    def finish(self) -> bytes:
        return np.packbits(self._rest, bitorder="little").tobytes()
