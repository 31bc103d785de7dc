"""What an audit works on: embeddings of one or more encoders in an .npz, and a metadata CSV that says whose they are.

    EMBEDDINGS.npz   `scan` (n,): names; every other array (n, d): the embeddings of the encoder of that name
    METADATA.csv     scan, subject; optional: session, date (YYYY-MM-DD), site, dataset, and attributes such as sex

Only names the files' rows by number in its errors: subjects may be identities.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from gateway.errors import Fault, PolicyError, UsageError
from gateway.evidence import People

KNOWN = ("scan", "subject", "session", "date", "day", "site", "dataset")
FILLED = ("session", "site", "dataset")  # a blank cell would be taken for one session, site or data set of its own


@dataclass(frozen=True, slots=True)
class AuditInput:
    """n scans. `columns` holds every column of the metadata in the order of the embeddings.

    `trained_on`: how many of these people an encoder was trained on; figures about them flatter it.
    """

    embeddings: Mapping[str, NDArray[Any]]
    columns: Mapping[str, tuple[str, ...]]
    trained_on: Mapping[str, int] = field(default_factory=dict)

    @property
    def people(self) -> People:
        c = self.columns
        session = c.get("session") or c.get("date")
        return People.of(c["subject"], session, c.get("site"))

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in KNOWN)

    @property
    def days(self) -> NDArray[np.int64] | None:
        """Days of the scans, when there are dates (from year 1 on) or `day` (from each person's first scan on)."""
        if "day" in self.columns:
            return np.array([int(text) for text in self.columns["day"]])
        dates = self.columns.get("date")
        return None if dates is None else np.array([date.fromisoformat(text).toordinal() for text in dates])

    def chosen(self, rows: NDArray[Any]) -> AuditInput:
        """A part of the scans."""
        picked = np.flatnonzero(rows) if rows.dtype == bool else rows
        columns = {name: tuple(values[i] for i in picked) for name, values in self.columns.items()}
        parts = {name: array[picked] for name, array in self.embeddings.items()}
        return AuditInput(parts, columns, self.trained_on)


def read_inputs(embeddings: Path, metadata: Path) -> AuditInput:
    """Both files, matched by scan. Raises UsageError with every fault at once."""
    arrays = _arrays(embeddings)
    names = [str(name) for name in arrays.pop("scan")]
    rows, faults = _rows(metadata)
    missing = [name for name in names if name not in rows]
    if len(set(names)) != len(names):
        faults.append(Fault(str(embeddings), 0, "a scan is here twice"))
    if missing:
        faults.append(Fault(str(metadata), 0, f"{len(missing)} of {len(names)} scans have no row"))
    if not names:
        faults.append(Fault(str(embeddings), 0, "no scans"))
    faults += [
        Fault(str(embeddings), 0, f"{name} {says}")
        for name, array in arrays.items()
        if (says := _unfit(array, len(names)))
    ]
    if not arrays:
        faults.append(Fault(str(embeddings), 0, "no embeddings beside `scan`"))
    if faults:
        raise PolicyError(faults)
    columns = {key: tuple(rows[name][key] for name in names) for key in next(iter(rows.values()))}
    return AuditInput({name: _floats(arrays[name]) for name in sorted(arrays)}, columns)


def _unfit(array: NDArray[Any], scans: int) -> str:
    """Why these are no embeddings of so many scans; rows are counted from 1, as no scan may be named."""
    if array.ndim != 2 or len(array) != scans or not array.shape[1]:
        return f"is no (scans, dimensions) array of {scans} scans"
    if not np.issubdtype(array.dtype, np.floating) and not np.issubdtype(array.dtype, np.integer):
        return "holds no numbers"
    bad = np.flatnonzero(~np.isfinite(array).all(1))
    return (
        f"holds values that are not finite in {len(bad)} of {scans} rows, the first is row {bad[0] + 1}"
        if len(bad)
        else ""
    )


def _floats(array: NDArray[Any]) -> NDArray[Any]:
    return array if np.issubdtype(array.dtype, np.floating) else array.astype(np.float64)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, NpzFile):
            raise UsageError(f"{path} is one array, no .npz of several; write it with numpy.savez")
        with loaded as file:
            arrays = {name: file[name] for name in file.files}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or 'no such file'}") from None
    except (ValueError, EOFError, BadZipFile):
        raise UsageError(f"{path} is no .npz of plain arrays; write it with numpy.savez") from None
    if "scan" not in arrays or arrays["scan"].ndim != 1:
        raise UsageError(f"{path} has no array `scan` with the names of the scans")
    return arrays


def _rows(path: Path) -> tuple[dict[str, dict[str, str]], list[Fault]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames = [name.strip() for name in reader.fieldnames or []]
            lines = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read as CSV in UTF-8 ({type(error).__name__})") from None
    absent = [name for name in ("scan", "subject") if name not in header]
    if absent:
        hint = "" if len(header) != 1 or ";" not in header[0] else "; cells are separated by commas, not semicolons"
        raise UsageError(f"{path} has no column {' nor '.join(absent)}; it has {', '.join(header) or 'none'}{hint}")
    rows: dict[str, dict[str, str]] = {}
    faults = []
    for line, row in lines:
        says = _fault(row, rows, header)
        if says:
            faults.append(Fault(str(path), line, says))
        else:
            rows[row["scan"].strip()] = {name: row[name].strip() for name in header}
    return rows, faults


def _fault(row: Mapping[str, Any], rows: Mapping[str, Any], header: Sequence[str]) -> str:
    if None in row or any(row[name] is None for name in header):
        return f"not {len(header)} cells"
    if not row["scan"].strip() or not row["subject"].strip():
        return "no scan or no subject"
    if row["scan"].strip() in rows:
        return "a scan that has a row already"
    empty = [name for name in FILLED if name in header and not row[name].strip()]
    if empty:
        return f"no {' and no '.join(empty)}: fill it in for every scan, or leave the column out"
    if "day" in header and not row["day"].strip().lstrip("-").isdecimal():
        return "the day is no whole number"
    if "date" in header:
        try:
            date.fromisoformat(row["date"].strip())
        except ValueError:
            return "the date is not YYYY-MM-DD"
    return ""
