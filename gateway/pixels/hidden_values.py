"""Stored values that differ, and show as the same: text between them is invisible until somebody turns a knob.

Palette: values whose entries agree in the eight bits that are displayed become the first of them (PS3.3 C.7.6.3.1.5,
C.7.6.3.1.6). Padding: values of the padding range, which are no picture, become the padding value (PS3.3 C.7.5.1.1.2).
Floats: all that is no number becomes as the first such value of its frame, and both zeros one (IEEE 754, 6.2 and 6.3).
None of it changes what any viewer shows. Segments are not touched: there a value is a name, not a shade.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.frames.layout import Array, Layout
from gateway.frames.showing import shown
from gateway.frames.source import PYDICOM_FAILURES
from gateway.frames.tidying import Canonical

SEGMENTATIONS = frozenset({"1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7"})
MAX_PALETTE_BITS = 16


def look_alikes(image: EncodedImage) -> Canonical | None:
    """What makes equal what shows as equal; None where every value has its own look. Raises Hold."""
    layout = image.layout
    if layout is None or str(image.dataset.get("SOPClassUID")) in SEGMENTATIONS:
        return None
    if layout.photometric == "PALETTE COLOR":
        return _palette(image, layout)
    if layout.kind == "f":
        return one_way_to_write
    if layout.samples == 1:
        return _padding(image, layout)
    return None


def one_way_to_write(stored: Array) -> Array:
    """Floats with one pattern of bits for what is no number, and one for zero."""
    bits = stored.view(f"u{stored.dtype.itemsize}")
    nothing = np.isnan(stored)
    same = np.where(stored == 0, bits.dtype.type(0), bits)
    if nothing.any():
        same[nothing] = bits[nothing][0]
    return same.view(stored.dtype)


def _palette(image: EncodedImage, layout: Layout) -> Canonical | None:
    """Every stored value -> the first one that shows as the same colour."""
    if layout.bits_stored > MAX_PALETTE_BITS:
        raise Hold("pixels_unreadable", at="(0028,0101): more bits than a palette has entries")
    low, high = layout.limits
    values = np.arange(low, high + 1, dtype=layout.dtype)
    colours = shown(values.reshape(1, -1), layout, image.dataset)[0]
    _, first, group = np.unique(colours, axis=0, return_index=True, return_inverse=True)
    same: NDArray[np.generic] = values[first[group.reshape(-1)]]
    if np.array_equal(same, values):
        return None

    def canonical(stored: Array) -> Array:
        return same[stored.astype(np.int64) - low]

    return canonical


def _padding(image: EncodedImage, layout: Layout) -> Canonical | None:
    """The padding range, where there is one and it is wider than one value."""
    try:
        value, limit = image.dataset.get("PixelPaddingValue"), image.dataset.get("PixelPaddingRangeLimit")
        if value is None or limit is None:
            return None
        padding, other = int(value), int(limit)
    except PYDICOM_FAILURES:
        raise Hold("pixels_unreadable", at="(0028,0120)") from None
    first, last = max(min(padding, other), layout.limits[0]), min(max(padding, other), layout.limits[1])
    if first >= last or not layout.limits[0] <= padding <= layout.limits[1]:
        return None

    def canonical(stored: Array) -> Array:
        return np.where((stored >= first) & (stored <= last), layout.dtype.type(padding), stored)

    return canonical
