"""Folders of PNG, JPEG or NIfTI with a manifest.csv: file, dataset, subject, session, and what is known of them.

Optional columns: day_offset (days), sex, age (years), finding, view, sequence, lesion_mask (a file on the scan's grid).
Colour becomes grey (ITU-R 601); volumes are turned to the axes of a `Scan`. Rows of masks are no scans.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path

from models.cohorts.cohort import AGE_BAND_YEARS, Cohort, Scan

NEEDED = ("file", "dataset", "subject", "session")
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
VOLUMES = (".nii", ".nii.gz")


def read_manifest(folder: Path, dataset: str) -> Cohort:
    """The people of one data set in `folder`. Raises ValueError without a manifest, its columns, or that data set."""
    if not (folder / "manifest.csv").is_file():
        raise ValueError("the folder has no manifest.csv; give the folder that holds it")
    with open(folder / "manifest.csv", encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        absent = [name for name in NEEDED if name not in (reader.fieldnames or [])]
        if absent:
            raise ValueError(f"the manifest has no column {', '.join(absent)}")
        rows = [row for row in reader if row["dataset"] == dataset]
    if not rows:
        raise ValueError("the manifest has no data set of that name")
    scans = [row for row in rows if row["file"].lower().endswith(PICTURES + VOLUMES)]
    scans = [row for row in scans if not (row.get("sequence") or "").startswith("MASK")]
    return Cohort(dataset, tuple(_scan(folder, row) for row in scans))


def _scan(folder: Path, row: dict[str, str]) -> Scan:
    from models.cohorts.readers.pictures import grey
    from models.cohorts.readers.volumes import mask, spacing_mm, volume

    attributes = {name: row[name].strip() for name in ("sex", "view", "finding", "sequence") if row.get(name)}
    if row.get("age"):
        low = int(float(row["age"])) // AGE_BAND_YEARS * AGE_BAND_YEARS
        attributes["age_band"] = f"{low}-{low + AGE_BAND_YEARS - 1}"
    path = folder / row["file"]
    scan = Scan(
        row["file"],
        row["subject"],
        row["session"],
        partial(grey, path),
        day=float(row["day_offset"]) if row.get("day_offset") else None,
        attributes=attributes,
    )
    if not row["file"].lower().endswith(VOLUMES):
        return scan
    lesions = {"lesion": partial(mask, folder / row["lesion_mask"])} if row.get("lesion_mask") else {}
    attributes = {name: value.split(",")[0] for name, value in attributes.items()}  # "..., lesion voxels 1300"
    return replace(scan, load=partial(volume, path), spacing_mm=spacing_mm(path), attributes=attributes, masks=lesions)
