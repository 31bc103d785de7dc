"""The card of `lesion_preserving` at work: networks and domain, loaded once in a process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from gateway.pixels.stage_card import Folders, Kind, checked, weights_file
from models.cards import Card

if TYPE_CHECKING:
    from models.lesion_anonymiser import Domain, LesionParts

KIND = Kind("lesion_diffusion", "lesion anonymiser")


@dataclass(frozen=True, slots=True)
class AtWork:
    """A card that was checked against its weights."""

    card: Card
    parts: LesionParts
    domain: Domain

    @property
    def sha256(self) -> str:
        return self.card.weights.sha256 if self.card.weights else ""


def at_work(name: str, folders: Folders) -> AtWork:
    """Raises CardError for a card that is absent, past its date, another one's, or without its weights."""
    card, _ = checked(name, folders, KIND)
    return _opened(name, folders, card.model_dump_json())


@lru_cache(maxsize=2)
def _opened(name: str, folders: Folders, _card: str) -> AtWork:
    from safetensors.torch import load_file

    from models.lesion_anonymiser import domain_of, parts_of

    card, folder = checked(name, folders, KIND)
    tensors = load_file(weights_file(card, folder))
    return AtWork(card, parts_of(card, tensors), domain_of(card, tensors))
