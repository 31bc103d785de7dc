"""`regularise` and `style`: a rare shape or look of a lesion identifies, so both can be moved a little.

Regularised: each part of the mask moves towards a smooth, rounder shape of exactly its volume about its own middle.
Styled: intensities of the lesion get another gain, offset and low texture, drawn with the study's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import ConvexHull, QhullError

from models.lesion_anonymiser.study import Floats, Mask, Noise, NotAnonymised, SpacingZyx

SMOOTH_SHARE = 0.5  # of a part's radius, at strength 1
WEAKER, LEAST = 0.5, 0.02  # strength is halved down to this share until the tolerance holds
PAD = 6  # voxels about a part
GAIN, TEXTURE_MM = 1.0, 8.0
NEIGHBOURS = np.ones((3, 3, 3), np.bool_)


@dataclass(frozen=True, slots=True)
class Regularised:
    """The new mask; volume after over before; the largest change of convexity of a part; the strength that was used."""

    lesion: Mask
    volume_ratio: float
    convexity_change: float
    strength: float


def convexity(part: Mask, spacing_mm: SpacingZyx) -> float:
    """Volume over that of the convex hull of its voxels (solidity), 0 to 1; 1 for what has no hull (flat, few)."""
    corners = np.argwhere(part)
    if len(corners) < 5:
        return 1.0
    cube = np.stack(np.meshgrid(*[(-0.5, 0.5)] * 3, indexing="ij"), -1).reshape(-1, 3)
    shell = corners[~ndimage.binary_erosion(part)[tuple(corners.T)]]
    points = np.unique((shell[:, None] + cube).reshape(-1, 3), axis=0) * spacing_mm
    try:
        hull = float(ConvexHull(points).volume)
    except QhullError:
        return 1.0
    return min(len(corners) * float(np.prod(spacing_mm)) / hull, 1.0)


def regularised(lesion: Mask, spacing_mm: SpacingZyx, strength: float, tolerance: float, inside: Mask) -> Regularised:
    """Each part moved towards its ball by `strength` (0 to 1), weaker where convexity would change by more than
    `tolerance`. Stays within `inside` (the head). Raises NotAnonymised when parts ran together so that volume is lost.
    """
    labels, count = ndimage.label(lesion, NEIGHBOURS)
    out = np.zeros_like(lesion)
    change, used = 0.0, strength
    for number, window in enumerate(ndimage.find_objects(labels), 1):
        around = tuple(slice(max(one.start - PAD, 0), one.stop + PAD) for one in window)
        part, room = labels[around] == number, inside[around] | (labels[around] == number)
        was, share = convexity(part, spacing_mm), strength
        moved = _towards_ball(part, room, spacing_mm, share)
        while abs(convexity(moved, spacing_mm) - was) > tolerance and share > LEAST:
            share *= WEAKER
            moved = _towards_ball(part, room, spacing_mm, share)
        if abs(convexity(moved, spacing_mm) - was) > tolerance:
            moved, share = part, 0.0
        change = max(change, abs(convexity(moved, spacing_mm) - was))
        used = min(used, share)
        out[around] |= moved
    ratio = float(out.sum() / max(lesion.sum(), 1))
    if count and ratio < 0.98:
        raise NotAnonymised("parts of the lesion run together when they are regularised: use a lower strength")
    return Regularised(out, ratio, change, used)


def _towards_ball(part: Mask, room: Mask, spacing_mm: SpacingZyx, share: float) -> Mask:
    """The n voxels that lie deepest in a mixture of the smoothed shape and the ball of its volume: n is kept."""
    n = int(part.sum())
    if share == 0 or n < 2:
        return part.copy()
    voxel = float(np.prod(spacing_mm))
    radius = (3 * n * voxel / (4 * np.pi)) ** (1 / 3)
    depth = ndimage.distance_transform_edt(np.pad(part, 1), sampling=spacing_mm)[1:-1, 1:-1, 1:-1]
    depth = depth - ndimage.distance_transform_edt(~part, sampling=spacing_mm)
    smooth = ndimage.gaussian_filter(depth, [share * SMOOTH_SHARE * radius / one for one in spacing_mm], mode="nearest")
    places = np.stack(np.meshgrid(*(np.arange(k) for k in part.shape), indexing="ij")) * np.reshape(
        spacing_mm, (3, 1, 1, 1)
    )
    middle = places[:, part].mean(1)
    ball = radius - np.sqrt(((places - middle[:, None, None, None]) ** 2).sum(0))
    mixed = np.where(room, (1 - share) * smooth + share * ball, -np.inf).ravel()
    out = np.zeros(part.size, np.bool_)
    out[np.argsort(-mixed, kind="stable")[:n]] = True
    return out.reshape(part.shape)


def filled_lesion(volume: Floats, old: Mask, new: Mask) -> Floats:
    """The lesion's values on a new mask: where it did not reach before, those of its nearest voxel; else 0."""
    nearest = ndimage.distance_transform_edt(~old, return_distances=False, return_indices=True)
    return np.where(new, volume[tuple(nearest)], 0).astype(np.float32)


def styled(
    volumes: Mapping[str, Floats], lesion: Mask, spacing_mm: SpacingZyx, strength: float, noise: Noise
) -> dict[str, Floats]:
    """Mapped volumes (0 to 1) with another gain, offset and smooth texture in the lesion; the rest as it was.

    One texture for all sequences, a gain and an offset for each: purposes "style texture" and "style NAME".
    """
    field = noise(lesion.shape, "style texture").double().numpy()
    texture: NDArray[np.float64] = ndimage.gaussian_filter(field, [TEXTURE_MM / 2.355 / one for one in spacing_mm])
    texture /= max(float(texture[lesion].std()) if lesion.any() else 0.0, 1e-9)
    out = {}
    for name, volume in volumes.items():
        gain, offset = np.clip(noise((2,), f"style {name}").double().numpy(), -2, 2)
        spread = float(volume[lesion].std()) if lesion.any() else 0.0
        mean = float(volume[lesion].mean()) if lesion.any() else 0.0
        moved = mean + (volume - mean) * np.exp(GAIN * strength * gain) + strength * spread * (offset + texture)
        out[name] = np.where(lesion, np.clip(moved, 0, 1), volume).astype(np.float32)
    return out
