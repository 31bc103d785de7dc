"""What the header says of the pixels (PS3.3 C.7.6.3), checked before anything is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from gateway.errors import Hold
from gateway.frames.elements import DOUBLE_PIXELS, FLOAT_PIXELS
from gateway.frames.source import PYDICOM_FAILURES

Array = NDArray[Any]
MAX_FRAME_BYTES = 1 << 29  # one decoded frame; JPEG 2000 takes four times as much while it decodes
MAX_FRAMES = 1 << 24
SAMPLES_OF = {
    **dict.fromkeys(("MONOCHROME1", "MONOCHROME2", "PALETTE COLOR"), 1),
    **dict.fromkeys(("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_PARTIAL_422", "YBR_PARTIAL_420", "YBR_ICT", "YBR_RCT"), 3),
}
HALF_CHROMA = ("YBR_FULL_422", "YBR_PARTIAL_422")


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes in pixels, depths in bits. `kind` is "u" or "i" for integers, "f" for float pixel data."""

    frames: int
    rows: int
    columns: int
    samples: int
    bits_allocated: int
    bits_stored: int
    high_bit: int
    kind: str
    photometric: str
    planar: int

    @property
    def signed(self) -> bool:
        return self.kind == "i"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one decoded frame."""
        return (self.rows, self.columns) if self.samples == 1 else (self.rows, self.columns, self.samples)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of one decoded frame, in this machine's byte order. One bit is a byte of 0 or 1."""
        return np.dtype(f"{self.kind}{max(self.bits_allocated // 8, 1)}")

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest stored value of integer pixels."""
        if self.signed:
            return -(1 << (self.bits_stored - 1)), (1 << (self.bits_stored - 1)) - 1
        return 0, (1 << self.bits_stored) - 1

    @property
    def frame_bits(self) -> int:
        """Bits of one native frame, before the pad byte."""
        bits = self.rows * self.columns * self.samples * self.bits_allocated
        return bits * 2 // 3 if self.photometric in HALF_CHROMA else bits


def layout_of(dataset: Dataset, pixel_tag: int) -> Layout:
    """Read and check the Image Pixel module. Raises Hold("pixels_unreadable") for what cannot be."""
    rows, columns = _number(dataset, "Rows"), _number(dataset, "Columns")
    samples = _number(dataset, "SamplesPerPixel", 1)
    bits = _number(dataset, "BitsAllocated")
    frames = _number(dataset, "NumberOfFrames", 1)
    photometric = _text(dataset, "PhotometricInterpretation")
    if pixel_tag in (FLOAT_PIXELS, DOUBLE_PIXELS):
        stored, high, kind = bits, bits - 1, "f"
        if bits != (32 if pixel_tag == FLOAT_PIXELS else 64):
            raise _unfit("BitsAllocated")
    else:
        stored = _number(dataset, "BitsStored", bits)
        high = _number(dataset, "HighBit", stored - 1)
        kind = "i" if _number(dataset, "PixelRepresentation", 0) else "u"
        if bits not in (1, 8, 16, 32, 64):
            raise _unfit("BitsAllocated")
    if not 1 <= stored <= bits or not stored - 1 <= high < bits:
        raise _unfit("BitsStored")
    if not rows or not columns or not 1 <= frames <= MAX_FRAMES:
        raise _unfit("Rows, Columns or NumberOfFrames")
    if SAMPLES_OF.get(photometric) != samples or (kind == "f" and samples != 1):
        raise _unfit("PhotometricInterpretation")
    if rows * columns * samples * max(bits // 8, 1) > MAX_FRAME_BYTES:
        raise _unfit("Rows and Columns: larger than this machine decodes")
    if photometric in HALF_CHROMA and (bits != 8 or kind != "u"):
        raise _unfit("BitsAllocated")
    planar = _number(dataset, "PlanarConfiguration", 0) if samples > 1 else 0
    if planar not in (0, 1):
        raise _unfit("PlanarConfiguration")
    return Layout(frames, rows, columns, samples, bits, stored, high, kind, photometric, planar)


def _unfit(what: str) -> Hold:
    return Hold("pixels_unreadable", at=f"the image pixel module: {what}")


def _number(dataset: Dataset, keyword: str, missing: int | None = None) -> int:
    try:
        value = dataset.get(keyword)
        if value is None or value == "":
            if missing is None:
                raise _unfit(keyword)
            return missing
        return int(value)
    except PYDICOM_FAILURES:
        raise _unfit(keyword) from None


def _text(dataset: Dataset, keyword: str) -> str:
    try:
        return str(dataset.get(keyword) or "").strip()
    except PYDICOM_FAILURES:
        raise _unfit(keyword) from None
