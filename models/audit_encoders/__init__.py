"""Encoders that attack: an image in, a vector out, in which one person's scans lie close together.

Anonymisers and their training must not import this: what judges shares nothing with what is judged.
"""

from collections.abc import Callable, Mapping
from typing import Any

from models.audit_encoders.baselines import BASELINES, Encoder, embed
from models.cards import Card

# By the `algorithm` of a card: the card and its tensors by name ({} for a part without weights) -> the encoder.
# Values load torch and the architecture when called, not when this is imported.
ENCODERS: dict[str, Callable[[Card, Mapping[str, Any]], Encoder]] = {
    "raw": lambda _card, _tensors: BASELINES["raw"],
    "hog": lambda _card, _tensors: BASELINES["hog"],
}

__all__ = ["BASELINES", "ENCODERS", "Encoder", "embed"]
