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

SHEET_PIXELS = 2112  # two screens of 1024 columns beside each other
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


_Tile = tuple[int, int, Shown, Origin]  # top and left on the sheet


class Sheets:
    """Collects tiles and has every reader read each full sheet. `flush` reads what is left."""

    def __init__(self, readers: tuple[Reader, ...]) -> None:
        self._readers = readers
        self._sheet = _Sheet()
        self.passes = 0

    def add(self, picture: Shown, origin: Origin, *, most: int = SHEET_PIXELS) -> Iterator[Placed]:
        """Take a picture or a cut-out, shrunk to `most` pixels a side; gives what was read on a sheet that is full."""
        enlarged, scale = _fitted(picture, most)
        tile = enlarged, replace(origin, scale=scale)
        if not self._sheet.take(tile):
            yield from self.flush()
            self._sheet.take(tile)

    def flush(self) -> Iterator[Placed]:
        """Read the sheet as it is."""
        tiles, self._sheet = self._sheet.tiles, _Sheet()
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


class _Sheet:
    """Tiles side by side on shelves, each as high as its first tile."""

    def __init__(self) -> None:
        self.tiles: list[_Tile] = []
        self._shelves: list[list[int]] = []  # top, height, and where the next tile begins

    def take(self, tile: tuple[Shown, Origin]) -> bool:
        """Put a tile on the sheet, with all tiles laid anew where that makes room; False when there is none."""
        if self._put(tile):
            return True
        again = _Sheet()
        every = [*((one, origin) for _, _, one, origin in self.tiles), tile]
        if not all(again._put(one) for one in sorted(every, key=lambda one: -one[0].shape[0])):
            return False
        self.tiles, self._shelves = again.tiles, again._shelves
        return True

    def _put(self, tile: tuple[Shown, Origin]) -> bool:
        rows, columns = tile[0].shape
        shelf = next((one for one in self._shelves if rows <= one[1] and one[2] + columns <= SHEET_PIXELS), None)
        if shelf is None:
            top = self._shelves[-1][0] + self._shelves[-1][1] + GAP_PIXELS if self._shelves else 0
            if top + rows > SHEET_PIXELS:
                return False
            shelf = [top, rows, 0]
            self._shelves.append(shelf)
        self.tiles.append((shelf[0], shelf[2], *tile))
        shelf[2] += columns + GAP_PIXELS
        return True


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


def _placed(read: Read, tiles: list[_Tile]) -> Placed | None:
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
