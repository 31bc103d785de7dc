"""SAM-Med3D turbo (Wang et al. 2024): the image encoder of a promptable segmenter, on any volume (papers/facts.md 1.5).

Nobody says how its 8 x 8 x 8 map becomes one vector, and pooling can hide identity: `pooling` is on the card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import NotPrepared, a_volume, foreground, ras, resampled
from models.audit_encoders.networks import NetworkEncoder, choice, loaded
from models.audit_encoders.sam_med3d_network import ImageEncoder3D
from models.cards import Card

SIDE, MM = 128, 1.5
POOLINGS = ("neck-mean", "neck-max", "tokens-mean")


def network(_card: Card) -> ImageEncoder3D:
    """The registry's `vit_b_ori`."""
    return ImageEncoder3D()


def centred(volume: Pixels, centre: tuple[int, ...]) -> Pixels:
    """A cube of `SIDE` voxels around a voxel, 0 where there is no volume."""
    made = np.zeros((SIDE,) * 3, np.float32)
    here, there = [], []
    for size, middle in zip(volume.shape, centre, strict=True):
        start = middle - SIDE // 2
        here.append(slice(max(start, 0), min(start + SIDE, size)))
        there.append(slice(max(-start, 0), max(-start, 0) + here[-1].stop - here[-1].start))
    made[tuple(there)] = volume[tuple(here)]
    return made


def middle_of(volume: Pixels, around: str) -> tuple[int, ...]:
    """The middle voxel of the image, or of the box around its foreground: an audit has no label to centre on."""
    if around == "image":
        return tuple(size // 2 for size in volume.shape)
    inside = foreground(volume)
    spans = [np.flatnonzero(inside.any(axis=tuple({0, 1, 2} - {axis}))) for axis in range(3)]
    return tuple(
        int(one[0] + one[-1] + 1) // 2 if one.size else size // 2 for one, size in zip(spans, volume.shape, strict=True)
    )


def z_scored(volume: Pixels) -> Pixels:
    """Mean 0 and (unbiased) variance 1 over voxels above 0; the background keeps the negative value that it gets."""
    inside = volume[volume > 0].astype(np.float64)
    spread = inside.std(ddof=1) if inside.size > 1 else 0.0
    if not spread > 0:
        raise NotPrepared("a volume that is all one value; look at the scan")
    return np.asarray((volume - inside.mean()) / spread, np.float32)


def encoder(card: Card, tensors: Mapping[str, Any]) -> Encoder:
    """`parameters`: `pooling` (neck-mean, neck-max: 384; tokens-mean: 768), `centre` (head; image)."""
    made = loaded(network, card, tensors)
    pooling = choice(card, "pooling", POOLINGS, "neck-mean")
    around = choice(card, "centre", ("head", "image"), "head")

    def prepare(pixels: Pixels, spacing_mm: Spacing) -> Tensor:
        """(1, 1, 128, 128, 128): 1.5 mm, (X, Y, Z) canonical."""
        volume = ras(resampled(a_volume(pixels), spacing_mm, MM))
        return torch.from_numpy(z_scored(centred(volume, middle_of(volume, around))))[None, None]

    def features(x: Tensor) -> Tensor:
        tokens = made.tokens(x)
        if pooling == "tokens-mean":
            return tokens.mean((1, 2, 3))
        neck = made.to_map(tokens)
        return neck.amax((2, 3, 4)) if pooling == "neck-max" else neck.mean((2, 3, 4))

    return NetworkEncoder(made, prepare, features)
