"""Pixels as each encoder's authors prepared them, from arrays as `models.cohorts.Scan` has them.

A volume is (slices, rows, columns): feet to head, front to back, the person's right to left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import affine_transform
from torch import Tensor

from models.audit_encoders.baselines import Pixels, Spacing
from models.cards import Card, CardError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALF = (0.5, 0.5, 0.5)
RESIZED, CROPPED = 256, 224  # of every 2-D encoder here
Plane = Literal["axial", "coronal", "sagittal"]
Mode = Literal["bilinear", "bicubic"]


class NotPrepared(CardError):
    """Pixels that an encoder cannot take as they are. The text says what to feed instead."""


def an_image(pixels: Pixels) -> Pixels:
    """Raises NotPrepared unless it is (rows, columns) of numbers from 0 to 1."""
    if pixels.ndim != 2 or not pixels.size:
        raise NotPrepared("this encoder takes one image (rows, columns), not a volume")
    if not (pixels.min() >= 0 and pixels.max() <= 1):  # false for NaN as well
        raise NotPrepared("this encoder takes pixels from 0 to 1; scale them by what their bits can hold")
    return pixels


def a_volume(pixels: Pixels) -> Pixels:
    """Raises NotPrepared unless it is (slices, rows, columns) of finite numbers."""
    if pixels.ndim != 3 or not pixels.size:
        raise NotPrepared("this encoder takes a volume (slices, rows, columns), not an image")
    if not np.isfinite(pixels).all():
        raise NotPrepared("a volume with values that are no numbers; look at the scan")
    return pixels


def must_be_prepared(card: Card, advice: str) -> None:
    """Raises NotPrepared until the card says that the tools which are not here have been at work."""
    wanted = card.published.preparation if card.published is not None else None
    if wanted is not None and card.parameters.get("prepared") != wanted:
        raise NotPrepared(
            f"{card.name} takes no raw scan. {advice}, and import its weights with --set prepared={wanted}"
        )


def must_be_grid(pixels: Pixels, spacing_mm: Spacing, grids: Sequence[tuple[int, ...]], mm: float, advice: str) -> None:
    """Raises NotPrepared unless the volume has one of these shapes, and voxels of that many millimetres if known."""
    a_volume(pixels)
    fits = spacing_mm is None or all(abs(one - mm) <= 0.01 * mm for one in spacing_mm)
    if pixels.shape not in grids or not fits:
        shown = " or ".join(" x ".join(map(str, grid)) for grid in grids)
        raise NotPrepared(f"this is no volume of {shown} (slices, rows, columns) at {mm:g} mm. {advice}")


def ras(volume: Pixels) -> Pixels:
    """(slices, rows, columns) -> (X, Y, Z): left to right, back to front, feet to head, as nibabel's canonical form."""
    return np.ascontiguousarray(volume[:, ::-1, ::-1].transpose(2, 1, 0))


def resampled(volume: Pixels, spacing_mm: Spacing, new_mm: float) -> Pixels:
    """The same field of view in voxels of `new_mm`, linear, outer faces kept. Raises NotPrepared without spacing."""
    if spacing_mm is None or len(spacing_mm) != volume.ndim or not all(one > 0 for one in spacing_mm):
        raise NotPrepared("this encoder needs the distance of voxels in mm, and the scan does not say it")
    steps = [new_mm / one for one in spacing_mm]
    if all(abs(step - 1) < 1e-6 for step in steps):
        return volume
    shape = tuple(math.ceil(size / step - 1e-6) for size, step in zip(volume.shape, steps, strict=True))
    made = affine_transform(
        volume, steps, [0.5 * step - 0.5 for step in steps], output_shape=shape, order=1, mode="nearest"
    )
    return np.asarray(made, np.float32)


def foreground(pixels: Pixels) -> NDArray[np.bool_]:
    """Voxels above the mean: the head, or the brain where everything else is 0."""
    return np.asarray(pixels > pixels.mean())


def windowed(volume: Pixels) -> Pixels:
    """0 to 1 in 256 steps: the 1st to 99th percentile of the whole volume's foreground.

    No author says how 16 bits became 8 (facts.md 1.3). Over the volume, not each slice, so that a scan's slices agree.
    """
    inside = volume[foreground(volume)]
    low, high = np.percentile(inside, (1, 99)) if inside.size else (0.0, 0.0)
    scaled = np.clip((volume - low) / (high - low if high > low else 1.0), 0, 1)
    return np.asarray(np.rint(scaled * 255) / 255, np.float32)


def sections(volume: Pixels, spacing_mm: Spacing, plane: Plane, count: int) -> list[Pixels]:
    """`count` planes at equal steps from 25 % to 75 % of the depth (paper A section 3.3), head up, square pixels."""
    along = {"axial": 0, "coronal": 1, "sagittal": 2}[plane]
    positions = np.rint(np.linspace(0.25, 0.75, count) * (volume.shape[along] - 1)).astype(int)
    cut = np.moveaxis(volume, along, 0)[positions]
    if plane != "axial":
        cut = cut[:, ::-1]
    across = None if spacing_mm is None else tuple(mm for axis, mm in enumerate(spacing_mm) if axis != along)
    if across is not None and abs(across[0] - across[1]) > 0.01 * min(across):
        return [resampled(np.ascontiguousarray(one), across, min(across)) for one in cut]
    return [np.ascontiguousarray(one) for one in cut]


def resized(image_hw: Pixels, mode: Mode, side: int = RESIZED) -> Tensor:
    """(rows, columns), 0 to 1 -> (1, 1, h, w): the shorter side `side`, on 8 bits by Pillow, as all authors here do."""
    height, width = image_hw.shape
    short, long = min(height, width), max(height, width)
    longer = int(side * long / short)
    size = (longer, side) if height <= width else (side, longer)
    picture = Image.fromarray(np.rint(np.clip(image_hw, 0, 1) * 255).astype(np.uint8))
    made = np.asarray(picture.resize(size, Image.Resampling[mode.upper()]), np.float32) / np.float32(255)
    return torch.from_numpy(made)[None, None]


def cropped(images: Tensor, side: int = CROPPED) -> Tensor:
    """The middle of (..., h, w), rounded as torchvision's CenterCrop."""
    top, left = (round((size - side) / 2) for size in images.shape[-2:])
    return images[..., top : top + side, left : left + side]


def coloured(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Grey (n, 1, h, w), 0 to 1 -> (n, 3, h, w), standardised."""
    shape = (1, 3, 1, 1)
    return (images.expand(-1, 3, -1, -1) - torch.tensor(mean).view(shape)) / torch.tensor(std).view(shape)


def imagenet(images: Sequence[Pixels], mode: Mode) -> Tensor:
    """Images, 0 to 1 -> (n, 3, 224, 224): shorter side 256, middle 224, ImageNet's mean and deviation."""
    return coloured(torch.cat([cropped(resized(one, mode)) for one in images]), IMAGENET_MEAN, IMAGENET_STD)


def padded_square(image_hw: Pixels, side: int = RESIZED) -> Pixels:
    """The longer side `side`, areas averaged, black borders on both sides of the shorter one (MGCA's `resize_img`)."""
    scale = side / max(image_hw.shape)
    height, width = (max(1, int(size * scale)) for size in image_hw.shape)
    made = np.zeros((side, side), np.float32)
    top, left = (side - height) // 2, (side - width) // 2
    made[top : top + height, left : left + width] = cv2.resize(
        np.asarray(image_hw, np.float32), (width, height), interpolation=cv2.INTER_AREA
    )
    return made
