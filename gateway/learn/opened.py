"""Cards that a calibration needs, opened: the anonymiser, and what its attackers start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.errors import UsageError
from models.cards import Card, CardError, CardFolder, find_card, read_people, weights_of
from models.train.trained import Start

if TYPE_CHECKING:
    from models.resynthesis import AdjustableParts
    from models.resynthesis.domain import PictureDomain


@dataclass(frozen=True, slots=True)
class Anonymiser:
    """A card that was opened."""

    card: Card
    folder: CardFolder
    parts: AdjustableParts
    domain: PictureDomain
    people: frozenset[str]


def anonymiser_of(name: str, folders: Sequence[CardFolder]) -> Anonymiser:
    """Raises UsageError."""
    from safetensors.torch import load

    from models.resynthesis import ALGORITHM, parts_of
    from models.resynthesis.domain import domain_of

    try:
        card, folder = find_card(name, folders)
        path, people = weights_of(card, folder), read_people(card, folder)
        if card.role != "anonymiser" or card.algorithm != ALGORITHM or path is None:
            raise UsageError(f"{name} is no adjustable anonymiser with weights (algorithm {ALGORITHM})")
        tensors = load(path.read_bytes())
        return Anonymiser(card, folder, parts_of(card, tensors), domain_of(card, tensors), people)
    except CardError as error:
        raise UsageError(str(error)) from None


def attacker_of(name: str, folders: Sequence[CardFolder]) -> Start:
    """What attackers start from. Raises UsageError."""
    from safetensors.torch import load

    try:
        card, folder = find_card(name, folders)
        path = weights_of(card, folder)
        read_people(card, folder)  # each list is the one that the card names
        if card.role != "attacker" or path is None:
            raise UsageError(f"{name} is no attacker with weights; name one that was trained here with --attacker")
        lists = {one.people_file: (folder.people / one.people_file).read_bytes() for one in card.trained_on}
        return Start(card, load(path.read_bytes()), lists)
    except CardError as error:
        raise UsageError(str(error)) from None
