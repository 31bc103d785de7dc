"""Fonts of `bench.text`: the stage is judged by other fonts than those that it was improved on.

    pip install -e '.[bench]'      rendercv-fonts, font-intuitive, font-amatic-sc, japanize-matplotlib
    apt-get install fonts-breip fonts-rufscript fonts-ecolier-court fonts-dancingscript      handwriting, of Debian

A font that is not installed is an error that says so: a table without a style would look better than it is.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from bench.text_words import CJK, CYRILLIC, DEVELOPMENT, HELD_OUT, LATIN

PRINT, HAND = "print", "hand"
_DEJAVU = tuple(
    f"/usr/share/fonts/truetype/dejavu/{name}.ttf" for name in ("DejaVuSans", "DejaVuSansMono", "DejaVuSerif-Bold")
)
_RENDERCV = "rendercv_fonts:"
FONTS: dict[tuple[str, str, str], tuple[str, ...]] = {
    (DEVELOPMENT, LATIN, PRINT): (
        *_DEJAVU,
        f"{_RENDERCV}Roboto/Roboto-Regular.ttf",
        f"{_RENDERCV}Ubuntu/Ubuntu-Bold.ttf",
        f"{_RENDERCV}XCharter/XCharter-Regular.otf",
        f"{_RENDERCV}Open Sans/OpenSans-Regular.ttf",
        f"{_RENDERCV}EB Garamond/EBGaramond-Bold.ttf",
        f"{_RENDERCV}Source Sans 3/SourceSans3-Italic.ttf",
    ),
    (DEVELOPMENT, CYRILLIC, PRINT): (
        *_DEJAVU,
        f"{_RENDERCV}Roboto/Roboto-Bold.ttf",
        f"{_RENDERCV}Ubuntu/Ubuntu-Regular.ttf",
        f"{_RENDERCV}Noto Sans/NotoSans-Regular.ttf",
    ),
    (DEVELOPMENT, CJK, PRINT): (
        "japanize_matplotlib:fonts/ipaexg.ttf",
        f"{_RENDERCV}Noto Sans/NotoSansSC-Regular.ttf",
        f"{_RENDERCV}Noto Sans/NotoSansJP-Regular.ttf",
        f"{_RENDERCV}Noto Sans/NotoSansKR-Bold.ttf",
    ),
    (DEVELOPMENT, LATIN, HAND): ("font_amatic_sc:files/AmaticSC-Bold.ttf", "font_intuitive:files/Intuitive.ttf"),
    (HELD_OUT, LATIN, PRINT): (
        f"{_RENDERCV}Lato/Lato-Regular.ttf",
        f"{_RENDERCV}Raleway/Raleway-Bold.ttf",
        f"{_RENDERCV}Poppins/Poppins-Regular.ttf",
        f"{_RENDERCV}Open Sauce Sans/OpenSauceSans-Italic.ttf",
        f"{_RENDERCV}Gentium Book Plus/GentiumBookPlus-Regular.ttf",
        f"{_RENDERCV}Mukta/Mukta-Bold.ttf",
        f"{_RENDERCV}Fontin/Fontin-Regular.otf",
    ),
    (HELD_OUT, CYRILLIC, PRINT): (
        f"{_RENDERCV}Raleway/Raleway-Regular.ttf",
        f"{_RENDERCV}Gentium Book Plus/GentiumBookPlus-Bold.ttf",
        f"{_RENDERCV}EB Garamond/EBGaramond-Regular.ttf",
        f"{_RENDERCV}Open Sans/OpenSans-Bold.ttf",
    ),
    (HELD_OUT, CJK, PRINT): (
        f"{_RENDERCV}Noto Sans/NotoSansSC-Bold.ttf",
        f"{_RENDERCV}Noto Sans/NotoSansJP-Bold.ttf",
        f"{_RENDERCV}Noto Sans/NotoSansKR-Regular.ttf",
    ),
    (HELD_OUT, LATIN, HAND): (
        "/usr/share/fonts/truetype/breip/Breip.ttf",
        "/usr/share/fonts/truetype/rufscript/Rufscript010.ttf",
        "/usr/share/fonts/truetype/ecolier-court/Ecolier-court.ttf",
        "/usr/share/fonts/opentype/dancingscript/DancingScript-Bold.otf",
    ),
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
        raise FileNotFoundError(f"no font {path}: bench/text_fonts.py says which package has it")
    return path


def fonts_for(text: str, half: str, script: str, kind: str) -> list[str]:
    """The fonts of a kind that have every sign of a text: a box in place of a letter tells nothing of anybody."""
    return [font for font in FONTS[half, script, kind] if set(map(ord, text)) <= _signs(font)]


@cache
def _signs(font: str) -> frozenset[int]:
    from fontTools.ttLib import TTFont

    with TTFont(font_file(font), lazy=True) as opened:
        return frozenset(opened.getBestCmap())


def ink(text: str, font: str, height_px: int, *, smooth: bool = True) -> NDArray[np.float32]:
    """Coverage (rows, columns) in 0..1 of one line, cropped to its ink. `height_px` is about that of a capital."""
    face = ImageFont.truetype(str(font_file(font)), max(4, round(height_px / 0.72)))
    left, top, right, bottom = face.getbbox(text)
    image = Image.new("L", (int(right - left) + 8, int(bottom - top) + 8), 0)
    draw = ImageDraw.Draw(image)
    draw.fontmode = "L" if smooth else "1"
    draw.text((4 - left, 4 - top), text, font=face, fill=255)
    mask = np.asarray(image)
    rows, columns = np.flatnonzero(mask.max(1) > 12), np.flatnonzero(mask.max(0) > 12)
    return mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(np.float32) / 255
