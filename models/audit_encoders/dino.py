"""DINO (Caron et al. 2021): a vision transformer of natural photographs, on 30 slices of a head (papers/facts.md 1.4).

10 slices of each orientation between 25 % and 75 % of its depth (paper A section 3.3), window over the volume, shorter
side 256 bicubic, middle 224, ImageNet's statistics; the normed class tokens are averaged. paper A does not say which
variant it used, so cards name theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import Plane, a_volume, imagenet, sections, windowed
from models.audit_encoders.networks import NetworkEncoder, choice, loaded
from models.audit_encoders.vit import VisionTransformer
from models.cards import Card

VARIANTS = {
    "vits16": (16, 384, 12, 6),
    "vits8": (8, 384, 12, 6),
    "vitb16": (16, 768, 12, 12),
    "vitb8": (8, 768, 12, 12),
}
PLANES: tuple[Plane, ...] = ("axial", "coronal", "sagittal")
SLICES = 10  # of each orientation


def network(card: Card) -> VisionTransformer:
    return VisionTransformer(*VARIANTS[choice(card, "variant", list(VARIANTS), "vits16")])


def prepare(pixels: Pixels, spacing_mm: Spacing) -> Tensor:
    """(30, 3, 224, 224)."""
    volume = windowed(a_volume(pixels))
    return imagenet([one for plane in PLANES for one in sections(volume, spacing_mm, plane, SLICES)], "bicubic")


def encoder(card: Card, tensors: Mapping[str, Any]) -> Encoder:
    made = loaded(network, card, tensors)
    return NetworkEncoder(made, prepare, lambda x: made(x)[:, 0])
