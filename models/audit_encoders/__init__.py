"""Encoders that attack: an image in, a vector out, in which one person's scans lie close together.

Anonymisers and their training must not import this: what judges shares nothing with what is judged.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from models.audit_encoders.baselines import BASELINES, Encoder, embed
from models.cards import Card

Maker = Callable[[Card, Mapping[str, Any]], Encoder]


def _of(module: str) -> Maker:
    """`encoder(card, tensors)` of a module here, imported (and torch with it) when it is called."""

    def make(card: Card, tensors: Mapping[str, Any]) -> Encoder:
        encoder: Encoder = import_module(f"{__name__}.{module}").encoder(card, tensors)
        return encoder

    return make


# By the `algorithm` of a card: the card and its tensors by name ({} for a part without weights) -> the encoder.
# Values load torch and the architecture when called, not when this is imported.
ENCODERS: dict[str, Maker] = {
    "raw": lambda _card, _tensors: BASELINES["raw"],
    "hog": lambda _card, _tensors: BASELINES["hog"],
    "anatcl": _of("anatcl"),
    "neuro_simclr_3d": _of("neuro_simclr_3d"),
    "brain_mri_ssl": _of("brain_mri_ssl"),
    "dino": _of("dino"),
    "sam_med3d": _of("sam_med3d"),
    "mami": _of("mami"),
    "mgca_resnet": _of("mgca_resnet"),
    "mgca_vit": _of("mgca_vit"),
    "retfound": _of("retfound"),
    "freesurfer": _of("freesurfer"),
    "brain_depths": _of("brain_depths"),
    "own_films": _of("own_films"),
    "own_eyes": _of("own_eyes"),
    "own_brains": _of("own_brains"),
    "own_adaptive": _of("own_adaptive"),
}


def network_shapes(card: Card) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor of a published card's network, without making it. Raises CardError for others."""
    from models.audit_encoders.networks import shapes

    return shapes(import_module(f"{__name__}.{card.algorithm}").network, card)


__all__ = ["BASELINES", "ENCODERS", "Encoder", "embed", "network_shapes"]
