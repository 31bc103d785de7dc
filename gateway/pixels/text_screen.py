"""Where in a frame text might be, for milliseconds: the cheap look that decides what the detector sees of a stack.

Text is thin strokes, lighter or darker than their ground, close together in a line. Anatomy does that too, so most of
what this points at is no text; `bench.text` measures how often it fails to point at text that is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[Any]
Place = tuple[int, int, int, int]  # top, left, bottom, right, half open

STROKE_PX = 9  # a stroke is thinner than this
CONTRAST = 12  # of 255: less than this is nothing
ABOVE_RESTLESS = 5.0  # times how far the pixels there move anyway
ABOVE_TEXTURE = 2.5  # times what the strokes of the surroundings measure
AROUND_PX = 65
GAP_PX = 11  # between the strokes of one line
MIN_HEIGHT, MAX_HEIGHT, MIN_LENGTH = 5, 44, 14
MIN_FILL, MAX_FILL = 0.10, 0.85
SHRINKS = (1.0, 0.5)  # large text is looked for in the frame at half its size
MAX_SIDE = 1400  # a larger frame is shrunk to this first


def appearing(before: Picture, after: Picture, restless: NDArray[np.float32]) -> list[Place]:
    """Places where `after` has what may be lines of text that `before` does not have, frames of one shape.

    Anatomy moves little between neighbours, text is there or is not: in the difference strokes stand out. `restless`
    (rows, columns) is how far each pixel is from its median, in the mean of all frames.
    """
    import cv2

    contrast = np.maximum(CONTRAST, ABOVE_RESTLESS * cv2.blur(restless, (STROKE_PX, STROKE_PX)))

    scale = min(1.0, MAX_SIDE / max(after.shape[:2]))
    if scale < 1:
        before, after = (
            cv2.resize(one, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) for one in (before, after)
        )
    lighter, darker = cv2.subtract(after, before), cv2.subtract(before, after)
    if not lighter.any() and not darker.any():
        return []
    found: list[Place] = []
    for shrink in SHRINKS:
        if min(after.shape[:2]) * shrink < MIN_LENGTH:
            continue
        planes = [
            one if shrink == 1 else cv2.resize(one, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
            for one in (lighter, darker)
        ]
        limit = cv2.resize(contrast, planes[0].shape[1::-1], interpolation=cv2.INTER_NEAREST)
        for place in _groups(_strokes(planes[0], planes[1], limit)):
            top, left, bottom, right = (side / (scale * shrink) for side in place)
            found.append((int(top), int(left), int(np.ceil(bottom)), int(np.ceil(right))))
    return found


def _strokes(lighter: Picture, darker: Picture, contrast: Picture) -> NDArray[np.bool_]:
    import cv2

    kernel = np.ones((STROKE_PX, STROKE_PX), np.uint8)
    strength = np.maximum(*(cv2.morphologyEx(one, cv2.MORPH_TOPHAT, kernel) for one in (lighter, darker)))
    if strength.ndim == 3:
        strength = strength.max(2)
    around = cv2.blur(strength.astype(np.float32), (AROUND_PX, AROUND_PX))
    return np.asarray(strength > np.maximum(contrast, ABOVE_TEXTURE * around))


def _groups(strokes: NDArray[np.bool_]) -> Iterator[Place]:
    """Lines of strokes, along rows and along columns."""
    import cv2

    mask = strokes.astype(np.uint8)
    for along_rows in (True, False):
        kernel = np.ones((1, GAP_PX) if along_rows else (GAP_PX, 1), np.uint8)
        closed = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, kernel)
        opened = cv2.morphologyEx(closed, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
        count, labels, stats, _ = cv2.connectedComponentsWithStats(opened, connectivity=8)
        ink = np.bincount(labels.ravel(), weights=mask.ravel(), minlength=count)
        for at in range(1, count):
            left, top, width, height, _ = stats[at]
            along, across = (width, height) if along_rows else (height, width)
            if not (MIN_HEIGHT <= across <= MAX_HEIGHT and along >= max(MIN_LENGTH, 1.5 * across)):
                continue
            if MIN_FILL <= ink[at] / (width * height) <= MAX_FILL:
                yield int(top), int(left), int(top + height), int(left + width)
