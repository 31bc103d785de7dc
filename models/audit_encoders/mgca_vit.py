"""MGCA's ViT-B/16, the default of its code: the normed class token of the 224-pixel film (papers/facts.md 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.audit_encoders.baselines import Encoder
from models.audit_encoders.mgca_resnet import prepare
from models.audit_encoders.networks import NetworkEncoder, loaded
from models.audit_encoders.vit import VisionTransformer
from models.cards import Card


def network(_card: Card) -> VisionTransformer:
    return VisionTransformer(16, 768, 12, 12)


def encoder(card: Card, tensors: Mapping[str, Any]) -> Encoder:
    made = loaded(network, card, tensors)
    return NetworkEncoder(made, prepare, lambda x: made(x)[:, 0])
