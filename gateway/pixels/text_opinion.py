"""A second opinion on lines that the recogniser is unsure of: tesseract, which reads well what PP-OCR does not.

Only single lines, cut out, so that a look costs milliseconds more. What it reads well makes a doubtful line text;
what it cannot read stays doubtful. The model (`eng`, tessdata_fast, Apache-2.0) is the file that the gate ships with.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TESSDATA = Path(__file__).resolve().parents[1] / "gate" / "tessdata"
SEVERITY_NONE = 6
HEIGHT_PX, PAD_PX = 36, 8  # tesseract reads capitals of about 25 pixels best
ENOUGH = 0.75  # read so well, the second way up is not tried


@cache
def _tesseract() -> Any:
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")  # read when the library is loaded
    import tesserocr

    # Leptonica, which the wheel brings along, writes about odd boxes to stderr: a worker's stderr is nobody's log.
    library = next(Path(tesserocr.__file__).parent.parent.glob("tesserocr.libs/libleptonica*"), None)
    if library is not None:
        ctypes.CDLL(str(library)).setMsgSeverity(SEVERITY_NONE)
    return tesserocr.PyTessBaseAPI(
        path=str(TESSDATA), lang="eng", psm=tesserocr.PSM.SINGLE_LINE, oem=tesserocr.OEM.LSTM_ONLY
    )


def second_opinion(crop: NDArray[np.uint8]) -> tuple[str, float]:
    """What a line (rows, columns, 3), cut out and lying flat, says and how sure that is (0 to 1), either way up."""
    import cv2

    grey = crop.max(2) if np.ptp(crop.max(2)) >= np.ptp(crop.min(2)) else crop.min(2)
    size = max(HEIGHT_PX, round(grey.shape[1] * HEIGHT_PX / grey.shape[0])), HEIGHT_PX
    line = cv2.copyMakeBorder(
        cv2.resize(grey, size, interpolation=cv2.INTER_CUBIC), PAD_PX, PAD_PX, PAD_PX, PAD_PX, cv2.BORDER_REPLICATE
    )
    best = "", 0.0
    for turned in (line, np.rot90(line, 2)):
        read = _read(np.ascontiguousarray(turned, np.uint8))
        best = max(best, read, key=lambda one: one[1])
        if best[1] >= ENOUGH:
            break
    return best


def _read(line: NDArray[np.uint8]) -> tuple[str, float]:
    api = _tesseract()
    rows, columns = line.shape
    api.SetImageBytes(line.tobytes(), columns, rows, 1, columns)
    try:
        text = api.GetUTF8Text().strip()
        return text, api.MeanTextConf() / 100 if text else 0.0
    finally:
        api.Clear()
