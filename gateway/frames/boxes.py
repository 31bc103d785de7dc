"""Rectangles of pixels to be redacted, and what they are filled with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydicom.dataset import Dataset

from gateway.errors import Hold
from gateway.frames import showing
from gateway.frames.layout import Array, Layout
from gateway.frames.source import PYDICOM_FAILURES

EVERY_FRAME = -1


@dataclass(frozen=True, slots=True)
class Box:
    """Half open, in pixels: rows [top, bottom), columns [left, right). `frame` counts from 0; -1 is every frame."""

    frame: int
    top: int
    left: int
    bottom: int
    right: int


Boxes = Mapping[int, tuple[Box, ...]]


def by_frame(boxes: Iterable[Box], layout: Layout) -> Boxes:
    """The boxes of each frame that has some, cut to the picture. Raises ValueError for a frame that is not there."""
    found: dict[int, list[Box]] = {}
    for box in boxes:
        if not EVERY_FRAME <= box.frame < layout.frames:
            raise ValueError("a box for a frame that is not there")
        top, left = max(box.top, 0), max(box.left, 0)
        bottom, right = min(box.bottom, layout.rows), min(box.right, layout.columns)
        if top >= bottom or left >= right:
            continue
        for frame in range(layout.frames) if box.frame == EVERY_FRAME else (box.frame,):
            found.setdefault(frame, []).append(Box(frame, top, left, bottom, right))
    return {frame: tuple(found[frame]) for frame in sorted(found)}


def fill_of(values: Array, layout: Layout, dataset: Dataset) -> tuple[int | float, ...]:
    """What looks black in this frame, one stored value for each sample. Raises Hold for a broken palette.

    Unsigned grey: the end of the range. Signed and float grey: the darkest value of the frame, or 0 where that is
    darker, so that a viewer that stretches the range shows the rest as before. Palette: the darkest entry.
    """
    if layout.photometric == "PALETTE COLOR":
        return (_darkest_entry(layout, dataset),)
    if layout.samples == 3:
        if layout.photometric == "RGB":
            return 0, 0, 0
        grey = 1 << (layout.bits_stored - 1)
        dark = grey >> 3 if layout.photometric.startswith("YBR_PARTIAL") else 0
        return dark, grey, grey
    high = (layout.photometric == "MONOCHROME1") is not _falling(dataset)
    if layout.kind == "u":
        return (layout.limits[1 if high else 0],)
    finite = values[np.isfinite(values)] if layout.kind == "f" else values
    ends = finite.max(initial=0) if high else finite.min(initial=0)
    return (float(ends) if layout.kind == "f" else int(ends),)


def _falling(dataset: Dataset) -> bool:
    """True when a larger stored value means less (a negative Rescale Slope)."""
    try:
        return float(dataset.get("RescaleSlope") or 1) < 0
    except PYDICOM_FAILURES:
        return False


def _darkest_entry(layout: Layout, dataset: Dataset) -> int:
    """The first stored value that shows as the darkest colour."""
    low, high = layout.limits
    try:
        entries, first, _ = (int(number) for number in dataset["RedPaletteColorLookupTableDescriptor"].value)
    except PYDICOM_FAILURES:
        raise Hold("pixels_unreadable", at="(0028,1101): the palette") from None
    if layout.signed and first > 0x7FFF:
        first -= 0x10000
    start = min(max(first, low), high)
    values = np.arange(start, min(start + (entries or 0x10000), high + 1), dtype=layout.dtype)
    colours = showing.shown(values.reshape(1, -1), layout, dataset)[0].astype(np.uint32)
    return int(values[np.argmin(colours @ np.array([299, 587, 114], np.uint32))])


def filled(values: Array, boxes: Sequence[Box], fill: tuple[int | float, ...]) -> Array:
    """A copy of one frame's stored values with the boxes filled."""
    out = values.copy()
    for box in boxes:
        out[box.top : box.bottom, box.left : box.right] = fill if out.ndim == 3 else fill[0]
    return out
