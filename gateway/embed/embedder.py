"""An attacker's card with its weights loaded: arrays in, embeddings out, the same ones on every worker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.embed.fixed_input import fixed_input, kind_of, matches
from models.audit_encoders import ENCODERS, Encoder
from models.cards import SHIPPED, Card, CardError, CardFolder, find_card, weights_of

Pixels = NDArray[np.float32]

# Of the fixed input, for networks that take any: shape and millimetres.
FIXED_IMAGE: tuple[tuple[int, ...], None] = ((256, 208), None)
FIXED_VOLUME: tuple[tuple[int, ...], tuple[float, ...]] = ((76, 90, 76), (2.5, 2.5, 2.5))
# For those that take prepared volumes of one grid only, by what prepared them (facts.md 1.1, 1.2).
FIXED_GRIDS: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "cat12-mwp1": ((121, 145, 121), (1.5, 1.5, 1.5)),
    "turboprep": ((193, 229, 193), (1.0, 1.0, 1.0)),
}


@dataclass(frozen=True, slots=True)
class Embedder:
    """One card at work. `embed` takes what `models.cohorts.Scan.load` gives."""

    card: Card
    encoder: Encoder

    def embed(self, pixels: Pixels, spacing_mm: tuple[float, ...] | None = None) -> Pixels:
        """(rows, columns) or (slices, rows, columns), 0 to 1 -> (dimensions,) float32.

        Raises CardError when the encoder gives another length than its card says, or no finite numbers, and
        `NotPrepared` (a CardError) when it cannot take such pixels as they are.
        """
        found = np.asarray(self.encoder(np.asarray(pixels, np.float32), spacing_mm), np.float32)
        if found.shape != (self.card.dimensions,) or not np.isfinite(found).all():
            raise CardError(f"the encoder of {self.card.name} gave no {self.card.dimensions} finite numbers")
        return found


def open_embedder(name: str, folders: Sequence[CardFolder] = (SHIPPED,), *, today: date | None = None) -> Embedder:
    """The attacker of that card, its weights checked and loaded, its fixed input looked at. Raises CardError."""
    card, folder = find_card(name, folders, today=today)
    if card.role != "attacker" or card.algorithm not in ENCODERS:
        raise CardError(f"the card {name} is no attacker of this build")
    path = weights_of(card, folder)
    tensors: dict[str, Any] = {}
    if path is not None:
        from safetensors.torch import load_file

        tensors = load_file(path)
    if card.fixed_input_sha256 is not None:
        check_fixed_input(card, tensors)
    return Embedder(card, ENCODERS[card.algorithm](card, tensors))


def fixed_embedding(card: Card, tensors: dict[str, Any]) -> Pixels:
    """What the card's encoder makes of the fixed input. Raises CardError.

    An encoder that waits for prepared pixels gets the fixed input as prepared: it is there to be the same, not a brain.
    """
    kind = kind_of(card)
    shape, spacing = FIXED_VOLUME if kind == "volume" else FIXED_IMAGE
    wanted = card.published.preparation if card.published is not None else None
    if wanted is not None:
        if wanted not in FIXED_GRIDS:
            raise CardError(f"{card.name}: nothing here knows pixels prepared by {wanted}")
        card = card.model_copy(update={"parameters": {**card.parameters, "prepared": wanted}})
        shape, spacing = FIXED_GRIDS[wanted]
    if kind == "measures":
        shape, spacing = (card.dimensions,), None
    return Embedder(card, ENCODERS[card.algorithm](card, tensors)).embed(fixed_input(kind, shape), spacing)


def check_fixed_input(card: Card, tensors: dict[str, Any]) -> None:
    """Raises CardError unless weights and code still give what the card pinned."""
    if card.fixed_input_sha256 is not None and not matches(fixed_embedding(card, tensors), card.fixed_input_sha256):
        raise CardError(
            f"{card.name} gives other embeddings than when its card was written: the code, a library or the weights "
            "changed. Import or calibrate it anew; what was measured with it before cannot be compared"
        )


def card_digest(card: Card) -> str:
    """sha256 of what decides an embedding: algorithm, parameters, dimensions, weights. Text of the card does not."""
    decides = {
        "algorithm": card.algorithm,
        "parameters": card.model_dump(mode="json")["parameters"],
        "dimensions": card.dimensions,
        "weights": card.weights.sha256 if card.weights is not None else "",
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
