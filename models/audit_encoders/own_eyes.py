"""Our own encoder of eye photographs: vessels and disc by local contrast, in one square plane (`own_network`).

Flash, pigment and the black frame change from picture to picture and fill most of its variance. So each pixel is set
against its surroundings: (x − mean) / deviation, both under a Gaussian of a twelfth of the side. What is not eye is 0.
"""

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
SURROUNDINGS = 1 / 12  # of the side: standard deviation of the Gaussian
DARK = 0.1  # of what is bright: darker surroundings are the frame
FLOOR = 0.01  # of what is bright: a flat place is not blown up to noise


def eye(pixels: Pixels, spacing_mm: Spacing, side: int) -> Tensor:  # noqa: ARG001 - a photograph has no spacing
    """(rows, columns), 0 to 1 -> (1, 1, side, side), mean 0 and variance 1. Raises NotPrepared for a volume."""
    small = cv2.resize(np.asarray(an_image(pixels), np.float32), (side, side), interpolation=cv2.INTER_AREA)
    bright = float(np.percentile(small, 99))
    small = small / np.float32(bright if bright > 0 else 1.0)
    around = cv2.GaussianBlur(small, (0, 0), side * SURROUNDINGS)
    apart = small - around
    spread = np.sqrt(cv2.GaussianBlur(apart * apart, (0, 0), side * SURROUNDINGS)) + np.float32(FLOOR)
    local = np.where(around > DARK, apart / spread, 0)
    deviation = float(local.std())
    standard = (local - local.mean()) / (deviation if deviation > 0 else 1.0)
    return torch.from_numpy(np.asarray(standard, np.float32))[None, None]


def encoder(card: Card, tensors: Mapping[str, Tensor]) -> Encoder:
    """(rows, columns), 0 to 1 -> (dimensions,). Raises CardError for tensors that are not those of this encoder."""
    return own_encoder(eye, CHANNELS, card, tensors)
