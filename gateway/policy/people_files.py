"""CSV files that name people: look-up tables (Patient ID -> pseudonym) and merge tables (old ID -> new ID).

UTF-8, comma separated, the first line names the columns. Read whole or not at all: a table that contradicts itself
would give somebody somebody else's name. Faults name lines, never a cell.
"""

from __future__ import annotations

import csv
import io
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import Fault, PolicyError

MAX_BYTES = 64 << 20  # about two million people
MAX_FAULTS = 100
OLD, NEW = "old_id", "new_id"
_PSEUDONYM = re.compile(r"[A-Za-z0-9._-]{1,64}")  # LO (PS3.5 6.2), of characters that every archive and shell bears


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, or one row of a result: its number, and the two values."""

    number: int
    key: str
    value: str


def read_lookup(path: Path, original: str, replacement: str) -> Mapping[str, str]:
    """Pseudonym by Patient ID. Raises PolicyError with every fault of the file, by line."""
    return lookup_of(_rows(path, original, replacement), str(path))


def lookup_of(rows: Iterable[Row], name: str, *, numbered: bool = True) -> dict[str, str]:
    """Pseudonym by Patient ID, of rows from wherever. `numbered`: their numbers are lines of a file that has `name`.

    Raises PolicyError when an ID is there twice, a pseudonym is given to two people (in any case of its letters), is
    somebody's Patient ID, or is none that can be written; when it names nobody.
    """
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    owners: dict[str, int] = {}  # line by pseudonym
    faults = _Faults(name, numbered=numbered)
    for row in rows:
        if not _is_id(row.key):
            faults.add(row.number, "no Patient ID that could be sent (empty, control characters, a backslash)")
        elif not _PSEUDONYM.fullmatch(row.value):
            faults.add(row.number, "a pseudonym is 1 to 64 letters, digits, dots, dashes and underscores")
        elif row.key in lines:
            faults.add(row.number, f"the same Patient ID as in {faults.place(lines[row.key])}", "keep one of them")
        elif row.value.casefold() in owners:
            first = faults.place(owners[row.value.casefold()])
            faults.add(row.number, f"the same pseudonym as in {first}", "a pseudonym belongs to one person")
        else:
            lines[row.key] = owners[row.value.casefold()] = row.number
            found[row.key] = row.value
    ids = {key.casefold(): number for key, number in lines.items()}
    for value, number in owners.items():
        if value in ids:
            faults.add(number, f"the pseudonym is the Patient ID of {faults.place(ids[value])}", "invent another one")
    if not found and not faults.found:
        faults.add(0, "names nobody", "add lines below the names of the columns")
    faults.end()
    return found


def read_merges(path: Path) -> Mapping[str, str]:
    """Surviving Patient ID by old one, chains followed to their end. Raises PolicyError, by line."""
    faults = _Faults(str(path))
    step: dict[str, str] = {}
    lines: dict[str, int] = {}
    for row in _rows(path, OLD, NEW):
        if not (_is_id(row.key) and _is_id(row.value)):
            faults.add(row.number, "no Patient ID that could be sent (empty, control characters, a backslash)")
        elif row.key == row.value:
            faults.add(row.number, "an ID is merged into itself", "remove the line")
        elif row.key in step:
            faults.add(row.number, f"the same old ID as in line {lines[row.key]}", "an ID survives in one other only")
        else:
            step[row.key], lines[row.key] = row.value, row.number
    faults.end()
    survivors: dict[str, str] = {}
    for old in step:
        chain: dict[str, None] = {}
        last = old
        while last in step and last not in survivors and last not in chain:
            chain[last] = None
            last = step[last]
        if last in chain:
            circle = list(chain)[list(chain).index(last) :]
            numbers = sorted(lines[one] for one in circle)
            faults.add(numbers[0], f"a circle of lines {', '.join(map(str, numbers))}", "one of the IDs must survive")
            survivors |= dict.fromkeys(chain, last)  # told once
        else:
            survivors |= dict.fromkeys(chain, survivors.get(last, last))
    faults.end()
    return survivors


class _Faults:
    """Faults of one table, with lines where it is a file."""

    def __init__(self, name: str, *, numbered: bool = True) -> None:
        self._name = name
        self._numbered = numbered
        self.found: list[Fault] = []

    def place(self, number: int) -> str:
        return f"line {number}" if self._numbered else "another row"

    def add(self, number: int, says: str, hint: str = "") -> None:
        self.found.append(Fault(self._name, number if self._numbered else 0, says, hint))

    def end(self) -> None:
        if self.found:
            raise PolicyError(sorted(set(self.found))[:MAX_FAULTS])


def _is_id(value: str) -> bool:
    return bool(value) and value.isprintable() and "\\" not in value and len(value) <= 256


def clean_id(value: str) -> str:
    """An ID as it is compared: composed (NFC), without padding (space, NUL)."""
    return unicodedata.normalize("NFC", value).strip(" \0")


def _rows(path: Path, key: str, value: str) -> Iterator[Row]:
    name = str(path)
    lines = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        header = [cell.strip() for cell in next(lines, [])]
        places = []
        for column in (key, value):
            if header.count(column) != 1:
                says = f"the first line must name the column {column}, once"
                raise PolicyError([Fault(name, 1, says, "or name the file's own columns in the policy")])
            places.append(header.index(column))
        last = lines.line_num
        for cells in lines:
            number, last = last + 1, lines.line_num
            if not any(cells):
                continue
            if last != number or len(cells) != len(header):
                says = "not one line with as many cells as there are columns"
                raise PolicyError([Fault(name, number, says, "look for a quote or a comma too many")])
            yield Row(number, *(clean_id(cells[place]) for place in places))
    except csv.Error:
        raise PolicyError([Fault(name, lines.line_num, "is no CSV", "look for a quote too many")]) from None


def _text(path: Path) -> str:
    name = str(path)
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PolicyError([Fault(name, 0, f"cannot be read: {error.strerror or type(error).__name__}")]) from None
    if mode & 0o037:
        says = f"names people and is open to others (mode {mode:04o})"
        raise PolicyError([Fault(name, 0, says, f"run chmod 600 {path.name}")])
    if len(data) > MAX_BYTES:
        raise PolicyError([Fault(name, 0, f"is larger than {MAX_BYTES >> 20} MiB")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PolicyError([Fault(name, 0, "is not UTF-8 text", "save the file as UTF-8")]) from None
