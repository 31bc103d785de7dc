"""Folders of cards: reading one, finding one by name, its weights and its people, each checked against its digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml
from pydantic import ValidationError

from models.cards.card import NAME, Card, CardError

_MODELS = Path(__file__).resolve().parent.parent
MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class CardFolder:
    """Where cards, weights, and lists of people lie. A site's own folder holds all three side by side."""

    cards: Path
    weights: Path
    people: Path

    @classmethod
    def flat(cls, folder: Path) -> CardFolder:
        return cls(folder, folder, folder)


SHIPPED = CardFolder(_MODELS / "cards", _MODELS / "weights", _MODELS / "cards" / "people")


def read_card(path: Path) -> Card:
    """Raises CardError with every fault of the file."""
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            raise CardError(f"{path}: larger than {MAX_BYTES // 1024} KiB; a card is a page")
        card = Card.model_validate(yaml.safe_load(data))
    except OSError as error:
        raise CardError(f"{path}: cannot be read ({error.strerror or type(error).__name__})") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise CardError(f"{path}: not YAML; check indentation and quotes") from None
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False)]
        raise CardError(f"{path}: " + "; ".join(faults)) from None
    if card.name != path.stem:
        raise CardError(f"{path}: its name says {card.name}; file and name are the same")
    return card


def find_card(
    name: str, folders: Sequence[CardFolder] = (SHIPPED,), *, today: date | None = None
) -> tuple[Card, CardFolder]:
    """The card of that name and its folder; the first folder wins, but a card that waits for its weights gives way to
    one that has them. Raises CardError when absent or past its date.
    """
    waiting: tuple[Card, CardFolder] | None = None
    for folder in folders if re.fullmatch(NAME, name) else ():
        path = folder.cards / f"{name}.yaml"
        if not path.is_file():
            continue
        card = read_card(path)
        if card.valid_until is not None and today is not None and today > card.valid_until:
            raise CardError(f"{path}: valid until {card.valid_until}; calibrate it anew or take a newer card")
        if card.published is None or card.weights is not None:
            return card, folder
        waiting = waiting or (card, folder)
    if waiting is not None:
        return waiting
    known = sorted({path.stem for folder in folders for path in folder.cards.glob("*.yaml")})
    raise CardError(f"no card is called {name}; there are {', '.join(known) or 'none'}")


def weights_of(card: Card, folder: CardFolder) -> Path | None:
    """The file of its weights, checked against the card; None for a part without. Raises CardError."""
    if card.weights is None:
        if card.published is not None:
            raise CardError(
                f"{card.name} has no weights yet: get {' or '.join(card.published.files)} from its owner "
                f"({card.source}), then: deid-gateway models import {card.name} FILE"
            )
        return None
    path = folder.weights / card.weights.file
    _check(
        path, card.weights.sha256, f"the card {card.name} needs this file: deid-gateway models import {card.name} FILE"
    )
    return path


def read_people(card: Card, folder: CardFolder) -> frozenset[str]:
    """Hashes of everybody that it was trained on. Raises CardError when a list is absent or another one."""
    people: set[str] = set()
    for part in card.trained_on:
        path = folder.people / part.people_file
        _check(path, part.people_sha256, f"the card {card.name} cannot say on whom it was trained without it")
        people.update(path.read_text("ascii").split())
    return frozenset(people)


def people_hash(cohort: str, subject: str) -> str:
    """16 hex characters by which a person is known on cards. `subject` is a pseudonym, never a Patient ID."""
    return hashlib.sha256(f"{cohort}/{subject}".encode()).hexdigest()[:16]


def people_lines(cohort: str, subjects: Iterable[str]) -> bytes:
    """The contents of a list of people: sorted hashes, one a line."""
    return "".join(f"{one}\n" for one in sorted({people_hash(cohort, subject) for subject in subjects})).encode()


def _check(path: Path, sha256: str, hint: str) -> None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError:
        raise CardError(f"{path} is not there; {hint}") from None
    if digest.hexdigest() != sha256:
        raise CardError(f"{path} is another file than its card names (sha256); {hint}")
