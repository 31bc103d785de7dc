"""`models calibrate`: how near scans of different people lie under one card; `same_scan` judges single studies by it.

One scan of each person against scans of `DRAWS` others, untouched originals on both sides, of people whom the card was
not trained on. A p-value is then valid for people like these; the card says who they were.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import ValidationError

from gateway.durable import make_folder, writing
from gateway.embed import open_embedder
from gateway.errors import UsageError
from gateway.evidence import distances
from gateway.learn.judged import Tick, embedded
from gateway.learn.reading import read_dicom
from gateway.learn.training import read_cohort
from models.cards import (
    SHIPPED,
    Card,
    CardError,
    CardFolder,
    Impostors,
    find_card,
    people_hash,
    read_card,
    read_people,
    weights_of,
)
from models.cards.card import NAME
from models.cards.impostors import LEAST_IMPOSTORS, write_impostors
from models.cohorts import Cohort

DRAWS = 50  # other people that each one is set against
DEFAULT_METRIC = "cosine"  # of a card that names none


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The card that was written, its file, and the people who were left out because it was trained on them."""

    card: Card
    path: Path
    left_out: int


def read_calibration(text: str) -> Cohort:
    """As `read_cohort`, and dicom=FOLDER: nobody's Patient ID is kept, so DICOM may be taken as it is. Raises
    UsageError.
    """
    reader, _, folder = text.partition("=")
    if reader != "dicom":
        return read_cohort(text)
    if not Path(folder).is_dir():
        raise UsageError(f"{folder or 'nothing'} is no folder")
    try:
        return read_dicom(Path(folder), name="dicom")
    except ValueError as error:
        raise UsageError(f"{folder}: {error}") from None


def calibrate(
    name: str,
    cohorts: Sequence[Cohort],
    folders: Sequence[CardFolder],
    target: CardFolder,
    tick: Tick,
    *,
    new_name: str = "",
    valid_until: date | None = None,
    seed: int = 0,
) -> Calibrated:
    """Writes `new_name` (else `name`) into `target`: the card with impostors, its weights, its lists of people.

    Raises UsageError for a card that cannot be used, fewer than 200 people whom it was not trained on, and scans that
    it cannot embed.
    """
    try:
        card, folder = find_card(name, folders)
        weights, seen = weights_of(card, folder), read_people(card, folder)
        embedder = open_embedder(name, folders)
    except CardError as error:
        raise UsageError(str(error)) from None
    if card.role != "attacker":
        raise UsageError(f"{name} is an {card.role}'s card; impostors belong to an attacker's")
    must_be_free(card, new_name or name, target)
    parts = [
        cohort.of([one for one in cohort.subjects if people_hash(cohort.name, one) not in seen]) for cohort in cohorts
    ]
    people = sum(len(part.subjects) for part in parts)
    left_out = sum(len(cohort.subjects) for cohort in cohorts) - people
    if people < LEAST_IMPOSTORS:
        raise UsageError(
            f"{people} people whom {name} was not trained on ({left_out} others were left out); a calibration needs "
            f"{LEAST_IMPOSTORS}: add cohorts of people like those to be judged"
        )
    try:
        rows = np.concatenate([embedded(embedder.embed, _first_scans(part), tick) for part in parts if len(part)])
    except (CardError, ValueError) as error:
        raise UsageError(f"{name} cannot embed these scans: {error}") from None
    metric = str(card.parameters.get("metric", DEFAULT_METRIC))
    told = ", ".join(
        f"{len(part.subjects)} {'synthetic ' if part.synthetic else ''}people of {part.name}"
        for part in parts
        if len(part)
    )
    body = write_impostors(metric, drawn(rows, metric, seed), f"untouched originals of {told}, one scan of each")
    made = _card(card, new_name or name, body, people, metric, told, valid_until)
    files = {target.weights / f"{made.name}.impostors.npz": body}
    if weights is not None and made.weights is not None:
        files[target.weights / made.weights.file] = weights.read_bytes()
    for part_of in card.trained_on:
        files[target.people / part_of.people_file] = (folder.people / part_of.people_file).read_bytes()
    return Calibrated(made, write_card(made, files, target), left_out)


def write_card(card: Card, files: Mapping[Path, bytes], target: CardFolder) -> Path:
    """The card's own file, after those that it names; where it lies."""
    document = yaml.safe_dump(
        card.model_dump(mode="json", exclude_defaults=True), sort_keys=False, width=110, allow_unicode=True
    )
    path = target.cards / f"{card.name}.yaml"
    for file, contents in {**files, path: document.encode()}.items():
        make_folder(file.parent)
        with writing(file) as out:
            out.write(contents)
    return path


def must_be_free(card: Card, name: str, target: CardFolder) -> None:
    """A shipped card goes before a site's of its name, and a card that stands is not overwritten by another one."""
    if target != SHIPPED and (SHIPPED.cards / f"{name}.yaml").is_file() and card.imported is None:
        raise UsageError(f"a card called {name} ships, and goes before a site's; give the calibrated one a --name")
    if re.fullmatch(NAME, name) is None:
        raise UsageError("--name takes small letters, digits, dots and dashes, 64 at most")
    there = target.cards / f"{name}.yaml"
    if there.is_file() and read_card(there).weights != card.weights:
        raise UsageError(f"{there} is there already, with other weights; take another --name")


def drawn(rows: NDArray[np.float32], metric: str, seed: int) -> NDArray[np.float32]:
    """(people, DRAWS): distances of each of (people, d) to DRAWS others, drawn without repetition."""
    generator, count = np.random.default_rng(seed), len(rows)
    apart = distances(rows, rows, metric)
    draws = min(DRAWS, count - 1)
    others = [generator.permutation(np.delete(np.arange(count), person))[:draws] for person in range(count)]
    return np.asarray(np.take_along_axis(apart, np.stack(others), 1), np.float32)


def _first_scans(cohort: Cohort) -> Cohort:
    """One scan of each person: a person counts once."""
    first = {scan.subject: scan for scan in reversed(cohort.scans)}
    return replace(cohort, scans=tuple(first[subject] for subject in cohort.subjects))


def _card(card: Card, name: str, body: bytes, people: int, metric: str, told: str, valid_until: date | None) -> Card:
    impostors = Impostors(
        file=f"{name}.impostors.npz", sha256=hashlib.sha256(body).hexdigest(), people=people, metric=metric
    )
    changes: dict[str, Any] = {
        "name": name,
        "impostors": impostors,
        "metrics": {**card.metrics, "impostors": f"untouched originals of {told}"},
        "valid_until": valid_until or card.valid_until,
    }
    try:  # built anew, so that the name is checked as every card's is
        return Card.model_validate({**card.model_dump(), **changes})
    except ValidationError:
        raise UsageError("--name takes small letters, digits, dots and dashes, 64 at most") from None
