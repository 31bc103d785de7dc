"""Small pictures, and names burned into some: a five by seven pixel font, drawn light on dark or dark on light."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterable, Sequence

from pydicom.dataset import Dataset

# Each glyph is five columns, bit 0 on top.
_COLUMNS = """
7e1111117e 7f49494936 3e41414122 7f41413e00 7f49494941 7f09090901 3e41495a00 7f0808087f 00417f4100 2040413f01
7f08142241 7f40404040 7f020c027f 7f0408107f 3e4141413e 7f09090906 3e4151215e 7f09192946 4649494931 01017f0101
3f4040403f 1f2040201f 3f4038403f 6314081463 0304780403 6151494543 3e5149453e 00427f4000 4261514946 2141454b31
1814127f10 2745454539 3c4a494930 0171090503 3649494936 064949291e 0036360000 2010080402 0808080808 0402010204
007f414100 004141417f 0060600000 0000000000
"""
_GLYPHS = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/-^[]. ",
        _COLUMNS.split(),
        strict=True,
    )
)
HEIGHT, ADVANCE = 7, 6


def ink_of(lines: Iterable[str]) -> list[int]:
    """Rows of a text block as bits, bit 0 on the left."""
    rows: list[int] = []
    for line in lines:
        columns = [
            int(code[i : i + 2], 16)
            for code in (_GLYPHS.get(letter, _GLYPHS["-"]) + "00" for letter in line.upper())
            for i in range(0, 12, 2)
        ]
        rows += [sum((column >> y & 1) << x for x, column in enumerate(columns)) for y in range(HEIGHT)]
        rows += [0, 0]
    return rows


def size_of(modality: str, *, burned: bool) -> tuple[int, int]:
    """Rows and columns."""
    return (56, 160) if burned else (24, 24) if modality != "US" else (16, 24)


def draw(modality: str, rng: random.Random, lines: Sequence[str] = ()) -> tuple[dict[str, object], bytes, str]:
    """Image Pixel attributes, Pixel Data, and the box as the key's JSON ("" where nothing is burned in)."""
    rows, columns = size_of(modality, burned=bool(lines))
    colour, frames = modality == "US", 2 if modality == "US" else 1
    bits = 8 if colour else 16
    top = (1 << (8 if colour else 12)) - 1
    count = rows * columns * frames * (3 if colour else 1)
    ground, seed = top // 4, rng.randint(0, 10**6)
    values = [ground + (seed + 37 * i * i) % (top // 16) for i in range(count)]
    box = ""
    if lines:
        ink = ink_of(lines)
        width = max(row.bit_length() for row in ink)
        left, upper = 3, 3
        light = rng.choice((top, ground + top // 3, 0))
        for y, row in enumerate(ink):
            for x in range(width):
                if row >> x & 1:
                    values[(upper + y) * columns + left + x] = light
        corners = {"top_left": [left, upper], "bottom_right": [left + width, upper + len(ink)]}
        contrast = abs(light - ground)
        box = json.dumps(
            {"text": "\n".join(lines), **corners, "ink": [f"{row:x}" for row in ink], "contrast": contrast}
        )
    attributes = {
        "Rows": rows,
        "Columns": columns,
        "BitsAllocated": bits,
        "BitsStored": 8 if colour else 12,
        "HighBit": 7 if colour else 11,
        "PixelRepresentation": 0,
    }
    data = bytes(values) if bits == 8 else struct.pack(f"<{count}H", *values)
    return attributes, data + bytes(len(data) % 2), box


def rle(frames: Iterable[bytes]) -> list[bytes]:
    """Frames of 16-bit samples in RLE Lossless (PS3.5 Annex G), literal runs only: encapsulated, and easy to check."""
    out = []
    for frame in frames:
        segments = [_literal(frame[1::2]), _literal(frame[0::2])]
        offsets = [64, 64 + len(segments[0])]
        head = struct.pack("<16I", 2, *offsets, *([0] * 13))
        out.append(head + b"".join(segments))
    return out


def _literal(data: bytes) -> bytes:
    parts = [data[i : i + 128] for i in range(0, len(data), 128)]
    packed = b"".join(bytes([len(part) - 1]) + part for part in parts)
    return packed + bytes(len(packed) % 2)


def set_pixels(image: Dataset, data: bytes) -> None:
    image.add_new(0x7FE00010, "OW", data)
