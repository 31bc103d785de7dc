"""How far a line reaches: it is read once more with room at both ends, and ends where its signs do.

The detector's map ends early where the ground changes under a line, where print is small, and between words; its boxes
have margins for that. The recogniser says at which place it sees a sign of any kind: one that goes on beside a box
belongs to the line, and where nothing does, the margin need not be as wide. That it knows the script does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_engine import Engine, Sign
from gateway.pixels.text_ground import Place

Bytes = NDArray[np.uint8]
Middles = NDArray[np.float64]  # of signs, in columns, in order

LINE_LONG, MOST_LONG = 1.5, 80  # times as long as high: a shorter box has no direction, a longer one is no line
ROOM, ROUNDS = 2.0, 3  # of the box's height, at each end, and how often there may be more
INSET = 0.12  # of the box's height, above and below: margin, without which signs are read better
INSIDE, BESIDE = 0.5, 0.75  # how sure it must be that there is a sign, in a box and beside it
LEAST_SIGNS = 3  # of a line, for what stands beside them to be more of it
GAP = 0.8  # of the box's height, which is that of two capitals, to the next sign
SIGN, ALL_READ = 0.3, 0.42  # of the box's height: from the middle of the last sign, beside a box and in it, to its end
WELL = 0.9  # how sure the signs of a line are that is read well
SPARED = 0.6  # of the box's height: so much at most of a box that all signs lie before is no text


def reached(pictures: Iterable[Bytes], place: Place, engine: Engine) -> Place:
    """A place of pictures (rows, columns, 3) of one frame, in the first of them that shows its line, as long as it."""
    top, left, bottom, right = place
    wide = right - left >= LINE_LONG * (bottom - top)
    if not wide and bottom - top < LINE_LONG * (right - left):
        return place
    for picture in pictures:
        turned = picture if wide else picture.transpose(1, 0, 2)
        flat = place if wide else (left, top, right, bottom)
        ends = _ends(turned, flat, engine, mirrored=not wide)
        if ends is not None:
            return (top, ends[0], bottom, ends[1]) if wide else (ends[0], left, ends[1], right)
    return place


def _ends(picture: Bytes, place: Place, engine: Engine, *, mirrored: bool) -> tuple[int, int] | None:
    """First and last column (half open) of a line along the columns; None where it cannot be read."""
    top, left, bottom, right = place
    high, start, end = bottom - top, left, right
    inset = round(INSET * high)
    found = None
    for _ in range(ROUNDS):
        first = max(0, start - round(ROOM * high))
        last = min(picture.shape[1], end + round(ROOM * high))
        if last - first > MOST_LONG * (high - 2 * inset):
            break
        signs = _signs(picture[top + inset : bottom - inset, first:last], engine, mirrored=mirrored)
        at = np.array([sign.at * (last - first) + first for sign in signs])
        within = (at >= start) & (at < end)
        seen = np.array([sign.sure for sign in signs]) >= np.where(within, INSIDE, BESIDE)
        if (within & seen).sum() < LEAST_SIGNS:
            break
        well = float(np.mean([sign.known for sign, one in zip(signs, within, strict=True) if one])) >= WELL
        before = start, end
        clear = at[within] if well else None  # then a box may end before the detector's does
        end = min(picture.shape[1], _followed(at[seen], clear, end, right, high))
        mirror = None if clear is None else -clear
        start = max(0, -_followed(-at[seen][::-1], mirror, -start, -left, high))
        found = start, end
        if start >= before[0] and end <= before[1]:
            break
    return found


def _followed(seen: Middles, clear: Middles | None, end: int, boxed: int, high: int) -> int:
    """Where a line ends that goes on from sign to sign, none further from the one before than a gap. Where nothing goes
    on: behind the last of all places that might be a sign, if they are `clear`, and not much before the box did.
    """
    at = max(float(seen[seen < end][-1]), end - 2 * SIGN * high)  # a sign that was not read may stand there
    for middle in seen[seen >= end]:
        if middle - at > GAP * high:
            break
        at = float(middle)
    if at >= end:
        return int(np.ceil(at + SIGN * high)) + 1
    if clear is None:
        return end
    return min(end, int(np.ceil(max(boxed - SPARED * high, float(clear.max()) + ALL_READ * high))) + 1)


def _signs(line: Bytes, engine: Engine, *, mirrored: bool) -> list[Sign]:
    """Signs of a line (rows, columns, 3), read the way up in which they are surer.

    `mirrored`: rows and columns were exchanged, so that nothing can be read before one of them is turned round.
    """
    upright = np.ascontiguousarray(line[::-1] if mirrored else line)
    found = engine.signs(upright)
    if _known(found) < WELL:
        turned = engine.signs(np.rot90(upright, 2).copy())
        other = [Sign(1 - sign.at, sign.sure, sign.known) for sign in reversed(turned)]
        found = max(found, other, key=_known)
    return found


def _known(signs: list[Sign]) -> float:
    return sum(sign.known for sign in signs) / len(signs) if signs else 0.0
