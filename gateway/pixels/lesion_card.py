"""The card of `lesion_preserving` at work: networks and domain, loaded once in a process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from models.cards import SHIPPED, Card, CardError, CardFolder, find_card, weights_of

if TYPE_CHECKING:
    from models.lesion_anonymiser import Domain, LesionParts

ALGORITHM = "lesion_diffusion"
Folders = tuple[CardFolder, ...]


@dataclass(frozen=True, slots=True)
class AtWork:
    """A card that was checked against its weights."""

    card: Card
    parts: LesionParts
    domain: Domain

    @property
    def sha256(self) -> str:
        return self.card.weights.sha256 if self.card.weights else ""


def folders_of(models: Path | None) -> Folders:
    """Where cards are looked for: what ships, then a site's own folder."""
    return (SHIPPED, CardFolder.flat(models)) if models is not None else (SHIPPED,)


def card_faults(name: str, folders: Folders) -> Iterator[tuple[str, str]]:
    """Why a policy cannot name this card, with hints."""
    try:
        card, folder = _checked(name, folders)
        weights_of(card, folder)
    except CardError as error:
        yield str(error), "see `models/cards` and HOME/models"
        return
    if find_spec("torch") is None:
        yield "learned stages need torch, which is not installed here", "pip install 'deid-gateway[learn]'"


def at_work(name: str, folders: Folders) -> AtWork:
    """Raises CardError for a card that is absent, past its date, another one's, or without its weights."""
    card, _ = _checked(name, folders)
    return _opened(name, folders, card.model_dump_json())


def _checked(name: str, folders: Folders) -> tuple[Card, CardFolder]:
    card, folder = find_card(name, folders, today=datetime.now(UTC).date())
    if card.role != "anonymiser" or card.algorithm != ALGORITHM:
        raise CardError(f"the card {name} is no lesion anonymiser's (role anonymiser, algorithm {ALGORITHM})")
    if card.weights is None:
        raise CardError(f"the card {name} has no weights")
    return card, folder


@lru_cache(maxsize=2)
def _opened(name: str, folders: Folders, _card: str) -> AtWork:
    from safetensors.torch import load_file

    from models.lesion_anonymiser import domain_of, parts_of

    card, folder = _checked(name, folders)
    path = weights_of(card, folder)
    if path is None:
        raise CardError(f"the card {name} has no weights")
    tensors = load_file(path)
    return AtWork(card, parts_of(card, tensors), domain_of(card, tensors))
