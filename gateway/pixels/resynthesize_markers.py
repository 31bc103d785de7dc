"""Side and projection drawn into a new picture: what was burned into the old one is gone with it.

Only what the header states, in defined terms (PS3.3 C.7.6.1.1.1, C.8.1.1, C.8.7.1), never what was read in the pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from pydicom.dataset import Dataset

VIEWS = frozenset({"AP", "PA", "LL", "RL", "RLD", "LLD", "RLO", "LLO"})
SIDES = frozenset({"L", "R"})
HEIGHT, EDGE = 1 / 16, 1 / 32  # of the picture's shorter side
SMALLEST_PIXELS = 8


def marks_of(header: Dataset) -> tuple[tuple[str, bool], ...]:
    """(text, whether it stands at the right edge) of each marker.

    The side of the person is where the rows lead (Patient Orientation) and is drawn there; of a paired part it is the
    one that Image Laterality or Laterality names. The projection follows it.
    """
    view = str(header.get("ViewPosition") or "").upper()
    named = str(header.get("ImageLaterality") or header.get("Laterality") or "").upper()
    ways: Any = header.get("PatientOrientation") or ()
    leads = str(ways[0]).upper()[:1] if not isinstance(ways, str) and len(ways) == 2 else ""
    shown = view if view in VIEWS else ""
    if leads in SIDES:
        return ((f"{leads} {shown}".strip(), True),)
    text = f"{named if named in SIDES else ''} {shown}".strip()
    return ((text, False),) if text else ()


def drawn(picture: NDArray[np.float32], marks: tuple[tuple[str, bool], ...]) -> NDArray[np.float32]:
    """(rows, columns) or (3, rows, columns), 0 to 1, with the markers in white at the upper edge. A picture too small
    for them stays.
    """
    rows, columns = picture.shape[-2:]
    shorter = min(rows, columns)
    size = max(round(HEIGHT * shorter), SMALLEST_PIXELS)
    if not marks or shorter < 4 * size:
        return picture
    sheet = Image.new("L", (columns, rows), 0)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size)
    edge = max(round(EDGE * shorter), 1)
    for text, right in marks:
        pen.text((columns - edge if right else edge, edge), text, fill=255, font=font, anchor="rt" if right else "lt")
    white = np.asarray(sheet, np.float32) / np.float32(255)
    return np.asarray(np.maximum(picture, white), np.float32)
