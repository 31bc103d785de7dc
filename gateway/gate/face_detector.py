"""Faces in depth maps: what fits the average face, its nose, eyes and brow.

What is compared is how the surface is turned at each place, across and upwards, less how it is turned around there: a
normalised cross-correlation of two fields with those of an average face (`face_depth.npz`, made by
tools/make_head_template.py), at several sizes and camera heights; and with its upper half, because many heads are cut
off at the nose. On label maps of real heads, faces correlate by 0.8 and more; the same heads without their face, from
behind and from the side by less than 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gateway.gate.face_surface import GRID_MM, Surface, level_of, surface
from gateway.volumes import Volume

FILE = Path(__file__).parent / "face_depth.npz"
SIZES = (0.85, 0.95, 1.05, 1.15)
PITCHES = (0.0, -0.3, 0.3)
STEP = 2  # of the depth map's pixels: 4 mm
SMOOTH, AROUND = 1.0, 3.5  # standard deviations in steps of 4 mm
STEEPEST = 1.5  # of slopes: where a surface ends
EDGE = 4  # columns of the average face that are left out, either side
UPPER_ROW = 20  # of the average face: from the tip of the nose upwards
SEEN = {"face": 0.6, "upper": 0.72}  # a smaller piece fits more things
MIN_COVER = 0.85  # of the average face's area that must be surface
LEAST_ENERGY = 0.15  # of the average face's: an even surface is no face, whatever its noise

Map = NDArray[np.float32]
Turned = tuple[Map, Map]


@dataclass(frozen=True, slots=True)
class Face:
    """`score` is the correlation, in units of what counts as seen; `rows` and `columns` are the window in `surface`.

    `size` is that of the average face there, `row` the first of its rows (of 2 mm, unscaled) that the window shows.
    """

    score: float
    surface: Surface
    rows: slice
    columns: slice
    size: float
    row: int

    def depth_mm(self) -> Map:
        """The surface in the window, [height, across]."""
        return self.surface.depth_mm[self.rows, self.columns]

    @property
    def is_seen(self) -> bool:
        return self.score >= 1.0


def find_face(volume: Volume, *, hounsfield: bool) -> Face | None:
    """The best fit of all sizes and camera heights; None where nothing is large enough to be a face."""
    level = level_of(volume.values, hounsfield=hounsfield)
    best: Face | None = None
    for pitch in PITCHES:
        found = _best(surface(volume, level, pitch))
        if found is not None and (best is None or found.score > best.score):
            best = found
    return best


def _best(seen: Surface) -> Face | None:
    depth = seen.depth_mm[::STEP, ::STEP]
    there = np.isfinite(depth)
    if not there.any():
        return None
    field = turned(depth, there)
    best: Face | None = None
    for part, least in SEEN.items():
        for size in SIZES:
            model = _model(part, size)
            rows, columns = model[0].shape
            if depth.shape[0] < rows or depth.shape[1] < columns:
                continue
            score = _correlation(field, there, model) / least
            row, column = (int(one) for one in np.unravel_index(int(np.argmax(score)), score.shape))
            if best is None or score[row, column] > best.score:
                window = slice(row * STEP, (row + rows) * STEP), slice(column * STEP, (column + columns) * STEP)
                first = UPPER_ROW if part == "upper" else 0
                best = Face(float(score[row, column]), seen, *window, size, first)
    return best


def turned(depth: Map, there: NDArray[np.bool_]) -> Turned:
    """How the surface is turned upwards and across, less its surroundings; 0 without surface. `depth` every 4 mm."""
    from scipy import ndimage

    filled = np.where(there, depth, np.max(depth, where=there, initial=0.0) + 10)
    slopes = np.gradient(ndimage.gaussian_filter(filled, SMOOTH), GRID_MM * STEP)
    up, across = (np.clip(one, -STEEPEST, STEEPEST) for one in slopes)
    length = np.sqrt(1 + up**2 + across**2)
    weight = ndimage.gaussian_filter(there.astype(np.float32), AROUND) + 1e-3
    first, second = (
        ((one - ndimage.gaussian_filter(one * there, AROUND) / weight) * there).astype(np.float32)
        for one in (up / length, across / length)
    )
    return first, second


def _correlation(field: Turned, there: NDArray[np.bool_], model: Turned) -> Map:
    """NCC of both fields at every place where the model lies wholly inside; 0 where too little is surface."""
    from scipy import signal

    ones = np.ones_like(model[0])
    energy = float(sum((one**2).sum() for one in model))
    both = sum(signal.fftconvolve(image, one[::-1, ::-1], "valid") for image, one in zip(field, model, strict=True))
    own = signal.fftconvolve(field[0] ** 2 + field[1] ** 2, ones, "valid")
    cover = signal.fftconvolve(there.astype(np.float32), ones, "valid") / ones.size
    score = both / np.sqrt(np.maximum(own, LEAST_ENERGY * energy) * energy)
    return np.where(cover > MIN_COVER, score, 0).astype(np.float32)


@cache
def _model(part: str, size: float) -> Turned:
    """The average face, or its upper half, at a size."""
    from scipy import ndimage

    with np.load(FILE, allow_pickle=False) as stored:
        depth = stored["depth_mm"][:, EDGE:-EDGE]
    scaled = (ndimage.zoom(depth, size / STEP, order=1) * size).astype(np.float32)
    first, second = turned(scaled, np.ones(scaled.shape, bool))
    row = round(UPPER_ROW * size / STEP) if part == "upper" else 0
    return first[row:], second[row:]
