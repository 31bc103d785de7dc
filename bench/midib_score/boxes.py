"""Whether burned-in text can still be seen in its box.

The challenge reads the crop with one OCR engine. Here the key holds which pixels are ink, so that nothing depends on
how well a reader reads: text shows while ink and ground differ, on any frame, by more than a tenth of what they did.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from pydicom.dataset import Dataset

_FORMATS = {(8, 0): "B", (8, 1): "b", (16, 0): "H", (16, 1): "h"}
VISIBLE = 0.1


def ink_shows(box: Mapping[str, Any], image: Dataset, pixels: bytes) -> bool:
    """`box`: top_left and bottom_right [x, y], `ink` rows as bits in hex, `contrast` in stored values."""
    rows, columns = int(image.get("Rows", 0)), int(image.get("Columns", 0))
    samples, bits = int(image.get("SamplesPerPixel", 1)), int(image.get("BitsAllocated", 8))
    code = _FORMATS.get((bits, int(image.get("PixelRepresentation", 0))))
    if code is None or not rows or not columns or not pixels:
        return False
    planar = samples > 1 and int(image.get("PlanarConfiguration", 0)) == 1
    size = rows * columns * samples
    values = struct.unpack(f"<{len(pixels) * 8 // bits}{code}", pixels[: len(pixels) * 8 // bits * bits // 8])
    (left, top), (right, bottom) = box["top_left"], box["bottom_right"]
    step = 1 if planar else samples
    for frame in range(len(values) // size):
        sums, counts = [0, 0], [0, 0]
        for y in range(top, min(bottom, rows)):
            bits_of_row = int(box["ink"][y - top], 16)
            for x in range(left, min(right, columns)):
                inked = bits_of_row >> (x - left) & 1
                sums[inked] += values[frame * size + (y * columns + x) * step]
                counts[inked] += 1
        if all(counts) and abs(sums[1] / counts[1] - sums[0] / counts[0]) > VISIBLE * box["contrast"]:
            return True
    return False
