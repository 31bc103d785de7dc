"""RETFound (Zhou et al. 2023): ViT-L/16, an attacker of fundus images (papers/facts.md 2.1). Files: gated, the user's.

With `pooling: mean` the feature is LayerNorm, without trained scale or shift, of the mean patch token: the authors
delete the trained `norm` and pool through one that was never trained. `pooling: class` is the normed class token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn import functional

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.inputs import IMAGENET_MEAN, IMAGENET_STD, an_image, coloured, cropped, resized
from models.audit_encoders.networks import NetworkEncoder, choice, loaded
from models.audit_encoders.vit import EPSILON, VisionTransformer
from models.cards import Card


def network(_card: Card) -> VisionTransformer:
    return VisionTransformer(16, 1024, 24, 16)


def encoder(card: Card, tensors: Mapping[str, Any]) -> Encoder:
    """`parameters`: `pooling` (mean; class), `normalise` (imagenet; image: each image by itself, as their notebook)."""
    made = loaded(network, card, tensors)
    pooling = choice(card, "pooling", ("mean", "class"), "mean")
    normalise = choice(card, "normalise", ("imagenet", "image"), "imagenet")

    def prepare(pixels: Pixels, _spacing_mm: Spacing) -> Tensor:
        """(1, 3, 224, 224)."""
        image = cropped(resized(an_image(pixels), "bicubic"))
        if normalise == "imagenet":
            return coloured(image, IMAGENET_MEAN, IMAGENET_STD)
        spread = float(image.std(correction=0))
        return coloured((image - image.mean()) / (spread if spread > 0 else 1.0), (0, 0, 0), (1, 1, 1))

    def features(x_b3hw: Tensor) -> Tensor:
        """(B, 1024)."""
        if pooling == "class":
            return made(x_b3hw)[:, 0]  # type: ignore[no-any-return]
        pooled = made.tokens(x_b3hw)[:, 1:].mean(1)
        return functional.layer_norm(pooled, pooled.shape[-1:], eps=EPSILON)

    return NetworkEncoder(made, prepare, features)
