"""`audit DIR`: a folder of DICOM, or of a research data set, as embeddings of every asked-for card and preparation.

Embeddings are kept encrypted in HOME/embeddings by content and card, so that an interrupted run goes on where it
stopped. People are named by keyed hashes from here on.
"""

from __future__ import annotations

import csv
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gateway.audit import AuditInput
from gateway.embed import Embedder, EmbeddingStore, card_digest, open_embedder
from gateway.errors import UsageError
from gateway.gate import folders_of
from gateway.learn import read_dicom
from gateway.learn.importing import FOLDER as MODELS
from gateway.pseudonyms import Keys, derive, master_key
from gateway.settings import Home, Settings
from models.cards import CardError, CardFolder, find_card, people_hash, read_card, read_people
from models.cohorts import MODALITIES, READERS, Cohort, Scan
from models.preparation import PREPARATIONS, prepare

BASELINES = ("grey-similarity", "gradients")
# Labels that are no attribute of a person: the exact age, and the sequence, which headers have as free text.
NO_ATTRIBUTES = frozenset({"age", "modality", "sequence"})
Tick = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Wish:
    """`cards` by name, () = those of the modality that have their weights; `preparations` of `models.preparation`.

    `reader` names the layout of a research data set, "" = DICOM. `metadata` adds attributes by subject.
    """

    cards: tuple[str, ...] = ()
    preparations: tuple[str, ...] = ("raw",)
    reader: str = ""
    metadata: Path | None = None
    synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where embeddings are kept, and the key of people's names. Without a home neither outlives the run."""

    store: EmbeddingStore | None
    names: bytes

    @classmethod
    def of(cls, home: Home | None, settings: Settings) -> Keeping:
        if home is None:
            return cls(None, secrets.token_bytes(32))
        keys = Keys(master_key(home, settings))
        store = EmbeddingStore(home.root / "embeddings", derive(keys.master, "embeddings"))
        return cls(store, derive(keys.master, "audit-names"))

    def name(self, text: str) -> str:
        return derive(self.names, text).hex()[:16]


def embed_folder(
    folder: Path,
    wish: Wish,
    keeping: Keeping,
    folders: Sequence[CardFolder],
    tick: Tick,
    note: Callable[[str], None] = lambda _why: None,
    without: Callable[[str, str], None] = lambda _card, _why: None,
) -> AuditInput:
    """Every scan under every card; `note` hears why a file of DICOM is left out, `without` why a card is that nobody
    named: it fits the modality, and not this data set.

    Raises UsageError for a folder, card or preparation that cannot be used.
    """
    cohort = _cohort(folder, wish, tick, note)
    unknown = [name for name in wish.preparations if name not in PREPARATIONS]
    if unknown:
        raise UsageError(f"no preparation is called {', '.join(unknown)}; there are {', '.join(PREPARATIONS)}")
    embedders = [_open(name, folders) for name in wish.cards or _fitting(cohort, wish.reader, folders)]
    arrays: dict[str, list[Any]] = {}
    unable: dict[str, str] = {}  # cards that nobody named and that cannot embed this data set
    total = len(cohort) * len(wish.preparations) * len(embedders)
    done = 0
    for scan in cohort:
        pixels = scan.load()
        for preparation in wish.preparations:
            prepared = _Prepared(scan, pixels, preparation)
            for embedder in embedders:
                name = embedder.card.name + ("" if preparation == "raw" else f", {preparation}")
                tick(name, done, total)
                done += 1
                if name in unable:
                    continue
                try:
                    arrays.setdefault(name, []).append(_embedding(embedder, prepared, keeping))
                except (CardError, ValueError) as error:
                    if wish.cards or embedder.card.name in BASELINES:
                        raise UsageError(f"{embedder.card.name} cannot embed this data set: {error}") from None
                    unable[name] = str(error)
    tick("embedded", total, total)
    for name, why in unable.items():
        without(name, why)
        arrays.pop(name, None)
    made = {name: np.stack(rows) for name, rows in sorted(arrays.items())}
    return AuditInput(made, _columns(cohort, wish, keeping), _trained_on(cohort, embedders, folders))


class _Prepared:
    """One scan in one preparation, made only when some card has no embedding of it yet."""

    def __init__(self, scan: Scan, pixels: Any, preparation: str) -> None:
        self.scan, self._raw, self._preparation = scan, pixels, preparation
        self._made: Any = pixels if preparation == "raw" else None
        content = hashlib.sha256(repr((preparation, pixels.shape, scan.spacing_mm)).encode())
        content.update(np.ascontiguousarray(pixels).tobytes())
        self.digest = content.hexdigest()

    def pixels(self) -> Any:
        if self._made is None:
            if self.scan.spacing_mm is None or self._raw.ndim != 3:
                raise UsageError(f"{self._preparation} needs volumes with a known spacing; this data set has others")
            brain = self.scan.masks["brain"]() if "brain" in self.scan.masks else None
            self._made = prepare(self._preparation, self._raw, self.scan.spacing_mm, brain)
        return self._made


def _embedding(embedder: Embedder, prepared: _Prepared, keeping: Keeping) -> Any:
    card = card_digest(embedder.card)
    kept = keeping.store.find("originals", prepared.digest, card) if keeping.store is not None else None
    if kept is not None:
        return kept.vector
    vector = embedder.embed(prepared.pixels(), prepared.scan.spacing_mm)
    if keeping.store is not None:
        keeping.store.keep("originals", prepared.digest, card, vector, now=time.time())
    return vector


def _cohort(folder: Path, wish: Wish, tick: Tick, note: Callable[[str], None]) -> Cohort:
    if wish.reader and wish.reader not in READERS:
        raise UsageError(f"no reader is called {wish.reader}; there are {', '.join(sorted(READERS))}")
    tick("reading headers", 0, 1)
    try:
        if wish.reader:
            return READERS[wish.reader](folder)
        return read_dicom(folder, synthetic=wish.synthetic, note=note)
    except ValueError as error:
        raise UsageError(f"{folder}: {error}") from None


def _open(name: str, folders: Sequence[CardFolder]) -> Embedder:
    try:
        return open_embedder(name, folders, today=datetime.now(UTC).date())
    except CardError as error:
        raise UsageError(str(error)) from None


def _trained_on(cohort: Cohort, embedders: Sequence[Embedder], folders: Sequence[CardFolder]) -> dict[str, int]:
    """How many of these people each card was trained on. Raises UsageError for a list of people that is gone."""
    here = {people_hash(cohort.name, subject) for subject in cohort.subjects}
    found = {}
    for embedder in embedders:
        try:
            found[embedder.card.name] = len(here & read_people(*find_card(embedder.card.name, folders)))
        except CardError as error:
            raise UsageError(str(error)) from None
    return {name: count for name, count in found.items() if count}


def _fitting(cohort: Cohort, reader: str, folders: Sequence[CardFolder]) -> list[str]:
    """Cards whose weights are here, shipped or imported, and that know this modality, beside the baselines that know
    every image.
    """
    kinds = {scan.attributes.get("modality", "") or MODALITIES.get(reader, "") for scan in cohort} - {""}
    found = list(BASELINES)
    for folder in folders:
        for path in sorted(folder.cards.glob("*.yaml")):
            try:
                card = read_card(path)
            except CardError as error:
                raise UsageError(str(error)) from None
            wanted = card.role == "attacker" and card.takes != "measures" and kinds & set(card.modalities)
            if wanted and card.weights is not None and (folder.weights / card.weights.file).exists():
                found.append(card.name)
    return list(dict.fromkeys(found))


def _columns(cohort: Cohort, wish: Wish, keeping: Keeping) -> Mapping[str, tuple[str, ...]]:
    scans = list(cohort)
    columns = {
        "scan": tuple(keeping.name(f"scan {scan.subject} {scan.session} {scan.name}") for scan in scans),
        "subject": tuple(keeping.name(f"subject {scan.subject}") for scan in scans),
        "session": tuple(keeping.name(f"session {scan.subject} {scan.session}") for scan in scans),
        "dataset": (cohort.name,) * len(scans),
    }
    if any(scan.site for scan in scans):
        columns["site"] = tuple(scan.site or "unknown" for scan in scans)
    if all(scan.day is not None for scan in scans):
        columns["day"] = tuple(f"{scan.day:.0f}" for scan in scans)
    for name in sorted({key for scan in scans for key in scan.attributes} - NO_ATTRIBUTES):
        values = tuple(scan.attributes.get(name, "") for scan in scans)
        if all(values) and _of_person(values, columns["subject"]):
            columns[name] = values
    if wish.metadata is not None:
        columns |= _more(wish.metadata, [scan.subject for scan in scans])
    return columns


def _of_person(values: Sequence[str], subjects: Sequence[str]) -> bool:
    """One value a person, and more than one in all: what an attacker could infer."""
    pairs = set(zip(subjects, values, strict=True))
    return len(pairs) == len(set(subjects)) and len(set(values)) > 1


def _more(path: Path, subjects: Sequence[str]) -> dict[str, tuple[str, ...]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read as CSV in UTF-8 ({type(error).__name__})") from None
    if not rows or "subject" not in rows[0]:
        raise UsageError(f"{path} has no column subject: attributes are matched by person")
    uneven = sum(None in row or None in row.values() for row in rows)
    if uneven:
        raise UsageError(f"{path}: {uneven} rows have more or fewer cells than the header")
    by_subject = {row["subject"].strip(): row for row in rows}
    if len(by_subject) < len(rows):
        raise UsageError(f"{path} has {len(rows) - len(by_subject)} rows of people who have a row already")
    absent = len(set(subjects) - by_subject.keys())
    if absent:
        raise UsageError(f"{path} lacks {absent} of {len(set(subjects))} people")
    names = [name for name in rows[0] if name not in ("subject", "scan", "session", "date", "day")]
    return {name: tuple(by_subject[one][name].strip() for one in subjects) for name in names}


def card_folders(home: Home | None) -> tuple[CardFolder, ...]:
    """What ships, then a site's own, as at the gate: a card means the same attacker in both."""
    return folders_of(home.root / MODELS) if home is not None else folders_of()
