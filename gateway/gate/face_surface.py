"""The surface of a body seen from in front, out of a volume: depth in mm, as a camera without perspective sees it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.volumes import Volume

GRID_MM = 2.0
SHARE = 0.25  # of the way from air to typical tissue where the surface lies
CT_SURFACE = -300.0
Matrix = NDArray[np.float64]
FAINT = 0.05  # of the brightest uptake of a tracer: about that of skin
MIN_PIECE = 400  # voxels of 8 mm3: dust in the air is no surface


@dataclass(frozen=True, slots=True)
class Surface:
    """`depth_mm` [height, across] from the front of what was imaged, nan where nothing is hit; heights run upwards,
    across runs to the patient's left; `deep` steps were looked at behind each. `origin` (3,) and `axes` (3, 3) lead
    from (across, depth, height) mm to LPS mm.
    """

    depth_mm: NDArray[np.float32]
    deep: int
    origin: Matrix
    axes: Matrix

    def points(self, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Matrix:
        """LPS mm (n, 3) of surface points."""
        local = np.stack([columns * GRID_MM, self.depth_mm[rows, columns], rows * GRID_MM], -1)
        points: Matrix = self.origin + local @ self.axes.T
        return points


def level_of(values: NDArray[np.float32], *, hounsfield: bool) -> float:
    """The value where air ends. Between the median of what is dim and of what is bright, split at the mean."""
    if hounsfield:
        return CT_SURFACE
    split = float(values.mean())
    for _ in range(20):  # Ridler and Calvard 1978: the mean of the means
        low, high = values[values <= split], values[values > split]
        if not low.size or not high.size:
            return split
        split = (float(low.mean()) + float(high.mean())) / 2
    air = float(np.median(values[values <= split]))
    return air + SHARE * (float(np.median(values[values > split])) - air)


def uptake_scale(values: NDArray[np.float32]) -> float:
    """The uptake of what is faint, in the units of `values`; above 0. Of the original, for both sides."""
    return max(FAINT * float(np.percentile(values, 99.5)), float(np.finfo(np.float32).tiny))


def compressed(volume: Volume, scale: float) -> Volume:
    """log(1 + value / scale): skin, at a tenth of the brain's uptake, stands out of the air. Negative noise is air."""
    return Volume(np.log1p(np.maximum(volume.values, 0) / np.float32(scale)).astype(np.float32), volume.affine)


def surface(volume: Volume, level: float, pitch: float = 0.0) -> Surface:
    """Seen from in front, the camera raised by `pitch` radians. Pieces of dust are passed over."""
    turn = np.array([[1, 0, 0], [0, np.cos(pitch), -np.sin(pitch)], [0, np.sin(pitch), np.cos(pitch)]])
    corners = np.array(list(np.ndindex(2, 2, 2))) * (np.array(volume.values.shape[::-1]) - 1)
    points = corners @ volume.affine[:3, :3].T + volume.affine[:3, 3]
    local = points @ turn
    low, high = local.min(0), local.max(0)
    across, deep, up = (int(one) + 1 for one in np.ceil((high - low) / GRID_MM))
    return _rendered(volume, level, turn @ low, turn, (up, deep, across))


def surface_like(other: Surface, volume: Volume, level: float) -> Surface:
    """In the view of another surface."""
    return _rendered(
        volume, level, other.origin, other.axes, (other.depth_mm.shape[0], other.deep, other.depth_mm.shape[1])
    )


def _rendered(volume: Volume, level: float, origin: Matrix, axes: Matrix, shape: tuple[int, int, int]) -> Surface:
    from scipy import ndimage

    to_patient = np.eye(4)
    to_patient[:3, :3], to_patient[:3, 3] = axes * GRID_MM, origin
    matrix = np.linalg.inv(volume.affine) @ to_patient
    values = ndimage.affine_transform(
        volume.values,
        matrix[:3, :3][::-1, ::-1],
        matrix[:3, 3][::-1],
        shape,
        order=1,
        mode="constant",
        cval=float(volume.values.min()),
    )
    solid = ndimage.gaussian_filter(values, 0.6) > level
    labels, count = ndimage.label(solid)
    if count:
        sizes = np.bincount(labels.ravel())
        sizes[0] = 0
        solid = (sizes >= MIN_PIECE)[labels]
    depth = np.where(solid.any(1), np.argmax(solid, axis=1) * GRID_MM, np.nan).astype(np.float32)
    return Surface(depth, shape[1], origin, axes)
