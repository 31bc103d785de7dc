"""The text detector and the recogniser, one of each per process, made when first needed (about a second).

PP-OCRv4 as rapidocr-onnxruntime carries it in its wheel: nothing is downloaded. One thread: workers run side by side,
and one thread gives the same figures every time. No text that was read leaves this process, and none is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

STEP = 32  # the detector's stride: sides are multiples of it
INK = 0.2  # probability of a pixel of the detector's map from which it belongs to a line
UNCLIP = 1.7  # the map is trained on shrunk lines: boxes grow back by area x this / perimeter (DB, eq. 10)
MIN_SIDE = 3
READ_WELL = 0.9  # a line read worse than this is tried upside down
RIGHT_ANGLE = 1.5  # a crop this much higher than wide is read turned


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text as detected: corners (4, 2) in x, y clockwise, and the mean probability inside."""

    corners: NDArray[np.float32]
    score: float

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Top, left, bottom, right of the upright box around it."""
        x, y = self.corners[:, 0], self.corners[:, 1]
        return float(y.min()), float(x.min()), float(y.max()), float(x.max())

    @property
    def sides(self) -> tuple[float, float]:
        """Length along the first edge, and across it."""
        return (
            float(np.linalg.norm(self.corners[1] - self.corners[0])),
            float(np.linalg.norm(self.corners[3] - self.corners[0])),
        )


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign of a line: its middle as a share of the line's length, how sure it is that there is one (0 to 1), and
    how sure which one it is (0 to 1).
    """

    at: float
    sure: float
    known: float


class Engine:
    """`passes` counts how often the detector ran in this process."""

    def __init__(self) -> None:
        from rapidocr_onnxruntime import RapidOCR

        ocr: Any = RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
        self._detector, self._recogniser = ocr.text_det.infer, ocr.text_rec
        self.passes = 0

    def detect(self, image: Bytes, scale: float = 1.0, floor: float = 0.3) -> list[Line]:
        """Lines of an image (rows, columns, 3) that score at least `floor`, looked at enlarged by `scale`."""
        import cv2

        rows, columns = image.shape[:2]
        height, width = (max(STEP, round(side * scale / STEP) * STEP) for side in (rows, columns))
        interpolation = cv2.INTER_CUBIC if scale > 1 else cv2.INTER_AREA
        resized = cv2.resize(image, (width, height), interpolation=interpolation)
        planes = (resized.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None]
        self.passes += 1
        probability = np.asarray(self._detector(planes)[0], np.float32)[0, 0]
        return _lines(probability, (columns / width, rows / height), floor)

    def read(self, image: Bytes, lines: Sequence[Line]) -> list[tuple[str, float]]:
        """What each line says and how sure that is, the better of the two ways up."""
        if not lines:
            return []
        crops = [crop(image, line) for line in lines]
        found = list(self._recogniser(crops)[0])
        doubtful = [at for at, (_, sure) in enumerate(found) if sure < READ_WELL]
        if doubtful:
            turned = self._recogniser([np.rot90(crops[at], 2).copy() for at in doubtful])[0]
            for at, other in zip(doubtful, turned, strict=True):
                found[at] = max(found[at], other, key=lambda one: one[1])
        return found

    def signs(self, line: Bytes) -> list[Sign]:
        """The signs of one upright line (rows, columns, 3), in order; of spaces none."""
        rows, columns = self._recogniser.rec_image_shape[1:3]
        long = line.shape[1] / line.shape[0]
        widest = max(long, columns / rows)
        planes = self._recogniser.resize_norm_img(line, widest)[None].astype(np.float32)
        shares = np.asarray(self._recogniser.session(planes)[0][0], np.float32)  # (steps, blank, signs and space)
        steps = max(1, round(len(shares) * long / widest))  # behind them is padding
        best = shares[:steps].argmax(1)
        found = []
        for at in range(steps):
            said = 0 < best[at] < shares.shape[1] - 1
            if said and (at == 0 or best[at] != best[at - 1]):
                sure = 1 - float(shares[at, 0]) - float(shares[at, -1])
                found.append(Sign((at + 0.5) / steps, sure, float(shares[at, best[at]])))
        return found


@cache
def engine() -> Engine:
    """The engine of this process."""
    return Engine()


def _lines(probability: NDArray[np.float32], ratio: tuple[float, float], floor: float) -> list[Line]:
    """Connected regions of the map as lines; `ratio` (x, y) takes them to the image."""
    import cv2

    mask = cv2.dilate((probability > INK).astype(np.uint8), np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    found = []
    for contour in contours:
        (x, y), (width, height), angle = cv2.minAreaRect(contour)
        if min(width, height) < MIN_SIDE:
            continue
        score = _mean_inside(probability, contour)
        if score < floor:
            continue
        grown = 2 * width * height * UNCLIP / (2 * (width + height))
        corners = cv2.boxPoints(((x, y), (width + grown, height + grown), angle)) * np.array(ratio, np.float32)
        found.append(Line(_clockwise(corners), score))
    return sorted(found, key=lambda line: line.extent)


def _mean_inside(probability: NDArray[np.float32], contour: Any) -> float:
    import cv2

    x, y, width, height = cv2.boundingRect(contour)
    mask = np.zeros((height, width), np.uint8)
    cv2.drawContours(mask, [contour - (x, y)], -1, 1, cv2.FILLED)
    return float(cv2.mean(probability[y : y + height, x : x + width], mask)[0])


def _clockwise(corners: NDArray[Any]) -> NDArray[np.float32]:
    """Top left, top right, bottom right, bottom left."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = by_x[:2], by_x[2:]
    left, right = left[np.argsort(left[:, 1])], right[np.argsort(right[:, 1])]
    return np.array([left[0], right[0], right[1], left[1]], np.float32)


def crop(image: Bytes, line: Line) -> Bytes:
    """The line upright, (rows, columns, 3); one that runs up or down is laid flat."""
    import cv2

    along, across = (max(4, round(side)) for side in line.sides)
    target = np.array([[0, 0], [along, 0], [along, across], [0, across]], np.float32)
    matrix = cv2.getPerspectiveTransform(line.corners, target)
    flat = cv2.warpPerspective(image, matrix, (along, across), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(np.rot90(flat) if across >= RIGHT_ANGLE * along else flat, np.uint8).copy()
