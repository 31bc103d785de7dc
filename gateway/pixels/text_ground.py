"""What a picture is without the text that was found in it, and how faint text is made to stand out.

`covered` fills places flat: nothing of them is left. `blended` carries their surroundings on through them, for looking
again: flat strips would make what lies between two of them look like a line of text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Place = tuple[int, int, int, int]  # top, left, bottom, right, half open

LOCAL_PX, LOCAL_FLOOR, LOCAL_SPAN = 41, 0.02, 6.0
EDGE_PX, EDGE_BLUR_PX = 3, 7  # beside a place: what it is carried on from, without streaks
GRAIN_PX = 12  # beside a place: what its noise is taken from
SOLID = 0.35  # of a sign's longer side: no stroke is as thick
GRAIN_SPREADS = 2.5  # noise that stands out by more is a stroke, and none of it


def covered(picture: NDArray[Any], places: Sequence[Place]) -> NDArray[Any]:
    """A copy (rows, columns, channels) with the places filled by the median of what surrounds each."""
    out = picture.copy()
    rows, columns = picture.shape[:2]
    for top, left, bottom, right in places:
        first, last = max(0, left - EDGE_PX), min(columns, right + EDGE_PX)
        beside = [
            picture[max(0, top - EDGE_PX) : top, first:last],
            picture[bottom : min(rows, bottom + EDGE_PX), first:last],
            picture[top:bottom, first:left],
            picture[top:bottom, right:last],
        ]
        edge = np.concatenate([one.reshape(-1, picture.shape[2]) for one in beside])
        out[top:bottom, left:right] = np.median(edge, 0) if len(edge) else 0
    return out


def blended(values: NDArray[np.float32], places: Sequence[Place]) -> NDArray[np.float32]:
    """A copy (rows, columns, channels) in which each place goes over from one of its long sides to the other, with the
    noise of what lies beside it. Nothing is random.
    """
    out = values.copy()
    for top, left, bottom, right in places:
        if bottom <= top or right <= left:
            continue
        turned = bottom - top > right - left
        view = out.transpose(1, 0, 2) if turned else out
        _carry_on(view, (left, top, right, bottom) if turned else (top, left, bottom, right))
    return out


def _carry_on(view: NDArray[np.float32], place: Place) -> None:
    """Fill a place of a view from the rows above it to those below it."""
    import cv2

    top, left, bottom, right = place
    above = view[max(0, top - EDGE_PX) : top, left:right]
    below = view[bottom : bottom + EDGE_PX, left:right]
    if not above.size and not below.size:
        view[top:bottom, left:right] = np.median(view, (0, 1))
        return
    first, last = (
        cv2.blur(np.median(edge, 0)[None], (EDGE_BLUR_PX, 1)).reshape(right - left, -1)
        for edge in (above if above.size else below, below if below.size else above)
    )
    share = ((np.arange(top, bottom) - top + 1) / (bottom - top + 1))[:, None, None]
    view[top:bottom, left:right] = first * (1 - share) + last * share + _grain(view, place)


def _grain(view: NDArray[np.float32], place: Place) -> NDArray[np.float32]:
    """Noise (rows, columns, channels) for a place, from the rows beside it, to and fro."""
    import cv2

    top, left, bottom, right = place
    strips = (view[max(0, top - GRAIN_PX) : top, left:right], view[bottom : bottom + GRAIN_PX, left:right])
    strip = np.ascontiguousarray(max(strips, key=len))
    fine = strip - cv2.blur(strip, (9, 9)).reshape(strip.shape)
    spread = 1.4826 * np.median(np.abs(fine))
    fine = np.clip(fine, -GRAIN_SPREADS * spread, GRAIN_SPREADS * spread)
    rows = np.pad(np.arange(len(fine)), (0, max(0, bottom - top - len(fine))), mode="symmetric")[: bottom - top]
    return np.asarray(fine[rows], np.float32)


def local_contrast(values: NDArray[np.float32], floor: float = LOCAL_FLOOR) -> Bytes:
    """Each channel of (rows, columns, 1 or 3) as so many standard deviations of its surroundings, mid-grey where
    nothing stands out: (rows, columns, 3). `floor` keeps noise down, and where all is noise its own spread does.
    """
    import cv2

    mean = _blurred(values)
    spread = np.sqrt(np.maximum(_blurred(values * values) - mean * mean, 0))
    standing = (values - mean) / np.maximum(spread, max(floor, float(np.median(spread)) / 2))
    shades: Bytes = (np.clip(standing / LOCAL_SPAN + 0.5, 0, 1) * 255).astype(np.uint8)
    return shades if shades.shape[2] == 3 else cv2.merge([shades] * 3).astype(np.uint8)


def _blurred(values: NDArray[np.float32]) -> NDArray[np.float32]:
    import cv2

    return np.asarray(cv2.blur(values, (LOCAL_PX, LOCAL_PX)), np.float32).reshape(values.shape)


def is_solid(sign: Bytes) -> bool:
    """Whether what was read as one sign (rows, columns, 3) is a filled shape: an implant, a shutter, a corner."""
    import cv2

    grey = np.ascontiguousarray(sign.max(2))
    _, light = cv2.threshold(grey, 0, 1, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    edge = np.concatenate([light[0], light[-1], light[:, 0], light[:, -1]])
    ink = 1 - light if float(edge.mean()) > 0.5 else light
    thick = 2 * float(cv2.distanceTransform(ink, cv2.DIST_L2, 3).max())
    return bool(thick >= SOLID * max(grey.shape))
