"""The surface of a face in the face's own frame: what a recogniser of faces is given.

The gateway's alignment with the template says where the face is and how it looks about (its rigid part alone: sizes
are a person's own). From there the surface is looked at from in front, without perspective. The attacker is given the
alignment of the *original* for the defaced volume too: no alignment of his own could be better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gateway.gate.face_surface import GRID_MM, Surface, level_of, surface_like
from gateway.volumes import Volume

ACROSS_MM, HEIGHTS_MM, DEPTHS_MM = (-64.0, 64.0), (-112.0, 16.0), (-140.0, 0.0)  # template LPS: chin to brow


def face_map(volume: Volume, to_template: NDArray[np.float64], *, hounsfield: bool) -> NDArray[np.float32]:
    """(height, across) depth in mm at `GRID_MM`, heights upwards, nan where nothing is hit before the ears' depth."""
    to_patient = np.linalg.inv(to_template)
    left, _, right = np.linalg.svd(to_patient[:3, :3])
    axes = left @ right
    middle = np.array([np.mean(ACROSS_MM), np.mean(DEPTHS_MM), np.mean(HEIGHTS_MM), 1.0])
    corner = np.array([ACROSS_MM[0], DEPTHS_MM[0], HEIGHTS_MM[0]])
    origin = (to_patient @ middle)[:3] + axes @ (corner - middle[:3])
    shape = tuple(round((high - low) / GRID_MM) for low, high in (HEIGHTS_MM, ACROSS_MM))
    deep = round((DEPTHS_MM[1] - DEPTHS_MM[0]) / GRID_MM)
    view = Surface(np.zeros(shape, np.float32), deep, origin, axes)
    return surface_like(view, volume, level_of(volume.values, hounsfield=hounsfield)).depth_mm
