"""Brain-MRI-SSL (Huang et al. 2025): a 2-D ResNet-50, MoCo v3 or SimCLR, on 20 axial slices (papers/facts.md 1.3).

The published files are those of the tumour classifier's stage: their backbone may have been fine-tuned on its labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import a_volume, imagenet, sections, windowed
from models.audit_encoders.networks import NetworkEncoder, loaded
from models.cards import Card

SLICES = 20  # at fixed places between 25 % and 75 % of the depth (paper A section 3.3)


def network(_card: Card) -> nn.Module:
    """The ResNet-50 of torchvision without its classifier, key for key."""
    from monai.networks.nets.resnet import resnet50

    made: nn.Module = resnet50(
        spatial_dims=2,
        n_input_channels=3,
        feed_forward=False,
        conv1_t_size=7,
        conv1_t_stride=2,
        bias_downsample=False,
    )
    return made


def prepare(pixels: Pixels, spacing_mm: Spacing) -> Tensor:
    """(20, 3, 224, 224)."""
    return imagenet(sections(windowed(a_volume(pixels)), spacing_mm, "axial", SLICES), "bilinear")


def encoder(card: Card, tensors: Mapping[str, Any]) -> Encoder:
    made = loaded(network, card, tensors)
    return NetworkEncoder(made, prepare, made)
