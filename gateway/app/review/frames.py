"""One frame as a PNG for a reviewer's screen, and what the objects of a study are. Runs in a worker process: what
cannot be decoded, or breaks a decoder, is one answer less.

Grey keeps its stored values, in 16 bits where they do not fit into 8; colour is shown as 8-bit RGB.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pydicom
from numpy.typing import NDArray
from PIL import Image
from pydicom._uid_dict import UID_dictionary

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.frames.source import PYDICOM_FAILURES
from gateway.pseudonyms import Keys

LEVELS = 65535
COMPRESSION = 1  # loopback is faster than zlib


@dataclass(frozen=True, slots=True)
class Rendered:
    """stored value = sample * `step` + `low`; `inverted` where a larger value is darker. Colour has no values."""

    png: bytes
    low: float = 0.0
    step: float = 1.0
    inverted: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What one original is: keyed name of its series, place in it, size. `trouble` is a reason code."""

    series_key: str
    number: int
    kind: str
    frames: int = 0
    rows: int = 0
    columns: int = 0
    trouble: str = ""


def render(path: Path, frame: int) -> Rendered:
    """Raises Hold for pixels that cannot be decoded, and for a frame that is not there."""
    with EncodedImage.open(path) as image:
        layout = image.layout
        if layout is None or not 0 <= frame < layout.frames:
            raise Hold("pixels_unreadable", at=f"frame {frame}")
        if layout.samples == 3 or layout.photometric == "PALETTE COLOR":
            return Rendered(_png(image.shown(frame)))
        grey, low, step = _grey(image.stored(frame))
        return Rendered(_png(grey), low, step, inverted=layout.photometric == "MONOCHROME1")


def _grey(values: NDArray[np.generic]) -> tuple[NDArray[np.uint8] | NDArray[np.uint16], float, float]:
    """Samples, low, step: exact where the frame's values span at most 65536, else in equal steps.

    `low` is 0 wherever it may be, so that both sides of a comparison are told alike.
    """
    if values.dtype.kind == "f":
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        step = (high - low) / LEVELS or 1.0
        scaled = (np.nan_to_num(values.astype(np.float64), nan=low, posinf=high, neginf=low) - low) / step
        return np.clip(np.rint(scaled), 0, LEVELS).astype(np.uint16), low, step
    least, most = int(values.min()), int(values.max())
    if least >= 0 and most <= 255 and values.dtype.itemsize == 1:
        return values.astype(np.uint8), 0.0, 1.0
    if least >= 0 and most <= LEVELS:
        return values.astype(np.uint16), 0.0, 1.0
    base = -32768 if least >= -32768 and most < 32768 else least
    if most - base <= LEVELS:
        return (values.astype(np.int64) - base).astype(np.uint16), float(base), 1.0
    step = (most - least) / LEVELS
    scaled = (values.astype(np.float64) - least) / step
    return np.clip(np.rint(scaled), 0, LEVELS).astype(np.uint16), float(least), step


def _png(pixels: NDArray[np.uint8] | NDArray[np.uint16]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=COMPRESSION)
    return buffer.getvalue()


def facts_of_each(originals: Sequence[Path], master: bytes) -> list[Facts]:
    """`facts_of` for several."""
    return [facts_of(path, master) for path in originals]


def facts_of(original: Path, master: bytes) -> Facts:
    """What an original is, without any value that identifies. Never raises for what is in the file."""
    keys = Keys(master)
    try:
        words = ["SeriesInstanceUID", "InstanceNumber", "SOPClassUID"]
        header = pydicom.dcmread(original, stop_before_pixels=True, specific_tags=words, force=True)
        series, uid = str(header.get("SeriesInstanceUID") or ""), str(header.get("SOPClassUID") or "")
        number = str(header.get("InstanceNumber") or "").strip()
    except (OSError, zlib.error, *PYDICOM_FAILURES):
        return Facts("", 0, "unreadable", trouble="unreadable_object")
    kind = UID_dictionary[uid][0].removesuffix(" Storage") if uid in UID_dictionary else "unknown kind"
    plain = Facts(keys.opaque("series", series), int(number) if number.isdecimal() and len(number) < 8 else 0, kind)
    try:
        with EncodedImage.open(original) as image:
            return Facts(plain.series_key, plain.number, kind, image.frames, image.rows, image.columns)
    except Hold as hold:
        return Facts(plain.series_key, plain.number, kind, trouble=hold.reason)
    except OSError:
        return Facts(plain.series_key, plain.number, kind, trouble="file_unreadable")
