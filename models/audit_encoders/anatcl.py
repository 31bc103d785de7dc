"""AnatCL (Barbano et al. 2026): a 3-D ResNet-18 on CAT12's grey-matter maps (papers/facts.md 1.1).

The embedding is the pooled 512 numbers, not the 128 of the head and not scaled to length 1. Folds, descriptors (global,
local) and vintages are different networks of one shape: which one is on the card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import must_be_grid, must_be_prepared, ras
from models.audit_encoders.networks import NetworkEncoder, choice, loaded
from models.cards import Card

GRID_XYZ = (121, 145, 121)  # CAT12's template at 1.5 mm
README_Y = 128  # the README's "121x128x121"
ADVICE = (
    "Run CAT12 (MATLAB, or its standalone) on the T1, take its modulated grey-matter map in template space "
    "(mwp1*.nii, 1.5 mm, 121 x 145 x 121) and feed that, its values as they are"
)


def network(_card: Card) -> nn.Module:
    """The authors' own ResNet-18, key for key: the first convolution by 2, no bias in the shortcuts."""
    from monai.networks.nets.resnet import resnet18

    made: nn.Module = resnet18(
        spatial_dims=3,
        n_input_channels=1,
        feed_forward=False,
        conv1_t_size=7,
        conv1_t_stride=2,
        shortcut_type="B",
        bias_downsample=False,
    )
    return made


def encoder(card: Card, tensors: Mapping[str, Any]) -> Encoder:
    """`parameters`: `crop` (readme: 128; whole: 145), `x_axis` (left-to-right; right-to-left): open in facts.md."""
    made = loaded(network, card, tensors)
    crop = choice(card, "crop", ("readme", "whole"), "readme")
    flip = choice(card, "x_axis", ("left-to-right", "right-to-left"), "left-to-right") == "right-to-left"

    def prepare(pixels: Pixels, spacing_mm: Spacing) -> Tensor:
        """(1, 1, 121, 128 or 145, 121): no scaling of intensities (`Normalize(0, 1)`)."""
        must_be_prepared(card, ADVICE)
        must_be_grid(pixels, spacing_mm, [GRID_XYZ[::-1]], 1.5, ADVICE)
        volume = ras(pixels)[::-1] if flip else ras(pixels)
        if crop == "readme":
            start = (GRID_XYZ[1] - README_Y) // 2
            volume = volume[:, start : start + README_Y]
        return torch.from_numpy(np.ascontiguousarray(volume, np.float32))[None, None]

    return NetworkEncoder(made, prepare, made)
