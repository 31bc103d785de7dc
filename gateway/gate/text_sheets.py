"""Sheets of tiles for the readers: whole pictures and cut-outs packed together, so that a series costs few passes.

A pass is one reader over one sheet. Each tile remembers where in which frame it came from, and what is read on a sheet
is said in pixels of that frame. A sheet has at most `SHEET_PIXELS` to a side: below 1 GB of memory for the readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gateway.gate.pixel_views import Shown
from gateway.gate.text_reading import Read

SHEET_PIXELS = 2048
GAP_PIXELS = 16
TILE_PIXELS = 768  # what a small picture is enlarged to, at most twice
ENLARGE = 2.0
EVERY_FRAME = -1

Reader = Callable[[Shown], list[Read]]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a tile came from: the corner in its frame (pixels), and how much it was enlarged."""

    instance: str
    place: str
    frame: int
    top: int = 0
    left: int = 0
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Placed:
    """What was read, in pixels of the frame. `height` is that of the box on the sheet, in its own pixels."""

    origin: Origin
    read: Read
    height: int


class Sheets:
    """Collects tiles and has every reader read each full sheet. `flush` reads what is left."""

    def __init__(self, readers: tuple[Reader, ...]) -> None:
        self._readers = readers
        self.passes = 0
        self._begin()

    def _begin(self) -> None:
        self._tiles: list[tuple[int, int, Shown, Origin]] = []
        self._shelf_top = self._shelf_bottom = self._across = 0

    def add(self, picture: Shown, origin: Origin, *, most: int = SHEET_PIXELS) -> Iterator[Placed]:
        """Take a picture or a cut-out, shrunk to `most` pixels a side; gives what was read on a sheet that is full."""
        enlarged, scale = _fitted(picture, most)
        rows, columns = enlarged.shape
        if self._across and self._across + columns > SHEET_PIXELS:
            self._shelf_top, self._across = self._shelf_bottom, 0
        if self._tiles and self._shelf_top + rows > SHEET_PIXELS:
            yield from self.flush()
        self._tiles.append((self._shelf_top, self._across, enlarged, replace(origin, scale=scale)))
        self._across += columns + GAP_PIXELS
        self._shelf_bottom = max(self._shelf_bottom, self._shelf_top + rows + GAP_PIXELS)

    def flush(self) -> Iterator[Placed]:
        """Read the sheet as it is."""
        tiles = self._tiles
        self._begin()
        if not tiles:
            return
        height = max(top + tile.shape[0] for top, _, tile, _ in tiles)
        width = max(left + tile.shape[1] for _, left, tile, _ in tiles)
        sheet = np.zeros((height, width), np.uint8)
        for top, left, tile, _ in tiles:
            sheet[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
        for reader in self._readers:
            self.passes += 1
            for read in reader(sheet):
                placed = _placed(read, tiles)
                if placed is not None:
                    yield placed


def _fitted(picture: Shown, most: int) -> tuple[Shown, float]:
    """A small picture enlarged, a large one shrunk."""
    import cv2

    longest = max(picture.shape)
    scale = max(1.0, min(ENLARGE, TILE_PIXELS / longest)) if longest <= most else most / longest
    if scale == 1:
        return picture, 1.0
    size = tuple(max(1, min(most, round(side * scale))) for side in picture.shape[::-1])
    how = cv2.INTER_CUBIC if scale > 1 else cv2.INTER_AREA
    return np.asarray(cv2.resize(picture, size, interpolation=how), np.uint8), scale


def _placed(read: Read, tiles: list[tuple[int, int, Shown, Origin]]) -> Placed | None:
    """The read on the tile that holds the middle of its box; None between tiles."""
    row, column = (read.top + read.bottom) // 2, (read.left + read.right) // 2
    for top, left, tile, origin in tiles:
        if top <= row < top + tile.shape[0] and left <= column < left + tile.shape[1]:
            rows, columns = tile.shape
            box = (
                *(max(read.top - top, 0), max(read.left - left, 0)),
                *(min(read.bottom - top, rows), min(read.right - left, columns)),
            )
            first, second, third, fourth = (round(side / origin.scale) for side in box)
            inside = replace(
                read,
                top=origin.top + first,
                left=origin.left + second,
                bottom=origin.top + third,
                right=origin.left + fourth,
            )
            return Placed(origin, inside, min(box[2] - box[0], box[3] - box[1]))
    return None
