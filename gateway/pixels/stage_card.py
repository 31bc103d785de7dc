"""The card that a learned stage names: found, of the right kind, within its date, and with its weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from models.cards import SHIPPED, Card, CardError, CardFolder, find_card, weights_of

Folders = tuple[CardFolder, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a stage needs: `algorithm` of the card, and `said`, what such a card is called in a sentence."""

    algorithm: str
    said: str


def folders_of(models: Path | None) -> Folders:
    """Where cards are looked for: what ships, then a site's own folder."""
    return (SHIPPED, CardFolder.flat(models)) if models is not None else (SHIPPED,)


def card_faults(name: str, folders: Folders, kind: Kind) -> Iterator[tuple[str, str]]:
    """Why a policy cannot name this card, with hints."""
    try:
        card, folder = checked(name, folders, kind)
        weights_of(card, folder)
    except CardError as error:
        yield str(error), "see `models/cards` and HOME/models"
        return
    if find_spec("torch") is None:
        yield "learned stages need torch, which is not installed here", "pip install 'deid-gateway[learn]'"


def checked(name: str, folders: Folders, kind: Kind) -> tuple[Card, CardFolder]:
    """Raises CardError for a card that is absent, past its date, another one's, or without weights."""
    card, folder = find_card(name, folders, today=datetime.now(UTC).date())
    if card.role != "anonymiser" or card.algorithm != kind.algorithm:
        raise CardError(f"the card {name} is no {kind.said}'s (role anonymiser, algorithm {kind.algorithm})")
    if card.weights is None:
        raise CardError(f"the card {name} has no weights")
    return card, folder


def weights_file(card: Card, folder: CardFolder) -> Path:
    """Raises CardError for weights that are not there, or other ones."""
    path = weights_of(card, folder)
    if path is None:
        raise CardError(f"the card {card.name} has no weights")
    return path
