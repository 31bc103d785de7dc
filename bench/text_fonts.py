"""Fonts of `bench.text`: the stage is judged by other fonts than those that it was improved on.

    pip install -e '.[bench]'      rendercv-fonts, font-intuitive, font-amatic-sc, japanize-matplotlib

A font that is not installed is an error that says so: a table without a style would look better than it is.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from bench.text_words import CJK, CYRILLIC, DEVELOPMENT, HELD_OUT, LATIN

PRINT, HAND = "print", "hand"
STROKES = "strokes:"  # a Hershey font of OpenCV: strokes, drawn with a pen
_DEJAVU = tuple(
    f"/usr/share/fonts/truetype/dejavu/{name}.ttf" for name in ("DejaVuSans", "DejaVuSansMono", "DejaVuSerif-Bold")
)
FONTS: dict[tuple[str, str, str], tuple[str, ...]] = {
    (DEVELOPMENT, LATIN, PRINT): _DEJAVU,
    (DEVELOPMENT, CYRILLIC, PRINT): _DEJAVU,
    (DEVELOPMENT, CJK, PRINT): ("japanize_matplotlib:fonts/ipaexg.ttf",),
    (DEVELOPMENT, LATIN, HAND): ("font_amatic_sc:files/AmaticSC-Bold.ttf", f"{STROKES}SCRIPT_SIMPLEX"),
    (HELD_OUT, LATIN, PRINT): (
        "rendercv_fonts:Roboto/Roboto-Regular.ttf",
        "rendercv_fonts:Ubuntu/Ubuntu-Bold.ttf",
        "rendercv_fonts:XCharter/XCharter-Regular.otf",
        "rendercv_fonts:Open Sans/OpenSans-Regular.ttf",
        "rendercv_fonts:EB Garamond/EBGaramond-Bold.ttf",
        "rendercv_fonts:Source Sans 3/SourceSans3-Italic.ttf",
    ),
    (HELD_OUT, CYRILLIC, PRINT): (
        "rendercv_fonts:Roboto/Roboto-Bold.ttf",
        "rendercv_fonts:Ubuntu/Ubuntu-Regular.ttf",
        "rendercv_fonts:Noto Sans/NotoSans-Regular.ttf",
    ),
    (HELD_OUT, CJK, PRINT): (
        "rendercv_fonts:Noto Sans/NotoSansSC-Regular.ttf",
        "rendercv_fonts:Noto Sans/NotoSansJP-Regular.ttf",
        "rendercv_fonts:Noto Sans/NotoSansSC-Bold.ttf",
    ),
    (HELD_OUT, LATIN, HAND): ("font_intuitive:files/Intuitive.ttf", f"{STROKES}SCRIPT_COMPLEX"),
}


def font_file(name: str) -> Path:
    """The file of a font. Raises FileNotFoundError."""
    package, colon, inside = name.partition(":")
    if not colon:
        path = Path(name)
    else:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError(f"the package {package} is not installed: pip install -e '.[bench]'")
        path = Path(spec.submodule_search_locations[0]) / inside
    if not path.is_file():
        raise FileNotFoundError(f"no font {path}")
    return path


def ink(text: str, font: str, height_px: int, *, smooth: bool = True) -> NDArray[np.float32]:
    """Coverage (rows, columns) in 0..1 of one line, cropped to its ink. `height_px` is about that of a capital."""
    if font.startswith(STROKES):
        mask = _strokes(text, font.removeprefix(STROKES), height_px)
    else:
        face = ImageFont.truetype(str(font_file(font)), max(4, round(height_px / 0.72)))
        left, top, right, bottom = face.getbbox(text)
        image = Image.new("L", (int(right - left) + 8, int(bottom - top) + 8), 0)
        draw = ImageDraw.Draw(image)
        draw.fontmode = "L" if smooth else "1"
        draw.text((4 - left, 4 - top), text, font=face, fill=255)
        mask = np.asarray(image)
    rows, columns = np.flatnonzero(mask.max(1) > 12), np.flatnonzero(mask.max(0) > 12)
    return mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(np.float32) / 255


def _strokes(text: str, font: str, height_px: int) -> NDArray[np.uint8]:
    face, pen = getattr(cv2, f"FONT_HERSHEY_{font}"), max(4, round(height_px * 0.4))
    scale = cv2.getFontScaleFromHeight(face, height_px * 4, pen)
    (width, height), below = cv2.getTextSize(text, face, scale, pen)
    large = np.zeros((height + below + 2 * pen + 64, width + 2 * pen + 64), np.uint8)
    cv2.putText(large, text, (pen + 32, height + pen + 16), face, scale, 255, pen, cv2.LINE_AA)
    size = (max(1, large.shape[1] // 4), max(1, large.shape[0] // 4))
    return np.asarray(cv2.resize(large, size, interpolation=cv2.INTER_AREA))
