"""Tables of a data set (.csv, .csv.gz, .xlsx) and the labels in them. A label that cannot be read is no label."""

from __future__ import annotations

import csv
import gzip
import math
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from models.cohorts.traits import age_band

MISSING = frozenset({"", "na", "nan", "n/a", "none", "null", "unknown"})
OLDEST_YEARS = 120
SHOWN = 3  # files named in an error


class LayoutError(ValueError):
    """A data set is not laid out as its owner gives it. The sentence names what is missing and what to do."""


def one_table(folder: Path, patterns: Sequence[str], dataset: str) -> Path:
    """The first file that matches, patterns in order of preference. Raises LayoutError when there is none."""
    found = maybe_table(folder, patterns)
    if found is None:
        raise LayoutError(f"{dataset}: the folder has no {' or '.join(patterns)}; give the folder that holds it")
    return found


def maybe_table(folder: Path, patterns: Sequence[str]) -> Path | None:
    """As `one_table`, None when there is none."""
    if not folder.is_dir():
        raise LayoutError(f"there is no folder {folder.name}")
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if path.is_file() and not path.name.startswith("."):
                return path
    return None


def rows_of(path: Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """Rows by column name, cells stripped. Raises LayoutError without the needed columns."""
    head, *body = lines_of(path) or [[]]
    absent = [name for name in needed if name not in head]
    if absent:
        raise LayoutError(f"{path.name} has no column {', '.join(absent)}; is it the owner's own table?")
    return [dict(zip_longest(head, row[: len(head)], fillvalue="")) for row in body]


def lines_of(path: Path) -> list[list[str]]:
    """Lines that hold anything, the header among them, as stripped cells. Raises LayoutError."""
    if path.suffix.lower() in {".xlsx", ".xls"}:
        lines = _spreadsheet(path)
    else:
        try:
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
                lines = list(csv.reader(file))
        except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
            raise _unreadable(path, error) from error
    stripped = [[cell.strip() for cell in line] for line in lines]
    return [line for line in stripped if any(line)]


def _spreadsheet(path: Path) -> list[list[str]]:
    try:
        import openpyxl  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        openpyxl = None
    if openpyxl is None or path.suffix.lower() == ".xls":
        raise LayoutError(
            f"{path.name} is a spreadsheet that cannot be read here: save it as {path.stem}.csv beside it"
        )
    try:
        sheet = openpyxl.load_workbook(path, read_only=True, data_only=True).active
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from error
    return [["" if cell is None else str(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]


def _unreadable(path: Path, error: Exception) -> LayoutError:
    return LayoutError(f"{path.name} cannot be read as a table ({type(error).__name__}); fetch it again")


def known(cell: str | None) -> str | None:
    """The cell, or None where nothing is known."""
    return None if cell is None or cell.strip().lower() in MISSING else cell.strip()


def number(cell: str | None) -> float | None:
    """None for what is no finite number."""
    try:
        value = float(known(cell) or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def sex_and_age(sex: str | None, age_years: float | None) -> dict[str, str]:
    """Attributes "sex" (F or M) and "age_band", those that are known. A child's age counts, a negative one does not."""
    letter = {"f": "F", "m": "M", "female": "F", "male": "M"}.get((sex or "").strip().lower())
    out = {"sex": letter} if letter else {}
    if age_years is not None and 0 <= age_years <= OLDEST_YEARS:
        out["age_band"] = age_band(age_years)
    return out


def certain(row: dict[str, str], labels: Iterable[str]) -> dict[str, str]:
    """Attributes of a CheXpert-labelled row: 1 is present, -1 uncertain, 0 or empty neither.

    "finding": the present ones joined by "|" ("No Finding" is one); absent when the row has no label at all.
    "uncertain": the uncertain ones, when there are any.
    """
    values = {label: number(row.get(label)) for label in labels}
    if all(value is None for value in values.values()):
        return {}
    present = [label for label, value in values.items() if value == 1]
    uncertain = [label for label, value in values.items() if value == -1]
    out = {"finding": "|".join(present)} if present else {}
    if not present and not uncertain:
        out["finding"] = "No Finding"
    if uncertain:
        out["uncertain"] = "|".join(uncertain)
    return out


def all_there(dataset: str, absent: Sequence[str], *, allow_missing: bool) -> None:
    """Raises LayoutError that names the first of the absent files, unless a part of the data set is wanted."""
    if absent and not allow_missing:
        named = ", ".join(absent[:SHOWN]) + (f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else "")
        raise LayoutError(
            f"{dataset}: {named} not found; fetch them, or read with allow_missing=True to leave them out"
        )
