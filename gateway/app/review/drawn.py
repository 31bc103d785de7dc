"""Boxes that reviewers drew: stored before anything uses them.

A drawing is a file named by its sha256 and never changed. It counts from the moment the engine has carried out the
wish that names it, in the same transaction: for its study in that project, in every later round and generation, so
that what arrives late is redacted like the rest, also after retention took the originals and the estimates made of
them. Keyed names and pixel coordinates only.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pydicom

from gateway.app.review.wishes import ID_CHARACTERS
from gateway.database import Database
from gateway.durable import make_folder, writing
from gateway.errors import Hold
from gateway.frames.source import PYDICOM_FAILURES
from gateway.pseudonyms import Keys
from gateway.settings import Home
from gateway.study import canonical_json

FOLDER = ("review", "drawn")  # in the home
VERSION = 1
Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """Where pictures are alike: an object, its series (both keyed names), and its size in pixels (0 without any)."""

    sop_key: str
    series_key: str
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """One box. Of a whole series it goes on every object of the same size."""

    place: Place
    box: Box
    whole_series: bool

    def covers(self, place: Place) -> bool:
        if not place.rows or (place.rows, place.columns) != (self.place.rows, self.place.columns):
            return False
        of_series = self.whole_series and bool(self.place.series_key) and place.series_key == self.place.series_key
        return of_series or place.sop_key == self.place.sop_key


def place_of(original: Path, master: bytes) -> Place:
    """Runs in a worker: no value comes back. Raises Hold for a file that cannot be read."""
    words = ["SOPInstanceUID", "SeriesInstanceUID", "Rows", "Columns"]
    try:
        header = pydicom.dcmread(original, stop_before_pixels=True, specific_tags=words, force=True)
        sop, series = (str(header.get(word) or "").strip(" \0") for word in words[:2])
        rows, columns = (int(header.get(word) or 0) for word in words[2:])
    except (OSError, zlib.error, *PYDICOM_FAILURES):
        raise Hold("unreadable_object") from None
    keys = Keys(master)
    return Place(keys.opaque("sop", sop), keys.opaque("series", series) if series else "", rows, columns)


def store(home: Home, study_key: str, drawing: Drawing) -> str:
    """Write a drawing down, whole and on disk; the id that a wish names it by."""
    data = canonical_json({"version": VERSION, "study": study_key, **asdict(drawing)})
    digest = hashlib.sha256(data).hexdigest()
    folder = home.root
    for name in (*FOLDER, study_key):
        folder = make_folder(folder / name)
    path = folder / f"{digest}.json"
    if not path.exists():
        with writing(path) as file:
            file.write(data)
    return digest[:ID_CHARACTERS]


def read(home: Home, study_key: str, about: str) -> Drawing:
    """Raises Hold("stage_failed") for a drawing that is gone, or is not what its name says."""
    try:
        (path,) = home.root.joinpath(*FOLDER, study_key).glob(f"{about}*.json")
        data = path.read_bytes()
        body = json.loads(data)
        if hashlib.sha256(data).hexdigest() != path.stem or (body["version"], body["study"]) != (VERSION, study_key):
            raise ValueError
        top, left, bottom, right = map(int, body["box"])
        return Drawing(Place(**body["place"]), (top, left, bottom, right), bool(body["whole_series"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise Hold("stage_failed", at=f"the drawing {about}") from None


def boxes_of(drawings: Sequence[Drawing], place: Place) -> tuple[Box, ...]:
    """What goes on the pictures of one object, in one order whatever the order they were drawn in."""
    return tuple(sorted({drawing.box for drawing in drawings if drawing.covers(place)}))


def drawings_of(home: Home, database: Database, study_key: str, project: str) -> list[Drawing]:
    """Everything that counts for a study in a project. Raises Hold."""
    return [read(home, study_key, about) for about in database.drawn(study_key, project)]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What `candidates` applies. `master` names places."""

    drawings: tuple[Drawing, ...]
    master: bytes
