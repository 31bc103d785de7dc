"""The card that a learned stage names: found, of the right kind, within its date, with its weights; and at work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from models.cards import SHIPPED, Card, CardError, CardFolder, find_card, weights_of

if TYPE_CHECKING:
    from torch import Tensor

Folders = tuple[CardFolder, ...]
P = TypeVar("P")  # networks
D = TypeVar("D")  # what they were trained on


@dataclass(frozen=True, slots=True)
class Kind(Generic[P, D]):
    """What a stage needs: `algorithm` and `role` of the card, and `said`, what such a card is called in a sentence.
    `opens` makes networks and domain of a card and its tensors, and raises CardError for what does not fit.
    """

    algorithm: str
    said: str
    opens: Callable[[Card, Mapping[str, Tensor]], tuple[P, D]]
    role: str = "anonymiser"


@dataclass(frozen=True, slots=True)
class AtWork(Generic[P, D]):
    """A card that was checked against its weights, with its networks and its domain."""

    card: Card
    parts: P
    domain: D

    @property
    def sha256(self) -> str:
        return self.card.weights.sha256 if self.card.weights else ""


def folders_of(models: Path | None) -> Folders:
    """Where cards are looked for: what ships, then a site's own folder."""
    return (SHIPPED, CardFolder.flat(models)) if models is not None else (SHIPPED,)


def card_faults(name: str, folders: Folders, kind: Kind[Any, Any]) -> Iterator[tuple[str, str]]:
    """Why a policy cannot name this card, with hints."""
    try:
        card, folder = checked(name, folders, kind)
        weights_of(card, folder)
    except CardError as error:
        yield str(error), "see `models/cards` and HOME/models"
        return
    if find_spec("torch") is None:
        yield "learned stages need torch, which is not installed here", "pip install 'deid-gateway[learn]'"


def checked(name: str, folders: Folders, kind: Kind[Any, Any]) -> tuple[Card, CardFolder]:
    """Raises CardError for a card that is absent, past its date, another one's, or without weights."""
    card, folder = find_card(name, folders, today=datetime.now(UTC).date())
    if card.role != kind.role or card.algorithm != kind.algorithm:
        raise CardError(f"the card {name} is no {kind.said}'s (role {kind.role}, algorithm {kind.algorithm})")
    if card.weights is None:
        raise CardError(f"the card {name} has no weights")
    return card, folder


def at_work(name: str, folders: Folders, kind: Kind[P, D]) -> AtWork[P, D]:
    """Loaded once in a process; the card is looked at each time. Raises CardError for one that is absent, past its
    date, another one's, or without its weights.
    """
    card, _ = checked(name, folders, kind)
    return cast("AtWork[P, D]", _opened(name, folders, kind, card.model_dump_json()))


@lru_cache(maxsize=4)
def _opened(name: str, folders: Folders, kind: Kind[Any, Any], _card: str) -> AtWork[Any, Any]:
    from safetensors.torch import load_file

    card, folder = checked(name, folders, kind)
    path = weights_of(card, folder)
    if path is None:
        raise CardError(f"the card {name} has no weights")
    return AtWork(card, *kind.opens(card, load_file(path)))
