"""New anatomy that was made on one grid carried to a sequence on a grid of its own, with that sequence's own lesion.

Indices are (z, y, x); a matrix (4, 4) takes an index of the grid that is written to one of the grid that is read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from models.lesion_anonymiser.fusion import dilated, fused, must_be_kept, seam
from models.lesion_anonymiser.study import Anonymised, Floats, Mask, NotAnonymised, Settings, SpacingZyx

COARSE = 1.5  # voxels of the grid that is read for one that is written: from here on they are averaged


def moved(volume: Floats, matrix: NDArray[np.float64], shape: tuple[int, int, int], outside: float) -> Floats:
    """`volume` on another grid, linear, fine voxels averaged; `outside` where it does not reach."""
    smooth = volume.astype(np.float32)
    for axis, step in enumerate(np.abs(matrix[:3, :3]).sum(1)):
        if step >= COARSE:
            smooth = ndimage.uniform_filter1d(smooth, round(float(step)), axis=axis, mode="nearest")
    out = ndimage.affine_transform(
        smooth, matrix[:3, :3], matrix[:3, 3], output_shape=shape, order=1, cval=outside, mode="constant"
    )
    return np.asarray(out, np.float32)


def kept_of(lesion: Mask, spacing_mm: SpacingZyx, how: Settings) -> Mask:
    """What stays of a sequence on its own grid: in `exact` the dilated lesion, else nothing."""
    return dilated(lesion, how.margin_mm, spacing_mm) if how.mode == "exact" else np.zeros_like(lesion)


def carried(
    original: Floats,
    lesion: Mask,
    spacing_mm: SpacingZyx,
    made: Floats,
    done: Anonymised,
    matrix: NDArray[np.float64],
    how: Settings,
) -> Floats:
    """The sequence on its own grid (`original`, `lesion`, `spacing_mm`), `made` being what `done` has of it.

    Where the made anatomy does not reach there is air. Raises NotAnonymised for a seam.
    """
    low, high = float(original.min()), float(original.max())
    new = np.clip(moved(made, matrix, original.shape, low), low, high)
    kept = kept_of(lesion, spacing_mm, how)
    if not kept.any():
        return np.asarray(new, np.float32)
    border_mm = max(how.border_mm, 2 * max(spacing_mm))
    head = moved(done.head.astype(np.float32), matrix, original.shape, 0.0) > 0.5
    head |= dilated(kept, border_mm, spacing_mm)
    out = np.clip(fused(original, new, kept, border_mm, spacing_mm), low, high)
    out[~head] = new[~head]
    out[kept] = original[kept]
    must_be_kept(original, out, kept)
    found = seam(original, out, kept, border_mm, spacing_mm)
    if found > how.seam:
        raise NotAnonymised(f"a seam shows around the lesion on its own grid: {found:.1f}, at most {how.seam:.1f}")
    return np.asarray(out, np.float32)
