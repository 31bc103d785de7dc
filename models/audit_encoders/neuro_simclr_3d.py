"""3D-Neuro-SimCLR (Kaczmarek et al. 2025): a 3-D ResNet-18 on skull-stripped, registered T1 (papers/facts.md 1.2).

TurboPrep's output in, then what the authors' loader does: the array as (Z, Y, X), cropped, z-scored inside the mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import NotPrepared, must_be_grid, must_be_prepared, ras
from models.audit_encoders.networks import NetworkEncoder, loaded
from models.cards import Card

GRID_ZYX = (193, 229, 193)  # ICBM 2009c at 1 mm
CROP = (slice(10, 160), slice(19, 211), slice(1, None))  # -> 150 x 192 x 192
MOST_BRAIN = 0.5  # of the template's voxels; a brain fills about a fifth
ADVICE = (
    "Run TurboPrep (-m t1 -r r; it needs FreeSurfer 7.4 or later, ANTs and intensity-normalization) and feed its "
    "result: rigidly on the ICBM 2009c template (193 x 229 x 193 at 1 mm), every voxel outside the brain exactly 0"
)


def network(_card: Card) -> nn.Module:
    """MONAI's defaults: the first convolution by 1, biases in the shortcuts."""
    from monai.networks.nets.resnet import resnet18

    made: nn.Module = resnet18(spatial_dims=3, n_input_channels=1, feed_forward=False)
    return made


def z_scored(volume: Pixels, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> Pixels:
    """Mean 0 and variance 1 inside the mask, 0 outside."""
    inside = volume[mask].astype(np.float64)
    spread = inside.std() if inside.size else 0.0
    if not spread > 0:
        raise NotPrepared(f"a volume without a brain in it. {ADVICE}")
    return np.asarray(np.where(mask, (volume - inside.mean()) / spread, 0), np.float32)


def encoder(card: Card, tensors: Mapping[str, Any]) -> Encoder:
    made = loaded(network, card, tensors)

    def prepare(pixels: Pixels, spacing_mm: Spacing) -> Tensor:
        """(1, 1, 150, 192, 192)."""
        must_be_prepared(card, ADVICE)
        must_be_grid(pixels, spacing_mm, [GRID_ZYX], 1.0, ADVICE)
        if np.count_nonzero(pixels) > MOST_BRAIN * pixels.size:
            raise NotPrepared(f"a volume that is not 0 outside the brain. {ADVICE}")
        volume = ras(pixels).transpose(2, 1, 0)[CROP]
        return torch.from_numpy(z_scored(volume, volume != 0))[None, None]

    return NetworkEncoder(made, prepare, made)
