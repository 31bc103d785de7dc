"""Pictures and masks of PNG, JPEG, TIFF or BMP files, read when a scan is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, UnidentifiedImageError

from models.cohorts.cohort import Pixels
from models.cohorts.readers.tables import LayoutError

SUFFIXES = (".jpeg", ".jpg", ".png", ".tif", ".tiff", ".bmp")
UNREADABLE = (OSError, UnidentifiedImageError, SyntaxError, Image.DecompressionBombError)


def grey(path: Path) -> Pixels:
    """(rows, columns), 0 to 1 of the type's full range. Colour becomes grey (ITU-R 601). Raises LayoutError."""
    try:
        with Image.open(path) as picture:
            if picture.mode.startswith("I"):  # 16 bits
                return np.asarray(np.clip(np.asarray(picture, np.float32) / 65535, 0, 1), np.float32)
            return np.asarray(picture.convert("L"), np.float32) / np.float32(255)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def colour(path: Path) -> Pixels:
    """(rows, columns, 3), red, green, blue, 0 to 1. Grey is three times the same. Raises LayoutError."""
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"), np.float32) / np.float32(255)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def size_of(path: Path) -> tuple[int, int]:
    """(rows, columns) from the header."""
    try:
        with Image.open(path) as picture:
            return picture.height, picture.width
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def values(path: Path) -> NDArray[np.uint8]:
    """(rows, columns) of a mask as stored; a palette's indices are turned into its greys."""
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("L"), np.uint8)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def polygons_on(path: Path, polygons: Sequence[Sequence[Sequence[float]]]) -> NDArray[np.bool_]:
    """(rows, columns) of the picture at `path`: inside any of the polygons, [(x, y), ...] in its pixels, edges too."""
    rows, columns = size_of(path)
    mask = Image.new("1", (columns, rows))
    draw = ImageDraw.Draw(mask)
    for polygon in polygons:
        points = [(float(x), float(y)) for x, y in polygon]
        if len(points) >= 3:
            draw.polygon(points, fill=1, outline=1)
    return np.asarray(mask, np.bool_)


def _unreadable(path: Path, error: Exception) -> LayoutError:
    return LayoutError(f"the picture {path.name} cannot be read ({type(error).__name__}); fetch it again")
