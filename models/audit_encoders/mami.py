"""MaMI (Tian et al., CVPR 2025, "All-in-One MedReID"): re-identifies films and fundus images (papers/facts.md 2.1).

The nearest public network to the one that paper C blocks identity with. Files: the user's; the owner states no licence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import an_image, imagenet
from models.audit_encoders.mami_network import MaMI
from models.audit_encoders.networks import NetworkEncoder, choice, loaded, number
from models.cards import Card


def network(card: Card) -> MaMI:
    """`parameters.lora_rank`: 16 in the authors' test script, 8 is their code's default."""
    return MaMI(lora_rank=number(card, "lora_rank", 16))


def prepare(pixels: Pixels, _spacing_mm: Spacing) -> Tensor:
    """(1, 3, 224, 224)."""
    return imagenet([an_image(pixels)], "bilinear")


def encoder(card: Card, tensors: Mapping[str, Any]) -> Encoder:
    """`parameters.space`: global (through the last two layers, what triplets were trained on) or patch (before them).

    The two are different spaces: whoever compares patches with the whole takes `patch` (facts.md 2.1).
    """
    made = loaded(network, card, tensors)
    which = 0 if choice(card, "space", ("global", "patch"), "global") == "global" else 1

    def features(x: Tensor) -> Tensor:
        """(B, 768)."""
        found: Tensor = made(x)[which]
        return found if which == 0 else found.mean((2, 3))

    return NetworkEncoder(made, prepare, features)
