"""Tables that name people, the policies that follow them, and what an archive has of whom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydicom
from houses import edit

POLICY = "research-basic"


def write_table(path: Path, columns: str, **rows: str) -> Path:
    """A CSV of two columns, closed to others: `write_table(p, "patient_id,pseudonym", LEAK0001="S1")`."""
    path.write_text(columns + "\n" + "".join(f"{key},{value}\n" for key, value in rows.items()))
    path.chmod(0o600)
    return path


def people(folder: Path, **rows: str) -> Path:
    """The look-up table of a policies folder."""
    return write_table(folder / "people.csv", "patient_id,pseudonym", **rows)


def merges(folder: Path, **rows: str) -> Path:
    """Its merge table."""
    return write_table(folder / "merges.csv", "old_id,new_id", **rows)


def name_people(folder: Path, policy: str = POLICY, **rule: str) -> None:
    """Set `header.patient_id`."""
    edit(folder, policy, lambda body: body["header"].update(patient_id=rule))


def with_vault(folder: Path, policy: str = POLICY, **section: Any) -> None:
    """Set `vault`."""
    edit(folder, policy, lambda body: body.update(vault={"roles": ["dpo"], **section}))


def sent(target: Path) -> Iterator[pydicom.Dataset]:
    """What the archive's folder has, in the order of its names."""
    for path in sorted(target.rglob("*.dcm")):
        yield pydicom.dcmread(path)


def pseudonyms_in(target: Path) -> list[str]:
    return sorted(str(ds.PatientID) for ds in sent(target))
