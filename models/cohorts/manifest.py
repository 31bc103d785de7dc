"""Folders of PNG, JPEG or NIfTI with a manifest.csv: file, dataset, subject, session, and what is known of them.

Optional columns: day_offset (days), sex, age (years), finding, view. Colour becomes grey (ITU-R 601).
"""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from models.cohorts.cohort import Cohort, Pixels, Scan

AGE_BAND_YEARS = 20
NEEDED = ("file", "dataset", "subject", "session")


def read_manifest(folder: Path, dataset: str) -> Cohort:
    """The people of one data set in `folder`. Raises ValueError for a manifest without it, or with missing columns."""
    with open(folder / "manifest.csv", encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        absent = [name for name in NEEDED if name not in (reader.fieldnames or [])]
        if absent:
            raise ValueError(f"the manifest has no column {', '.join(absent)}")
        rows = [row for row in reader if row["dataset"] == dataset]
    if not rows:
        raise ValueError("the manifest has no data set of that name")
    return Cohort(dataset, tuple(_scan(folder, row) for row in rows))


def _scan(folder: Path, row: dict[str, str]) -> Scan:
    attributes = {name: row[name] for name in ("sex", "view", "finding") if row.get(name)}
    if row.get("age"):
        low = int(float(row["age"])) // AGE_BAND_YEARS * AGE_BAND_YEARS
        attributes["age_band"] = f"{low}-{low + AGE_BAND_YEARS - 1}"
    return Scan(
        row["file"],
        row["subject"],
        row["session"],
        partial(_picture, folder / row["file"]),
        day=float(row["day_offset"]) if row.get("day_offset") else None,
        attributes=attributes,
    )


def _picture(path: Path) -> Pixels:
    """(rows, columns), 0 to 1."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("L"), np.float32) / np.float32(255)
