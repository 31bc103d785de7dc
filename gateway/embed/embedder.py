"""An attacker's card with its weights loaded: arrays in, embeddings out, the same ones on every worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.audit_encoders import ENCODERS, Encoder
from models.cards import SHIPPED, Card, CardError, CardFolder, find_card, weights_of

Pixels = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedder:
    """One card at work. `embed` takes what `models.cohorts.Scan.load` gives."""

    card: Card
    encoder: Encoder

    def embed(self, pixels: Pixels, spacing_mm: tuple[float, ...] | None = None) -> Pixels:
        """(rows, columns) or (slices, rows, columns), 0 to 1 -> (dimensions,) float32.

        Raises CardError when the encoder gives another length than its card says, or no finite numbers.
        """
        found = np.asarray(self.encoder(np.asarray(pixels, np.float32), spacing_mm), np.float32)
        if found.shape != (self.card.dimensions,) or not np.isfinite(found).all():
            raise CardError(f"the encoder of {self.card.name} gave no {self.card.dimensions} finite numbers")
        return found


def open_embedder(name: str, folders: Sequence[CardFolder] = (SHIPPED,), *, today: date | None = None) -> Embedder:
    """The attacker of that card, its weights checked and loaded. Raises CardError."""
    card, folder = find_card(name, folders, today=today)
    if card.role != "attacker" or card.algorithm not in ENCODERS:
        raise CardError(f"the card {name} is no attacker of this build")
    path = weights_of(card, folder)
    tensors: dict[str, Any] = {}
    if path is not None:
        from safetensors.torch import load_file

        tensors = load_file(path)
    return Embedder(card, ENCODERS[card.algorithm](card, tensors))
