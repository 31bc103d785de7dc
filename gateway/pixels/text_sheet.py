"""Several pictures in one pass: they are laid beside each other on a sheet, and what is read goes back to each.

A large picture is cut into tiles that overlap, so that memory is bounded and a line lies whole in one of them. A pass
is the detector over one sheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_blocks import lines_within
from gateway.pixels.text_engine import Engine, Line, crop

Bytes = NDArray[np.uint8]

SHEET_PX, OVERLAP_PX = 2112, 256  # a side of the enlarged sheet: two screens of 1024 columns fit beside each other
GAP_PX = 32
READ_WELL = 0.8  # a box read worse than this may be a block of lines


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line in pixels of its picture, what it says, how sure that is, and where it was read. `parts` is the same of
    the lines that it turned out to be a block of, () where it is one line.
    """

    line: Line
    text: str
    sure: float
    sheet: Bytes
    on_sheet: Line
    parts: tuple[tuple[Line, str, float], ...] = ()

    def cut_out(self) -> Bytes:
        """The line laid flat, (rows, columns, 3)."""
        return crop(self.sheet, self.on_sheet)


@dataclass(frozen=True, slots=True)
class _Tile:
    picture: int
    top: int  # in the picture
    left: int
    pixels: Bytes
    down: int = 0  # on the sheet
    across: int = 0


def read_lines(pictures: Sequence[Bytes], engine: Engine, scale: float, floor: float) -> list[list[ReadLine]]:
    """Lines that score at least `floor` of each picture (rows, columns, 3), looked at enlarged by `scale`."""
    found: list[list[ReadLine]] = [[] for _ in pictures]
    for sheet in _sheets([tile for at, one in enumerate(pictures) for tile in _tiles(at, one, scale)], scale):
        canvas = _drawn(sheet)
        lines = engine.detect(canvas, scale, floor)
        read = engine.read(canvas, lines)
        blocks = _blocks(
            canvas, engine, [line for line, (_, sure) in zip(lines, read, strict=True) if sure < READ_WELL]
        )
        for line, (text, sure) in zip(lines, read, strict=True):
            tile = _tile_of(line, sheet)
            if tile is not None:
                shift = np.array([tile.left - tile.across, tile.top - tile.down], np.float32)
                placed, parts = Line(line.corners + shift, line.score), blocks.get(id(line), ())
                found[tile.picture].append(ReadLine(placed, text, sure, canvas, line, parts))
    return found


def _blocks(canvas: Bytes, engine: Engine, lines: Sequence[Line]) -> dict[int, tuple[tuple[Line, str, float], ...]]:
    """By the id of a line: what it is a block of, read line by line."""
    within = {id(line): lines_within(canvas, line) for line in lines}
    every = [part for parts in within.values() for part in parts]
    said = iter(engine.read(canvas, every))
    return {key: tuple((part, *next(said)) for part in parts) for key, parts in within.items() if parts}


def sheet_area(scale: float) -> int:
    """Pixels, before they are enlarged, that surely fit on one sheet as cut-outs."""
    return int((SHEET_PX / scale) ** 2 / 2)


def _tiles(number: int, picture: Bytes, scale: float) -> Iterator[_Tile]:
    side, overlap = int(SHEET_PX / scale), int(OVERLAP_PX / scale)
    for top in range(0, max(1, picture.shape[0] - overlap), side - overlap):
        for left in range(0, max(1, picture.shape[1] - overlap), side - overlap):
            yield _Tile(number, top, left, np.ascontiguousarray(picture[top : top + side, left : left + side]))


def _sheets(tiles: Sequence[_Tile], scale: float) -> Iterator[list[_Tile]]:
    """Tiles in rows, the next row where one is full, the next sheet where all are."""
    side, gap = int(SHEET_PX / scale), int(GAP_PX / scale)
    sheet: list[_Tile] = []
    down = across = below = 0
    for tile in sorted(tiles, key=lambda one: (-one.pixels.shape[0], one.picture)):
        rows, columns = tile.pixels.shape[:2]
        if across + columns > side:
            down, across = below, 0
        if sheet and down + rows > side:
            yield sheet
            sheet, down, across, below = [], 0, 0, 0
        sheet.append(_Tile(tile.picture, tile.top, tile.left, tile.pixels, down, across))
        across += columns + gap
        below = max(below, down + rows + gap)
    if sheet:
        yield sheet


def _drawn(sheet: Sequence[_Tile]) -> Bytes:
    if len(sheet) == 1:
        return sheet[0].pixels
    rows = max(tile.down + tile.pixels.shape[0] for tile in sheet)
    columns = max(tile.across + tile.pixels.shape[1] for tile in sheet)
    ground = np.median(np.concatenate([tile.pixels[:, ::16].reshape(-1, 3) for tile in sheet]), 0)
    canvas: Bytes = np.empty((rows, columns, 3), np.uint8)
    canvas[:] = ground.astype(np.uint8)
    for tile in sheet:
        canvas[tile.down : tile.down + tile.pixels.shape[0], tile.across : tile.across + tile.pixels.shape[1]] = (
            tile.pixels
        )
    return canvas


def _tile_of(line: Line, sheet: Sequence[_Tile]) -> _Tile | None:
    """The tile that the middle of a line lies on."""
    x, y = line.corners.mean(0)
    for tile in sheet:
        rows, columns = tile.pixels.shape[:2]
        if tile.down <= y < tile.down + rows and tile.across <= x < tile.across + columns:
            return tile
    return None
