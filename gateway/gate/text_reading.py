"""Two readers of text in pictures, with settings of their own: rapidocr (PP-OCRv4) and tesseract.

Both work offline: rapidocr's models lie in its wheel, tesseract's `eng` (tessdata_fast, Apache-2.0) beside this file.
rapidocr finds text of any script, turned by quarters too, and says how sure it is that a box is text at all;
tesseract sees upright Latin text and finds what the other misses. What was read stays in memory.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.gate.pixel_views import Shown

TESSDATA = Path(__file__).with_name("tessdata")
MIN_BOX_SCORE = 0.4  # of a region to be given to the recogniser; what counts is decided by who asks
SEVERITY_NONE = 6
DETECTION_SIDES = 32  # the detector wants multiples


@dataclass(frozen=True, slots=True)
class Read:
    """Text in a picture: where (pixels, half open), what, how sure it was read (0 to 1) and found (0 to 1)."""

    top: int
    left: int
    bottom: int
    right: int
    text: str
    sure: float
    found: float
    reader: str


@cache
def _rapid() -> Any:
    import cv2
    from rapidocr_onnxruntime import RapidOCR

    cv2.setNumThreads(1)  # workers run side by side
    return RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1, print_verbose=False)


@cache
def _tesseract() -> Any:
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")  # read when the library is loaded
    import tesserocr

    # Leptonica, which the wheel brings along, writes about odd boxes to stderr: a worker's stderr is nobody's log.
    library = next(Path(tesserocr.__file__).parent.parent.glob("tesserocr.libs/libleptonica*"), None)
    if library is not None:
        ctypes.CDLL(str(library)).setMsgSeverity(SEVERITY_NONE)
    return tesserocr.PyTessBaseAPI(
        path=str(TESSDATA), lang="eng", psm=tesserocr.PSM.SPARSE_TEXT, oem=tesserocr.OEM.LSTM_ONLY
    )


def read_rapid(picture: Shown) -> list[Read]:
    """Everything that rapidocr takes for text, at the size that the picture has."""
    engine = _rapid()
    colour = np.repeat(picture[..., None], 3, axis=2)
    boxes, found = _detect(engine.text_det, colour)
    if not len(boxes):
        return []
    crops = engine.get_crop_img_list(colour, [box.astype(np.float32) for box in boxes])
    crops, _, _ = engine.text_cls(crops)
    texts, _ = engine.text_rec(crops)
    return [
        Read(*_bounds(box), text, float(sure), float(score), "rapidocr")
        for box, score, (text, sure, *_) in zip(boxes, found, texts, strict=True)
    ]


def _detect(detector: Any, colour: NDArray[np.uint8]) -> tuple[list[NDArray[np.float32]], list[float]]:
    """Boxes of four corners, clockwise from the top left, each with its score."""
    import cv2

    rows, columns = colour.shape[:2]
    height, width = (max(DETECTION_SIDES, -(-side // DETECTION_SIDES) * DETECTION_SIDES) for side in (rows, columns))
    padded = cv2.copyMakeBorder(colour, 0, height - rows, 0, width - columns, cv2.BORDER_REPLICATE)
    ready = np.ascontiguousarray(((padded.astype(np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None])
    post = detector.postprocess_op
    post.box_thresh = MIN_BOX_SCORE
    boxes, scores = post(detector.infer(ready)[0], (height, width))
    kept, sure = [], []
    for box, score in zip(boxes, scores, strict=True):
        ordered = detector.clip_det_res(detector.order_points_clockwise(box), rows, columns)
        if min(np.linalg.norm(ordered[0] - ordered[1]), np.linalg.norm(ordered[0] - ordered[3])) > 3:
            kept.append(ordered)
            sure.append(float(score))
    return kept, sure


def _bounds(box: NDArray[np.float32]) -> tuple[int, int, int, int]:
    left, top = np.floor(box.min(axis=0)).astype(int)
    right, bottom = np.ceil(box.max(axis=0)).astype(int)
    return int(top), int(left), int(bottom), int(right)


def read_tesseract(picture: Shown) -> list[Read]:
    """Every word that tesseract reads, with its confidence."""
    import tesserocr

    api = _tesseract()
    rows, columns = picture.shape
    api.SetImageBytes(picture.tobytes(), columns, rows, 1, columns)
    api.SetSourceResolution(150)
    reads = []
    try:
        if not api.Recognize():
            return []
        words = api.GetIterator()
        level = tesserocr.RIL.WORD
        for word in tesserocr.iterate_level(words, level) if words is not None else ():
            text = word.GetUTF8Text(level) if not word.Empty(level) else ""
            box = word.BoundingBox(level)
            if text and box:
                left, top, right, bottom = box
                sure = word.Confidence(level) / 100
                reads.append(Read(top, left, bottom, right, text.strip(), sure, sure, "tesseract"))
    finally:
        api.Clear()
    return reads
