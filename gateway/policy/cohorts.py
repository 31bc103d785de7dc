"""Cohort lists for `in_cohort`: CSV of keyed hashes of Patient IDs, with the dates between which a person takes part.

    hash,from,to
    9f86d0...(64 hex),2020-01-01,2024-12-31
    2c2634...,,

A hash is HMAC-SHA256 of the stripped Patient ID under the gateway's cohort key (`cohort_hash`), so the file names
nobody by itself. The dates bound Study Date, both inclusive, empty = open. Faults never quote a cell: somebody will put
real Patient IDs there.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from gateway.errors import Fault, PolicyError
from gateway.policy.frozen import FrozenMap

MAX_BYTES = 64 << 20  # about 700 000 people
_HEX64 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Window:
    """Study dates for which a person belongs to the cohort; None = open."""

    first: date | None
    last: date | None

    def holds(self, day: date | None) -> bool:
        """False for an unknown day, unless the window is open on both sides."""
        if day is None:
            return self.first is None and self.last is None
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)


def cohort_hash(key: bytes, patient_id: str) -> str:
    """64 hex characters: HMAC-SHA256 of the Patient ID without its padding (space, NUL), under the cohort key."""
    return hmac.new(key, patient_id.strip(" \0").encode(), hashlib.sha256).hexdigest()


def load_cohort(path: Path) -> Mapping[str, tuple[Window, ...]]:
    """Windows by keyed hash. Raises PolicyError with every fault of the file, by line."""
    name = str(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PolicyError([Fault(name, 0, f"cannot be read: {error.strerror or type(error).__name__}")]) from None
    if len(data) > MAX_BYTES:
        raise PolicyError([Fault(name, 0, f"is larger than {MAX_BYTES >> 20} MiB", "split it into several cohorts")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PolicyError([Fault(name, 0, "is not UTF-8 text", "save the file as UTF-8")]) from None
    faults: list[Fault] = []
    people: dict[str, tuple[Window, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        cells = _cells(line)
        if not cells or cells == ["hash", "from", "to"]:
            continue
        try:
            person, window = _entry(cells)
        except ValueError as error:
            faults.append(Fault(name, number, str(error)))
            continue
        people[person] = (*people.get(person, ()), window)
    if not people and not faults:
        faults.append(Fault(name, 0, "names nobody", "add lines of hash,from,to"))
    if faults:
        raise PolicyError(faults[:100])
    return FrozenMap(people)


def _cells(line: str) -> list[str]:
    if not line.strip() or line.startswith("#"):
        return []
    try:
        return [cell.strip() for cell in next(csv.reader([line]))]
    except csv.Error:
        return [""]


def _entry(cells: list[str]) -> tuple[str, Window]:
    if len(cells) > 3 or not _HEX64.fullmatch(cells[0]):
        raise ValueError("a line is hash,from,to and the hash has 64 small hex digits")
    try:
        first, last = (date.fromisoformat(cell) if cell else None for cell in (*cells[1:], "", "")[:2])
    except ValueError:
        raise ValueError("a date is not of the form YYYY-MM-DD") from None
    if first is not None and last is not None and first > last:
        raise ValueError("the first date is after the last one")
    return cells[0], Window(first, last)
