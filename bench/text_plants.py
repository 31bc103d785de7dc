"""Styles in which devices, films and people put text into pixels, drawn into stored values; the key says where.

A frame is stored values (rows, columns) or (rows, columns, 3). Contrasts are shares of the frame's robust range, as a
viewer would show it; low-contrast styles stay above what a person can read: at least 2.5 times the noise around them.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from bench.text_fonts import HAND, PRINT, fonts_for, ink
from bench.text_words import CJK, CYRILLIC, LATIN, line, person

Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Style:
    """How one kind of text looks. Heights are of a capital, in pixels; `contrast` is a share of the shown range."""

    name: str
    height_px: tuple[int, int]
    contrast: tuple[float, float] = (0.7, 1.0)
    dark: bool = False  # darker than what it stands on
    box: bool = False  # on a filled box of its own
    shadow: bool = False
    quarter_turns: tuple[int, ...] = (0,)
    script: str = LATIN
    font: str = PRINT
    smooth: bool = True
    colour: bool = False  # in one of a device's colours, where the frame has three samples
    wide: bool = False  # the shown range is stretched by a few extreme pixels


STYLES = (
    Style("plain", (11, 24)),
    Style("no_antialiasing", (10, 18), smooth=False),
    Style("small", (7, 9)),
    Style("dark", (11, 22), contrast=(0.5, 0.8), dark=True),
    Style("inverted_box", (10, 20), box=True, dark=True),
    Style("boxed", (10, 20), box=True),
    Style("shadow", (11, 22), shadow=True),
    Style("low_contrast", (12, 24), contrast=(0.10, 0.16)),
    Style("wide_window", (12, 24), contrast=(0.04, 0.08), wide=True),
    Style("turned_90", (11, 22), quarter_turns=(1,)),
    Style("turned_180", (11, 22), quarter_turns=(2,)),
    Style("turned_270", (11, 22), quarter_turns=(3,)),
    Style("handwriting", (15, 28), font=HAND),
    Style("cyrillic", (11, 22), script=CYRILLIC),
    Style("cjk", (14, 26), script=CJK),
    Style("colour", (11, 22), colour=True),
)
LEGIBLE = 0.85  # share of the ink that must stand out
BY_NAME = {style.name: style for style in STYLES}
_COLOURS = ((1, 1, 0), (0, 1, 0), (0, 1, 1), (1, 0.6, 0), (1, 0.2, 0.2))


@dataclass(frozen=True, slots=True)
class Plant:
    """Where one identity was drawn: its box, half open, and which pixels of it show (rows, columns)."""

    style: str
    top: int
    left: int
    ink: NDArray[np.bool_]
    words: str
    frame: int = 0

    @property
    def bottom(self) -> int:
        return self.top + self.ink.shape[0]

    @property
    def right(self) -> int:
        return self.left + self.ink.shape[1]


def shown_range(frame: Array) -> tuple[float, float]:
    """Low and high of what a viewer shows of a frame: its values but for half a percent at each end."""
    low, high = np.percentile(frame, (0.5, 99.5))
    return float(low), float(high) if high > low else float(low) + 1.0


def stretch(frame: Array, random: Random, top: float) -> Array:
    """A frame whose range a few pixels stretch fourfold, as an implant or a dead detector line does."""
    out = frame.astype(np.float64)
    low, high = shown_range(out)
    out = low + (out - low) / 4
    rows, columns = out.shape[:2]
    at = random.randrange(rows - rows // 10), random.randrange(columns - columns // 10)
    out[at[0] : at[0] + max(4, rows // 11), at[1] : at[1] + max(4, columns // 11)] = min(top, high)
    return out


def plant(
    frame: NDArray[np.float64], style: Style, half: str, random: Random, taken: list[tuple[int, int, int, int]]
) -> Plant | None:
    """Draw one identity into `frame` (stored values as floats), clear of boxes (top, left, bottom, right) in `taken`.

    None where no place was found: the frame is too small or too full.
    """
    rows, columns = frame.shape[:2]
    height = random.randint(*style.height_px)
    fonts: list[str] = []
    while not fonts:  # no font has a simplified surname and a Korean given name
        words = line(person(half, style.script, random), random)
        fonts = fonts_for(words, half, style.script, style.font)
    font = random.choice(fonts)
    mask = ink(words, font, height, smooth=style.smooth)
    mask = np.rot90(mask, random.choice(style.quarter_turns)).copy()
    margin = height // 2 + 3
    if mask.shape[0] + 2 * margin >= rows or mask.shape[1] + 2 * margin >= columns:
        return None
    for _ in range(80):
        top = random.randrange(margin, rows - mask.shape[0] - margin)
        left = random.randrange(margin, columns - mask.shape[1] - margin)
        box = top - margin, left - margin, top + mask.shape[0] + margin, left + mask.shape[1] + margin
        if any(box[2] > t and b > box[0] and box[3] > x and r > box[1] for t, x, b, r in taken):
            continue
        kept = frame[box[0] : box[2], box[1] : box[3]].copy()
        seen = _draw(frame, mask, style, (top, left), height, random)
        if seen.sum() >= LEGIBLE * (mask > 0.5).sum():
            taken.append(box)
            return Plant(style.name, top, left, seen, words)
        frame[box[0] : box[2], box[1] : box[3]] = kept  # white on white: nobody could read it
    return None


def _draw(
    frame: NDArray[np.float64],
    mask: NDArray[np.float32],
    style: Style,
    at: tuple[int, int],
    height: int,
    random: Random,
) -> NDArray[np.bool_]:
    """Draws, and says which pixels of the ink stand out from what was there."""
    low, high = shown_range(frame)
    floor, ceiling = float(frame.min()), float(frame.max())
    span = high - low
    top, left = at
    window = frame[top : top + mask.shape[0], left : left + mask.shape[1]]
    contrast = random.uniform(*style.contrast)
    ground = float(np.median(window))
    noise = max(float(np.median(np.abs(window - ground))) * 1.4826, float((window - _ground(window)).std()))
    delta = max(contrast * span, 2.5 * noise if contrast < 0.3 else 0.0)
    if style.box:
        pad = height // 3 + 1
        fill = high if style.dark else low
        frame[top - pad : top + mask.shape[0] + pad, left - pad : left + mask.shape[1] + pad] = fill
        ground = fill
    before = window.copy()
    lighter = not style.dark
    if (ground + delta > ceiling and lighter) or (ground - delta < floor and not lighter):
        lighter = ground - low < high - ground  # a person would not write white on white
        delta = min(delta, (ceiling - ground) if lighter else (ground - floor)) if contrast < 0.3 else delta
    if style.shadow:
        below = np.zeros_like(mask)
        below[1:, 1:] = mask[:-1, :-1]
        _blend(window, below, low if lighter else high)
    value = min(max(ground + delta if lighter else ground - delta, floor), ceiling)
    if contrast >= 0.3 and abs(value - ground) < 0.45 * span:
        value = high if ground - low < high - ground else low
    if style.colour and window.ndim == 3:
        shade = np.array(random.choice(_COLOURS)) * span + low
        _blend(window, mask, shade)
    elif contrast < 0.3:  # transparent, as what is stamped over texture
        window += (mask if window.ndim == 2 else mask[..., None]) * (delta if lighter else -delta)
        np.clip(window, floor, ceiling, out=window)
    else:
        _blend(window, mask, value)
    change = np.abs(window - before)
    change = change if change.ndim == 2 else change.max(2)
    return (mask > 0.5) & (change > min(0.15 * span, 0.6 * delta))


def _ground(window: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a window is without fine structure."""
    return uniform_filter(window, (9, 9) if window.ndim == 2 else (9, 9, 1))


def _blend(window: NDArray[np.float64], mask: NDArray[np.float32], value: float | NDArray[np.float64]) -> None:
    weight = mask if window.ndim == 2 else mask[..., None]
    window *= 1 - weight
    window += weight * value
