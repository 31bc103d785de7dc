"""The lesion of the original in a new background, bit for bit, without a seam.

Inside the kept region voxels are copied. Outside, nothing of the original's texture enters: the new tissue gets a
smooth offset that makes it meet the lesion's rim and fades over `border_mm`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from models.lesion_anonymiser.study import Floats, Mask, NotAnonymised, SpacingZyx

REACH = 3.0  # borders about the kept region that fusing looks at: smoothing ends well inside


def dilated(mask: Mask, by_mm: float, spacing_mm: SpacingZyx) -> Mask:
    """All voxels within `by_mm` of a mask, by Euclidean distance."""
    near: Mask = mask.copy()
    if mask.any() and by_mm > 0:
        box = _about(mask, by_mm, spacing_mm)
        near[box] = ndimage.distance_transform_edt(~mask[box], sampling=spacing_mm) <= by_mm
    return near


def fused(original: Floats, new: Floats, kept: Mask, border_mm: float, spacing_mm: SpacingZyx) -> Floats:
    """`original` in `kept`, else `new` plus the offset that the rim needs. All (z, y, x)."""
    out = new.copy()
    if kept.any():
        box = _about(kept, REACH * border_mm, spacing_mm)
        out[box] = _fused(original[box], new[box], kept[box], border_mm, spacing_mm)
    return out


def _fused(original: Floats, new: Floats, kept: Mask, border_mm: float, spacing_mm: SpacingZyx) -> Floats:
    distance, nearest = ndimage.distance_transform_edt(~kept, sampling=spacing_mm, return_indices=True)
    rim = kept & ~ndimage.binary_erosion(kept, border_value=1)
    difference = np.where(rim, original - new, 0).astype(np.float32)
    spread = [border_mm / 3 / one for one in spacing_mm]
    weight = ndimage.gaussian_filter(rim.astype(np.float32), spread)
    smooth = ndimage.gaussian_filter(difference, spread) / np.maximum(weight, 1e-6)
    at_rim = (original - new)[tuple(nearest)]
    close = np.exp(-distance / (1.5 * min(spacing_mm[1:])))  # at the rim its own value, further out the rim's mean
    share = np.clip(1 - distance / border_mm, 0, 1)
    fade = share * share * (3 - 2 * share)
    out = new + (fade * (close * at_rim + (1 - close) * smooth)).astype(np.float32)
    out[kept] = original[kept]
    return np.asarray(out, np.float32)


def must_be_kept(original: Floats, result: Floats, kept: Mask) -> None:
    """Raises NotAnonymised unless every kept voxel is the original's, bit for bit."""
    same = original[kept].view(np.uint32) == result[kept].view(np.uint32)
    if not same.all():
        raise NotAnonymised(f"{int((~same).sum())} of {same.size} voxels of the lesion are not the original's")


def seam(original: Floats, result: Floats, kept: Mask, border_mm: float, spacing_mm: SpacingZyx) -> float:
    """How visible the border of `kept` is: steps across it over the steps that are usual close to it.

    Mean |difference| of neighbouring voxels on both sides of the border in the result, over the larger of the same in
    the original (a lesion may have a sharp edge of its own) and of the mean step within `border_mm` of the border in
    the result. 1 and less: nothing is seen. 0 where nothing is kept.
    """
    if not kept.any():
        return 0.0
    box = _about(kept, border_mm, spacing_mm)
    original, result, kept = original[box], result[box], kept[box]
    outside = ndimage.distance_transform_edt(~kept, sampling=spacing_mm)
    inside = ndimage.distance_transform_edt(kept, sampling=spacing_mm)
    near = (outside <= border_mm) & (inside <= border_mm)
    across, before, usual = [], [], []
    for axis in range(3):
        if kept.shape[axis] < 2:
            continue
        one, other = _pair(kept, axis)
        border = one != other
        both = np.logical_and(*_pair(near, axis)) & ~border
        steps, old = (np.abs(np.subtract(*_pair(volume, axis))) for volume in (result, original))
        across.append(steps[border])
        before.append(old[border])
        usual.append(steps[both])
    made, was, common = (
        float(np.concatenate(one).mean()) if sum(map(len, one)) else 0.0 for one in (across, before, usual)
    )
    floor = max(was, common)
    return made / floor if floor > 0 else (0.0 if made == 0 else float("inf"))


def coherence(original: Floats, result: Floats, head: Mask) -> float:
    """Mean |difference| between neighbouring slices inside the head, result over original: 1 is as coherent."""
    both = head[1:] & head[:-1]
    was = np.abs(np.diff(original, axis=0))[both]
    made = np.abs(np.diff(result, axis=0))[both]
    if not len(was) or was.mean() == 0:
        return float("nan")
    return float(made.mean() / was.mean())


def _about(mask: Mask, reach_mm: float, spacing_mm: SpacingZyx) -> tuple[slice, ...]:
    """The box of a mask and what lies within reach of it, so that the rest of a volume costs nothing."""
    found = ndimage.find_objects(mask.astype(np.uint8))[0]
    return tuple(
        slice(max(one.start - extra, 0), one.stop + extra)
        for one, extra in zip(found, (int(reach_mm / mm) + 2 for mm in spacing_mm), strict=True)
    )


def _pair(volume: NDArray[np.generic], axis: int) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Each voxel and its next neighbour along an axis."""
    moved = np.moveaxis(volume, axis, 0)
    return moved[:-1], moved[1:]
