"""How much of a face is still there: the original's surface against that of what would be sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gateway.gate.face_detector import STEP, Face, turned
from gateway.gate.face_surface import level_of, surface_like
from gateway.volumes import Volume

FOREHEAD_ROWS = 9  # of the average face, from its top: above the brow
SAME_MM = 2.0  # nearer than this a point of the surface is where it was


@dataclass(frozen=True, slots=True)
class Likeness:
    """`kept`: share of the face's surface points, brow and below, that are where they were. `relief`: correlation of
    how both surfaces are turned.
    """

    kept: float
    relief: float


def below_forehead(face: Face) -> slice:
    """Rows of the window up to the brow: what lies higher is spared in part, and makes nobody known."""
    return slice(face.rows.start, face.rows.stop - round(FOREHEAD_ROWS * face.size))


def compare(face: Face, after: Volume, *, hounsfield: bool) -> Likeness:
    """Rendered in the view in which the face was found."""
    now = surface_like(face.surface, after, level_of(after.values, hounsfield=hounsfield))
    old, new = face.surface.depth_mm, now.depth_mm
    window = face.rows, face.columns
    below = below_forehead(face), face.columns
    both = np.isfinite(old[below]) & np.isfinite(new[below])
    points = int(np.isfinite(old[below]).sum())
    kept = float((np.abs(old[below] - new[below])[both] < SAME_MM).sum() / points) if points else 0.0
    small = tuple(slice(one.start // STEP, one.stop // STEP) for one in window)
    first, second = (
        np.concatenate(
            [one[small].ravel() for one in turned(depth[::STEP, ::STEP], np.isfinite(depth[::STEP, ::STEP]))]
        )
        for depth in (old, new)
    )
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return Likeness(kept, float(first @ second) / lengths if lengths > 1e-3 else 0.0)
