"""Our own encoder of head MRI, 2.5-D: three slices as channels, in each of the three planes (`own_network`).

The volume is brought to 2 mm and to a cube of 192 mm about the head: its middle from left to right and from front to
back, and 90 mm below its top, so that the length of neck in the picture does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy.ndimage import affine_transform, uniform_filter1d
from torch import Tensor

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import NotPrepared, a_volume
from models.audit_encoders.own_network import own_encoder
from models.cards import Card

VOXEL_MM, CUBE = 2.0, 96
BELOW_TOP_MM = 90.0
APART_MM = 12.0  # of the slices that are a plane's channels
CHANNELS = 3
HEAD_MM = 150.0  # what lies this far below the top is neck, and says nothing of where the head is


def head_cube(volume: Pixels, spacing_mm: Spacing) -> Pixels:
    """(slices, rows, columns), 0 to 1 -> (96, 96, 96) at 2 mm, 0 outside the volume. Raises NotPrepared."""
    a_volume(volume)
    if spacing_mm is None or len(spacing_mm) != 3 or not all(one > 0 for one in spacing_mm):
        raise NotPrepared("this encoder needs the distance of voxels in mm, and the scan does not say it")
    steps = np.array([VOXEL_MM / one for one in spacing_mm])
    smooth = np.asarray(volume, np.float32)
    for axis, step in enumerate(steps):
        if step >= 1.5:  # areas averaged before fine voxels are left out
            smooth = uniform_filter1d(smooth, round(step), axis=axis, mode="nearest")
    middle = _middle(smooth, spacing_mm)
    offset = middle - steps * (CUBE - 1) / 2
    cube = affine_transform(smooth, steps, offset, output_shape=(CUBE,) * 3, order=1, mode="constant")
    return np.asarray(cube, np.float32)


def _middle(volume: Pixels, spacing_mm: tuple[float, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Where the cube's middle lies, in voxels of the volume."""
    inside = volume > _threshold(volume)
    filled = np.flatnonzero(inside.mean((1, 2)) > 0.02)  # noise and wires fill less of a slice
    if not len(filled):
        return (np.array(volume.shape) - 1) / 2
    top = int(filled[-1])
    bottom = max(0, top - round(HEAD_MM / spacing_mm[0]))
    _, rows, columns = np.nonzero(inside[bottom : top + 1])
    across = [np.percentile(one, (2, 98)).mean() for one in (rows, columns)]
    return np.array([top - BELOW_TOP_MM / spacing_mm[0], *across])


def _threshold(volume: Pixels) -> float:
    """Between the air and the head: a tenth of what is bright."""
    return 0.1 * float(np.percentile(volume, 99))


def planes(pixels: Pixels, spacing_mm: Spacing, side: int) -> Tensor:
    """(3, 3, side, side): axial, coronal, sagittal; each three slices 12 mm apart about the cube's middle.

    Mean 0 and variance 1 over a plane's channels. `side` is at most 96: the middle of the cube. Raises NotPrepared.
    """
    cube = head_cube(pixels, spacing_mm)
    middle, apart = CUBE // 2, round(APART_MM / VOXEL_MM)
    at = [middle - apart, middle, middle + apart]
    margin = (CUBE - side) // 2
    cut = np.stack([np.moveaxis(cube, axis, 0)[at] for axis in range(3)])[:, :, margin:, margin:][..., :side, :side]
    bright = float(np.percentile(cube, 99.5))
    cut = np.minimum(cut, bright if bright > 0 else 1.0)
    mean, spread = cut.mean((1, 2, 3), keepdims=True), cut.std((1, 2, 3), keepdims=True)
    return torch.from_numpy(np.asarray((cut - mean) / np.where(spread > 0, spread, 1.0), np.float32))


def encoder(card: Card, tensors: Mapping[str, Tensor]) -> Encoder:
    """(slices, rows, columns) and spacing -> (dimensions,). Raises CardError for tensors that are not its own."""
    return own_encoder(planes, CHANNELS, card, tensors)
