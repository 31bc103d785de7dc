"""Portraits of heads from in front and from the side, and a sheet of them before and after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from gateway.gate.face_surface import GRID_MM, level_of, surface
from gateway.volumes import Volume

TILE = 132  # pixels
COLUMNS = 6


def portrait(volume: Volume, *, hounsfield: bool) -> NDArray[np.uint8]:
    """(TILE, 2 * TILE): lit from in front, and the same from half right; first row on top."""
    level = level_of(volume.values, hounsfield=hounsfield)
    turned = Volume(volume.values, _about_z(0.9) @ volume.affine)
    return np.concatenate([_shaded(one, level) for one in (volume, turned)], axis=1)


def _about_z(angle: float) -> NDArray[np.float64]:
    matrix = np.eye(4)
    matrix[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return matrix


def _shaded(volume: Volume, level: float) -> NDArray[np.uint8]:
    depth = surface(volume, level).depth_mm[::-1]
    there = np.isfinite(depth)
    up, across = np.gradient(np.where(there, depth, 400.0), GRID_MM)
    light = np.where(there, (0.9 - 0.35 * up) / np.sqrt(1 + up**2 + across**2), 0)
    tile = np.zeros((TILE, TILE), np.uint8)
    part = (np.clip(light, 0, 1) * 255).astype(np.uint8)[:TILE, :TILE]
    tile[: part.shape[0], : part.shape[1]] = part
    return tile


def contact_sheet(cases: list[tuple[str, Path]], target: Path) -> None:
    """Before above after, one column a case; `cases` are names and files with `before` and `after`."""
    there = [(name, path) for name, path in cases if path.exists()]
    rows = -(-len(there) // COLUMNS)
    sheet = Image.new("L", (COLUMNS * 2 * TILE, rows * (2 * TILE + 14)))
    draw = ImageDraw.Draw(sheet)
    for number, (name, path) in enumerate(there):
        left, top = number % COLUMNS * 2 * TILE, number // COLUMNS * (2 * TILE + 14)
        draw.text((left + 2, top + 1), name, fill=255)
        with np.load(path) as stored:
            for line, which in enumerate(("before", "after")):
                sheet.paste(Image.fromarray(stored[which]), (left, top + 14 + line * TILE))
    sheet.save(target, optimize=True)
