"""Is the face that stands there the average one, or still the person's? For policies that put an average face.

The average face (`face_depth.npz`) is fitted to the surface of what would be sent: shifted, stretched, tilted, made
flatter or deeper. What the fit leaves over is a person's own relief. What of the original's own relief is still there
is the regression of the one on the other, brow and below:

    own(s) = depth(s) - fit      own_before, own_after over the same places, the same fit
    left   = <own_after, own_before> / <own_before, own_before>      1: the face is untouched, 0: nothing of it

An average face agrees with every face to a good part, so neither a detector nor plain likeness can tell the two.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gateway.gate.face_compare import below_forehead
from gateway.gate.face_detector import EDGE, FILE, Face
from gateway.gate.face_surface import GRID_MM, level_of, surface_like
from gateway.volumes import Volume

STEP = 2  # pixels of the depth map: 4 mm
STEEP = 1.5  # mm behind for each mm aside: the sides of a nose and of a cheek move with any shift
MIN_POINTS = 60
SPREAD = 3.0  # simplex of the fit: mm of shift, hundredths of stretch
TURNS = 400  # evaluations of the fit

Map = NDArray[np.float64]


def own_relief_left(face: Face, after: Volume, *, hounsfield: bool) -> float:
    """`left`, as above. 1.0 where too little of a surface is seen to tell."""
    from scipy import optimize

    now = surface_like(face.surface, after, level_of(after.values, hounsfield=hounsfield))
    old, new = (
        np.asarray(one[below_forehead(face), face.columns][::STEP, ::STEP], np.float64)
        for one in (face.surface.depth_mm, now.depth_mm)
    )
    there = np.isfinite(old) & np.isfinite(new)
    for depth in (old, new):
        up, across = np.gradient(np.where(np.isfinite(depth), depth, 0.0), GRID_MM * STEP)
        there &= np.hypot(up, across) < STEEP
    if there.sum() < MIN_POINTS:
        return 1.0
    heights, columns = (np.asarray(one * GRID_MM * STEP, np.float64) for one in np.nonzero(there))
    fit = _Fit(heights, columns, new[there], face)
    start = np.zeros(4)
    simplex = np.vstack([start, *(SPREAD * np.eye(4))])
    options = {"initial_simplex": simplex, "maxfev": TURNS, "xatol": 0.05, "fatol": 1e-3}
    found = optimize.minimize(fit.error, start, method="Nelder-Mead", options=options)
    fitted = fit.surface(found.x)
    before, left = old[there] - fitted, new[there] - fitted
    before, left = before - np.median(before), left - np.median(left)
    energy = float(before @ before)
    return float(left @ before) / energy if energy > 0 else 1.0


class _Fit:
    """The average face at points of a depth map: stretched about the window's middle, then least squares for depth."""

    def __init__(self, heights: Map, columns: Map, depth: Map, face: Face) -> None:
        self.depth = depth
        self.middle = np.array([heights.mean(), columns.mean()])
        self.at = np.stack([heights, columns])
        self.size, self.row = face.size, face.row
        self.plane = np.stack([np.ones_like(heights), heights - self.middle[0], columns - self.middle[1]])

    def average(self, parameters: Map) -> Map:
        """Depth mm of the average face. Parameters: shift up and across in mm, stretch of both in hundredths."""
        from scipy import ndimage

        shift, stretch = parameters[:2, None], np.exp(parameters[2:, None] / 100)
        moved = (self.at - self.middle[:, None] - shift) / stretch + self.middle[:, None]
        rows, columns = moved / (GRID_MM * self.size)
        return np.asarray(
            ndimage.map_coordinates(_average(), [rows + self.row, columns], order=1, mode="nearest", prefilter=False)
        )

    def surface(self, parameters: Map) -> Map:
        """The fitted depth at the points."""
        basis = np.vstack([self.plane, self.average(parameters)[None]])
        weights, *_ = np.linalg.lstsq(basis.T, self.depth, rcond=None)
        return np.asarray(weights @ basis, np.float64)

    def error(self, parameters: Map) -> float:
        """Mean absolute distance in mm; far stretches cost."""
        return float(np.abs(self.depth - self.surface(parameters)).mean() + 1e-4 * float(parameters @ parameters))


@cache
def _average() -> Map:
    with np.load(FILE, allow_pickle=False) as stored:
        return np.asarray(stored["depth_mm"][:, EDGE:-EDGE], np.float64)
