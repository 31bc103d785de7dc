"""`models import`: the weights that a site brings, made into a card of its own in HOME/models.

Runs once and offline, at the command line: whoever serves loads safetensors only (papers/facts.md 1.7).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from gateway.durable import make_folder, sync_folder, writing
from gateway.embed import fixed_embedding, fixed_input_digest
from gateway.errors import EnvironmentFault, UsageError
from models.audit_encoders import network_shapes
from models.cards import SHIPPED, Card, CardError, CardFolder, Imported, Published, Weights, find_card, read_card
from models.checkpoints import CheckpointError, Converted, Layout, convert, write_safetensors

FOLDER = "models"  # below HOME
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Import:
    """What came of it. `parameters` of the file, which are those that `card.published` expects."""

    card: Card
    path: Path
    converted: Converted


def site_folder(home: Path) -> CardFolder:
    """Where a site's own cards, weights and lists of people lie."""
    return CardFolder.flat(home / FOLDER)


def import_weights(
    name: str,
    file: Path,
    home: Path,
    *,
    settings: Mapping[str, str],
    today: date,
    new_name: str = "",
    replace: bool = False,
    told: Told = lambda _step: None,
) -> Import:
    """Convert `file` for the shipped card `name`, and write the site's card with its digests.

    `settings`: parameters of the card that the importer says (`published.choices` all of them). `told` hears each step.
    Raises UsageError for a wrong file, card or parameter; nothing is written then.
    """
    try:
        card, published = _published(name)
        card = _named(card, new_name).model_copy(update={"parameters": _parameters(card, published, settings)})
        folder = site_folder(home)
        path = folder.cards / f"{card.name}.yaml"
        told("digest of the file")
        source = _sha256(file)
        _must_be_free(path, card, source, replace=replace)
        told("tensors, names and shapes")
        layout = Layout(published.paths, published.prefixes, published.heads)
        converted = convert(file, layout, network_shapes(card))
        _must_be_as_many(converted, published, file)
        told("embedding of the fixed input")
        pinned = fixed_input_digest(fixed_embedding(card, dict(converted.tensors)))
        told("writing")
        weights = _weights(converted, card.name, make_folder(folder.weights))
    except (CardError, CheckpointError) as error:
        raise UsageError(str(error)) from None
    imported = Imported(
        sha256=source, container=converted.container, on=today, dropped=converted.dropped, inert=converted.inert[:100]
    )
    made = card.model_copy(update={"weights": weights, "imported": imported, "fixed_input_sha256": pinned})
    with writing(path) as out:
        document: dict[str, Any] = made.model_dump(mode="json", exclude_defaults=True)
        out.write(yaml.safe_dump(document, sort_keys=False, width=110, allow_unicode=True).encode())
    return Import(read_card(path), path, converted)


def _published(name: str) -> tuple[Card, Published]:
    """A shipped card whose weights a site brings."""
    card, _ = find_card(name, (SHIPPED,))
    if card.published is None:
        known = sorted(path.stem for path in SHIPPED.cards.glob("*.yaml") if read_card(path).published is not None)
        raise UsageError(f"{name} needs no file; files are imported for {', '.join(known)}")
    return card, card.published


def _named(card: Card, new_name: str) -> Card:
    if not new_name:
        return card
    if new_name != card.name and (SHIPPED.cards / f"{new_name}.yaml").is_file():
        raise UsageError(f"a card called {new_name} ships, and goes before a site's; take another --name")
    try:  # built anew, so that the name is checked as every card's is
        return Card.model_validate({**card.model_dump(), "name": new_name})
    except ValidationError:
        raise UsageError("--name takes small letters, digits, dots and dashes, 64 at most") from None


def _parameters(card: Card, published: Published, settings: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = dict(card.parameters)
    allowed = sorted({*made, *published.choices})
    unknown = sorted(set(settings) - set(allowed))
    if unknown:
        raise UsageError(
            f"{card.name} has no parameter {', '.join(unknown)}; --set takes {', '.join(allowed) or 'none'}"
        )
    for name, text in settings.items():
        made[name] = int(text) if text.lstrip("-").isdecimal() else text
    for name, values in published.choices.items():
        if made.get(name) not in values:
            shown = ", ".join(f"{name}={value}" for value in values)
            raise UsageError(f"say which {name} the file is, with --set: one of {shown}")
    if made.get("prepared", "no") not in ("no", published.preparation):
        raise UsageError(f"{card.name}: prepared is no, or {published.preparation}")
    return made


def _must_be_free(path: Path, card: Card, source: str, *, replace: bool) -> None:
    """A card that stands is not overwritten by another one: what was measured with it could not be compared."""
    if replace or not path.exists():
        return
    there = read_card(path)
    same_file = there.imported is not None and there.imported.sha256 == source
    if not same_file or dict(there.parameters) != dict(card.parameters):
        raise UsageError(
            f"{path} is there already, of another file or setting; give this one a --name, or --replace it"
        )


def _must_be_as_many(converted: Converted, published: Published, file: Path) -> None:
    found = len(converted.tensors), converted.parameters
    if found != (published.tensors, published.parameters):
        raise UsageError(
            f"{file}: {found[0]} tensors with {found[1]:,} parameters, where its card expects {published.tensors} with "
            f"{published.parameters:,}; this build and its card do not fit, please report this line"
        )


def _weights(converted: Converted, name: str, folder: Path) -> Weights:
    """Named by its digest, so that no other card's file is ever overwritten."""
    part = folder / f".{name}.importing"
    try:
        sha256 = write_safetensors(converted.tensors, part)
        target = folder / f"{name}-{sha256[:12]}.safetensors"
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(folder)
    return Weights(file=target.name, sha256=sha256)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be read ({error.strerror or type(error).__name__})") from None
    return digest.hexdigest()
