"""Our own encoder of films: the whole image as one square plane (`own_network`)."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
import torch
from torch import Tensor

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import an_image
from models.audit_encoders.own_network import own_encoder
from models.cards import Card

CHANNELS = 1


def film(pixels: Pixels, spacing_mm: Spacing, side: int) -> Tensor:  # noqa: ARG001 - a film is known by its frame
    """(rows, columns) -> (1, 1, side, side), areas averaged, mean 0 and variance 1. Raises NotPrepared for a volume."""
    small = cv2.resize(np.asarray(an_image(pixels), np.float32), (side, side), interpolation=cv2.INTER_AREA)
    spread = float(small.std())
    return torch.from_numpy(np.asarray((small - small.mean()) / (spread if spread > 0 else 1.0), np.float32))[
        None, None
    ]


def encoder(card: Card, tensors: Mapping[str, Tensor]) -> Encoder:
    """(rows, columns), 0 to 1 -> (dimensions,). Raises CardError for tensors that are not those of this encoder."""
    return own_encoder(film, CHANNELS, card, tensors)
