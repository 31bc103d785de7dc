"""Machine-readable codes in pictures: QR, Data Matrix, Aztec, PDF417, bar codes. Labels and requisitions bear the
patient's number in them, and no reader of text sees it.

Whatever can be read out of a picture goes, whatever it says; what it says is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_boxes import covered_share
from gateway.pixels.text_frames import FrameHit, Stack
from gateway.pixels.text_ground import Place
from gateway.pixels.text_judge import Hit, Kind

Bytes = NDArray[np.uint8]

MARGIN, MARGIN_PX = 0.05, 3  # of a code's shorter side, and at least: modules reach beyond the corners that are told
MOST_ROUNDS = 16  # of looking again at what is left
BAND, BANDS = 64, range(0, 224, 32)  # levels that are stretched to all, from where on: the reader wants 24 to differ
INSIDE = 0.8  # share of a line of text that lies in a code


def codes_through(stack: Stack, median: Bytes) -> list[FrameHit]:
    """Every code on every frame, faint ones too where the median shows them. Raises what the frames raise."""
    everywhere = codes_in(median, faint=True)
    return [
        FrameHit(frame, Hit(place, Kind.TEXT, 1.0))
        for frame in range(len(stack))
        for place in dict.fromkeys([*everywhere, *(codes_in(stack.shown(frame)) if len(stack) > 1 else ())])
    ]


def beside(lines: list[FrameHit], codes: list[FrameHit]) -> Iterator[FrameHit]:
    """Lines without the doubtful ones that are nothing but the pattern of a code."""
    places: dict[int, list[Place]] = {}
    for one in codes:
        places.setdefault(one.frame, []).append(one.hit.place)
    yield from (line for line in lines if not is_pattern(line.hit, places.get(line.frame, ())))


def is_pattern(hit: Hit, codes: Sequence[Place]) -> bool:
    """Whether a doubtful line lies in codes, which go in any case."""
    return hit.kind is Kind.UNCERTAIN and covered_share(hit.place, codes) >= INSIDE


def codes_in(shown: Bytes, *, faint: bool = False) -> list[Place]:
    """Boxes (top, left, bottom, right) of the codes in a picture, (rows, columns) or (rows, columns, 3)."""
    greys = [shown] if shown.ndim == 2 else [np.asarray(shown.mean(2), np.uint8), *np.moveaxis(shown, 2, 0)]
    found: list[Place] = []
    for grey in greys:
        found += _read_all(grey)
        for lowest in BANDS if faint else ():
            levels = (np.clip(grey, lowest, lowest + BAND) - lowest).astype(np.float32)
            found += _read_all(np.asarray(levels * (255 / BAND), np.uint8))
    return list(dict.fromkeys(found))


def _read_all(grey: Bytes) -> Iterator[Place]:
    """What is read, and read again in what is left: a strip of a bar code that is not covered says the same."""
    left = np.array(grey)
    for _ in range(MOST_ROUNDS):
        places = list(_read(left))
        yield from places
        for top, start, bottom, end in places:
            left[top:bottom, start:end] = 0
        if not places:
            return


def _read(grey: Bytes) -> Iterator[Place]:
    import zxingcpp

    rows, columns = grey.shape
    for code in zxingcpp.read_barcodes(grey):
        at = code.position
        corners = (at.top_left, at.top_right, at.bottom_right, at.bottom_left)
        ys, xs = [corner.y for corner in corners], [corner.x for corner in corners]
        room = max(MARGIN_PX, round(MARGIN * min(max(ys) - min(ys), max(xs) - min(xs))))
        top, left = max(0, min(ys) - room), max(0, min(xs) - room)
        yield top, left, min(rows, max(ys) + room + 1), min(columns, max(xs) + room + 1)
