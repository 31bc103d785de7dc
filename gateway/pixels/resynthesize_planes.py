"""Stored values of a frame as brightness, and back: grey with black at the low end, colour as red, green and blue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.frames import EncodedImage
from gateway.frames.layout import Layout
from gateway.frames.showing import FROM_YBR
from gateway.frames.syntaxes import Codec

Floats = NDArray[np.float64]
GREY = ("MONOCHROME1", "MONOCHROME2")
COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422")  # as frames are decoded: the transforms of JPEG 2000 are undone by then
TO_RGB = FROM_YBR.astype(np.float64)
TO_YBR = np.linalg.inv(TO_RGB)


def colour_written(image: EncodedImage) -> str:
    """RGB where half chroma cannot stay, because new frames are written native: YBR_FULL, which they would become, is
    no colour space of an ophthalmic photograph (PS3.3 C.8.17.2). Else "": as stored.
    """
    halved = str(image.dataset.get("PhotometricInterpretation")) == "YBR_FULL_422"
    native = image.spans is None or image.source.syntax.codec is Codec.JPEG
    return "RGB" if halved and native else ""


def layout_written(image: EncodedImage, layout: Layout) -> Layout:
    """That of new frames."""
    return replace(layout, photometric=colour_written(image) or layout.photometric)


def planes_of(values: NDArray[Any], layout: Layout) -> Floats:
    """(rows, columns) or (3, rows, columns), larger is brighter, in steps of the stored values."""
    if layout.samples == 1:
        return np.asarray(values, np.float64) * _sign(layout)
    colour = np.asarray(values, np.float64)
    if layout.photometric != "RGB":
        colour = (colour - _middle(layout)) @ TO_RGB.T
    return np.ascontiguousarray(np.moveaxis(colour.clip(*layout.limits), -1, 0))


def stored_of(planes: Floats, layout: Layout) -> NDArray[np.generic]:
    """The inverse: whole numbers within the limits of the layout, in its colour space."""
    if layout.samples == 1:
        values = planes * _sign(layout)
    else:
        values = np.moveaxis(planes.clip(*layout.limits), 0, -1)
        if layout.photometric != "RGB":
            values = values @ TO_YBR.T + _middle(layout)
    return np.rint(values).clip(*layout.limits).astype(layout.dtype)


def _sign(layout: Layout) -> int:
    """Of MONOCHROME1 the largest value is black (PS3.3 C.7.6.3.1.2)."""
    return -1 if layout.photometric == "MONOCHROME1" else 1


def _middle(layout: Layout) -> Floats:
    """Stored values of a grey without brightness: chroma has its zero in the middle (PS3.3 C.7.6.3.1.2)."""
    half = float(1 << (layout.bits_stored - 1))
    return np.array([0.0, half, half])
