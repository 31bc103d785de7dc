"""The grey pictures in which a frame is looked at: everything in it that somebody could make visible.

A view is (rows, columns) of float32 in the frame's own values. Colour gives two, the brightest and the darkest of its
channels, because text may differ from its background in one channel only; a palette gives its indices too, because
another palette shows what this one hides. Bits that no viewer shows are a view of their own; so are, of floats, the
many ways to write what is no number and the two to write zero. Polarity does not matter (MONOCHROME1): `flat` and the
readers take both.

    window   the range between two extreme percentiles, as a viewer would open the frame
    flat     each pixel against mean and spread of its surroundings: text a few values above its background comes out
             as clear as bright text, whatever the range of the frame (12 and 16 bits, wide windows)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from gateway.gate.decoding import Words, stored_values, unused_bits
from gateway.gate.pixel_layout import Layout, Unseen
from gateway.gate.pixel_palettes import expanded
from gateway.gate.walk import Leaf, tag_path

Grey = NDArray[np.float32]
Shown = NDArray[np.uint8]

PALETTES = (  # descriptor, data, data in segments
    (0x00281101, 0x00281201, 0x00281221),
    (0x00281102, 0x00281202, 0x00281222),
    (0x00281103, 0x00281203, 0x00281223),
)
TAIL_PERCENT = 0.2
SURROUNDINGS = 12.0  # pixels, sigma: a few letters wide
FLAT_SPREADS = 3.0  # how many spreads to either side make black and white
_YBR = frozenset({"YBR_FULL", "YBR_FULL_422", "YBR_PARTIAL_422", "YBR_PARTIAL_420"})


def views(layout: Layout, words: Words, palette: NDArray[np.float32] | None = None) -> Iterator[tuple[str, Grey]]:
    """(name, view) of one frame. `palette` (entries, 3) as `palette_of` gives it."""
    if layout.kind == "float":
        whole = words.astype(np.float32)
        finite = np.isfinite(whole)
        lowest = float(whole[finite].min()) if finite.any() else 0.0
        values: NDArray[np.generic] = np.where(finite, whole, np.float32(lowest))
        yield from _alike(words)
    else:
        values = stored_values(layout, words)
        hidden = unused_bits(layout, words)
        if hidden is not None:
            yield from _channels("unused bits", hidden)
    if layout.photometric in _YBR and layout.samples == 3:
        values = _rgb(values.astype(np.float32), (1 << layout.stored) - 1)
    yield from _channels("values", values)
    if palette is not None and layout.samples == 1:
        yield from _channels("palette", palette[np.clip(values.astype(np.int64), 0, len(palette) - 1)])


def _alike(words: Words) -> Iterator[tuple[str, Grey]]:
    """Floats that differ in their bits alone (IEEE 754, 6.2 and 6.3): which pattern each of them has."""
    bits = np.ascontiguousarray(words.astype(words.dtype.newbyteorder("="))).view(f"u{words.dtype.itemsize}")
    for name, alike in (("what is no number", np.isnan(words)), ("zeros", words == 0)):
        patterns, which = np.unique(bits[alike], return_inverse=True)
        if len(patterns) > 1:
            plane = np.zeros(words.shape, np.float32)
            plane[alike] = which + (0 if alike.all() else 1)
            yield from _channels(name, plane)


def _channels(name: str, values: NDArray[np.generic]) -> Iterator[tuple[str, Grey]]:
    if values.ndim == 2:
        yield name, values.astype(np.float32)
        return
    high, low = values.max(axis=2).astype(np.float32), values.min(axis=2).astype(np.float32)
    yield f"{name}, brightest channel", high
    if not np.array_equal(high, low):
        yield f"{name}, darkest channel", low


def _rgb(ybr: NDArray[np.float32], top: int) -> NDArray[np.float32]:
    """PS3.3 C.7.6.3.1.2, YBR_FULL."""
    half = np.float32((top + 1) // 2)
    luma, blue, red = ybr[..., 0], ybr[..., 1] - half, ybr[..., 2] - half
    rgb = np.stack([luma + 1.402 * red, luma - 0.344136 * blue - 0.714136 * red, luma + 1.772 * blue], axis=-1)
    return np.asarray(np.clip(rgb, 0, top), np.float32)


def palette_of(layout: Layout, by_path: Mapping[str, Leaf]) -> NDArray[np.float32] | None:
    """(entries, 3) of the lookup tables beside the samples (PS3.3 C.7.6.3.1.5), None where there are none.

    Index 0 stands for the first value mapped; a view clips, as viewers do. Raises Unseen for tables it cannot read.
    """
    if layout.photometric != "PALETTE COLOR":
        return None
    columns = []
    order = ">" if layout.big else "<"
    for descriptor, data, segments in PALETTES:
        head = by_path.get(layout.prefix + tag_path(descriptor))
        whole, parts = (by_path.get(layout.prefix + tag_path(tag)) for tag in (data, segments))
        body = parts if whole is None else whole
        if head is None or body is None or head.size < 6:
            raise Unseen(layout.place, "a palette that cannot be read")
        count, first, bits = np.frombuffer(head.raw[:6], f"{order}u2").tolist()
        count = count or 1 << 16
        first = first - 0x10000 if layout.signed and first & 0x8000 else first
        if bits != 8 and body.size % 2:
            raise Unseen(layout.place, "a palette that cannot be read")
        wide = np.frombuffer(body.raw, np.uint8 if bits == 8 else f"{order}u2")
        if whole is None:
            try:
                table = np.array(expanded(wide.tolist()))
            except ValueError:
                raise Unseen(layout.place, "a palette that cannot be read") from None
        elif body.size in (count, count + count % 2) and bits == 8:
            table = wide[:count]
        elif body.size == 2 * count:
            table = np.frombuffer(body.raw, f"{order}u2")
        else:
            raise Unseen(layout.place, "a palette that cannot be read")
        if len(table) != count or (whole is not None and parts is not None):
            raise Unseen(layout.place, "a palette that cannot be read")
        if first < 0 or first > 0xFFFF:
            raise Unseen(layout.place, "a palette that cannot be read")
        columns.append(np.concatenate([np.full(first, table[0]), table]).astype(np.float32))
    if len({column.size for column in columns}) != 1:
        raise Unseen(layout.place, "a palette that cannot be read")
    return np.stack(columns, axis=-1)


def window(view: Grey) -> Shown:
    """0 to 255 between the extreme percentiles; all zero for a picture of one value."""
    low, high = np.percentile(view, (TAIL_PERCENT, 100 - TAIL_PERCENT))
    if high <= low:
        low, high = float(view.min()), float(view.max())
    if high <= low:
        return np.zeros(view.shape, np.uint8)
    return np.asarray(np.clip((view - low) * (255 / (high - low)), 0, 255), np.uint8)


def flat(view: Grey, *, step: float = 1.0) -> Shown:
    """Contrast against the surroundings; 128 where nothing differs. `step` is the smallest difference of values."""
    import cv2

    mean = cv2.GaussianBlur(view, (0, 0), SURROUNDINGS)
    apart = view - mean
    spread = np.sqrt(cv2.GaussianBlur(apart * apart, (0, 0), SURROUNDINGS)) + np.float32(0.25 * step)
    return np.asarray(np.clip(128 + apart / spread * (127 / FLAT_SPREADS), 0, 255), np.uint8)
