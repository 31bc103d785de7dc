"""What a viewer shows of stored values, as 8 bits: for detectors of text and for people, never for output."""

from __future__ import annotations

import numpy as np
from pydicom.dataset import Dataset
from pydicom.pixels.processing import apply_color_lut

from gateway.errors import Hold
from gateway.frames.layout import Array, Layout
from gateway.frames.source import PYDICOM_FAILURES

CLIPPED_PERCENT = 0.1  # of the pixels at either end: a few outliers must not darken all the rest
# ITU-R BT.601 full range, (Y, Cb - 0.5, Cr - 0.5) -> RGB (PS3.3 C.7.6.3.1.2)
FROM_YBR = np.array([[1.0, 0.0, 1.402], [1.0, -0.344136, -0.714136], [1.0, 1.772, 0.0]], np.float32)


def shown(values: Array, layout: Layout, dataset: Dataset) -> Array:
    """uint8 (rows, columns), or (rows, columns, 3) as RGB. Raises Hold("pixels_unreadable") for a broken palette."""
    if layout.photometric == "PALETTE COLOR":
        return _palette(values, dataset)
    if layout.samples == 3:
        return _colour(values, layout)
    grey = _stretched(values, _padding(dataset, layout))
    return 255 - grey if layout.photometric == "MONOCHROME1" else grey


def _padding(dataset: Dataset, layout: Layout) -> tuple[float, float] | None:
    """The range of values that are no picture (PS3.3 C.7.5.1.1.2)."""
    try:
        first = dataset.get("PixelPaddingValue")
        if first is None or layout.kind == "f":
            return None
        last = dataset.get("PixelPaddingRangeLimit")
        ends = sorted((int(first), int(first if last is None else last)))
    except PYDICOM_FAILURES:
        return None
    return float(ends[0]), float(ends[1])


def _stretched(values: Array, padding: tuple[float, float] | None) -> Array:
    """The robust full range of the frame to 0..255. Padding does not count, and what is not finite is dark."""
    grey = values.astype(np.float32)
    seen = grey[np.isfinite(grey)]
    if padding is not None:
        picture = seen[(seen < padding[0]) | (seen > padding[1])]
        seen = picture if picture.size else seen
    if not seen.size:
        return np.zeros(values.shape, np.uint8)
    low, high = np.percentile(seen, (CLIPPED_PERCENT, 100 - CLIPPED_PERCENT))
    if high <= low:
        low, high = seen.min(), seen.max()
    if high <= low:
        return np.full(values.shape, 255 if low > 0 and values.dtype.itemsize == 1 else 0, np.uint8)
    scaled = np.nan_to_num((grey - low) * (255 / (high - low)), nan=0, posinf=255, neginf=0)
    shades: Array = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
    return shades


def _colour(values: Array, layout: Layout) -> Array:
    unit: Array = values.astype(np.float32) / float((1 << layout.bits_stored) - 1)
    if layout.photometric in ("YBR_PARTIAL_422", "YBR_PARTIAL_420"):
        unit = (unit * 255 - np.array([16, 128, 128], np.float32)) / np.array([219, 224, 224], np.float32)
        unit = unit @ FROM_YBR.T
    elif layout.photometric.startswith("YBR"):
        half = (1 << (layout.bits_stored - 1)) / ((1 << layout.bits_stored) - 1)
        unit = (unit - np.array([0, half, half], np.float32)) @ FROM_YBR.T
    scaled: Array = np.clip(np.rint(unit * 255), 0, 255).astype(np.uint8)
    return scaled


def _palette(values: Array, dataset: Dataset) -> Array:
    try:
        colours: Array = apply_color_lut(values, dataset)
        bits = int(dataset["RedPaletteColorLookupTableDescriptor"].value[2])
    except PYDICOM_FAILURES:
        raise Hold("pixels_unreadable", at="(0028,1101): the palette") from None
    if colours.dtype == np.uint8 or int(colours.max(initial=0)) < 1 << 8 == 1 << bits:
        return colours[..., :3].astype(np.uint8)
    return (colours[..., :3] >> 8).astype(np.uint8)
