"""MGCA's ResNet-50 (Wang et al. 2022), an attacker of chest films (papers/facts.md 2.1). Files: the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.brain_mri_ssl import network
from models.audit_encoders.inputs import HALF, an_image, coloured, cropped, padded_square
from models.audit_encoders.networks import NetworkEncoder, loaded
from models.cards import Card

UPSAMPLED = 299  # inside the authors' forward


def prepare(pixels: Pixels, spacing_mm: Spacing = None) -> Tensor:  # noqa: ARG001 - films have no use for it
    """(1, 3, 224, 224): 8 bits, longer side 256 on black, middle 224, (x - 0.5) / 0.5."""
    image = np.rint(padded_square(np.clip(an_image(pixels), 0, 1)) * 255) / 255
    return coloured(cropped(torch.from_numpy(image.astype(np.float32))[None, None]), HALF, HALF)


def encoder(card: Card, tensors: Mapping[str, Any]) -> Encoder:
    made = loaded(network, card, tensors)

    def features(x_b3hw: Tensor) -> Tensor:
        """(B, 2048)."""
        x = functional.interpolate(x_b3hw, (UPSAMPLED, UPSAMPLED), mode="bilinear", align_corners=True)
        return made(x)  # type: ignore[no-any-return]

    return NetworkEncoder(made, prepare, features)


__all__ = ["encoder", "network", "prepare"]  # the network is the same ResNet-50
