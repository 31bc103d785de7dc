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

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Fault, PolicyError, UsageError
from gateway.evidence import People

KNOWN = ("scan", "subject", "session", "date", "day", "site", "dataset")


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
    for name, array in arrays.items():
        if array.ndim != 2 or len(array) != len(names):
            faults.append(Fault(str(embeddings), 0, f"{name} is no (scans, dimensions) array of {len(names)} scans"))
        elif not np.issubdtype(array.dtype, np.floating) or not np.isfinite(array).all():
            faults.append(Fault(str(embeddings), 0, f"{name} holds values that are not finite numbers"))
    if not arrays:
        faults.append(Fault(str(embeddings), 0, "no embeddings beside `scan`"))
    if faults:
        raise PolicyError(faults)
    columns = {key: tuple(rows[name][key] for name in names) for key in next(iter(rows.values()))}
    return AuditInput({name: arrays[name] for name in sorted(arrays)}, columns)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or 'no such file'}") from None
    except ValueError:
        raise UsageError(f"{path} is no .npz of plain arrays; write it with numpy.savez") from None
    if "scan" not in arrays or arrays["scan"].ndim != 1:
        raise UsageError(f"{path} has no array `scan` with the names of the scans")
    return arrays


def _rows(path: Path) -> tuple[dict[str, dict[str, str]], list[Fault]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            lines = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read as CSV in UTF-8 ({type(error).__name__})") from None
    absent = [name for name in ("scan", "subject") if name not in header]
    if absent:
        raise UsageError(f"{path} has no column {' nor '.join(absent)}; it has {', '.join(header) or 'none'}")
    rows: dict[str, dict[str, str]] = {}
    faults = []
    for line, row in lines:
        says = _fault(row, rows, header)
        if says:
            faults.append(Fault(str(path), line, says))
        else:
            rows[row["scan"]] = {name: row[name].strip() for name in header}
    return rows, faults


def _fault(row: Mapping[str, Any], rows: Mapping[str, Any], header: Sequence[str]) -> str:
    if None in row or any(row[name] is None for name in header):
        return f"not {len(header)} cells"
    if not row["scan"].strip() or not row["subject"].strip():
        return "no scan or no subject"
    if row["scan"] in rows:
        return "a scan that has a row already"
    if "date" in header:
        try:
            date.fromisoformat(row["date"].strip())
        except ValueError:
            return "the date is not YYYY-MM-DD"
    return ""
