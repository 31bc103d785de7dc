"""MIMIC-CXR-JPG (Johnson et al. 2019): chest films of one hospital, with dates shifted by person.

    FOLDER/
      mimic-cxr-2.0.0-metadata.csv.gz             (needed; 2.1.0 and unpacked tables too)
      mimic-cxr-2.0.0-chexpert.csv.gz             (labels by study; optional)
      mimic-cxr-2.0.0-split.csv.gz                (optional)
      patients.csv.gz                             (of MIMIC-IV: gender, anchor_age, anchor_year; optional)
      files/p10/p10000032/s50414267/02aa804e-bde0afdd-112c0b34-7bc16630-4e384014.jpg

Labels: 1 present, 0 absent, -1 uncertain, empty not mentioned. Days are counted between the shifted dates of a person.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.readers.chexpert import LABELS
from models.cohorts.readers.pictures import grey
from models.cohorts.readers.tables import (
    LayoutError,
    all_there,
    certain,
    known,
    maybe_table,
    number,
    one_table,
    rows_of,
    sex_and_age,
)

DATASET = "MIMIC-CXR-JPG"
Row = dict[str, str]
ID = re.compile(r"[0-9a-f]+(-[0-9a-f]+)*")


def read_mimic_cxr(folder: Path, *, allow_missing: bool = False) -> Cohort:
    """Scans with day, view, split, finding, uncertain; sex and age_band where patients.csv is. Raises LayoutError."""
    metadata = one_table(folder, ("mimic-cxr-*-metadata.csv.gz", "mimic-cxr-*-metadata.csv"), DATASET)
    rows = rows_of(metadata, ("dicom_id", "subject_id", "study_id"))
    labels = {row["study_id"]: row for row in _optional(folder, "mimic-cxr-*-chexpert", ("study_id",))}
    splits = {row["dicom_id"]: row["split"] for row in _optional(folder, "mimic-cxr-*-split", ("dicom_id", "split"))}
    patients = {row["subject_id"]: row for row in _optional(folder, "patients", ("subject_id", "gender"))}
    first: dict[str, dt.date] = {}
    for row in rows:
        taken = _date(row)
        if taken:
            first[row["subject_id"]] = min(taken, first.get(row["subject_id"], taken))
    scans, absent = [], []
    for line, row in enumerate(rows, start=2):
        if not (row["subject_id"] + row["study_id"]).isdigit() or not ID.fullmatch(row["dicom_id"]):
            raise LayoutError(f"{metadata.name}, line {line}: subject and study must be numbers, dicom_id hexadecimal")
        subject, study = row["subject_id"], row["study_id"]
        place = Path("files") / f"p{subject[:2]}" / f"p{subject}" / f"s{study}" / f"{row['dicom_id']}.jpg"
        if not (folder / place).is_file():
            absent.append(place.as_posix())
            continue
        attributes = certain(labels.get(study, {}), LABELS) | _person(patients.get(subject, {}), _date(row))
        attributes |= {
            key: value
            for key, cell in (("view", row.get("ViewPosition")), ("split", splits.get(row["dicom_id"])))
            if (value := known(cell))
        }
        scans.append(_scan(folder / place, row, attributes, first))
    all_there(DATASET, absent, allow_missing=allow_missing)
    return Cohort("mimic-cxr", tuple(scans))


def _scan(picture: Path, row: Row, attributes: dict[str, str], first: Mapping[str, dt.date]) -> Scan:
    taken = _date(row)
    return Scan(
        name=row["dicom_id"],
        subject=f"p{row['subject_id']}",
        session=f"s{row['study_id']}",
        load=partial(grey, picture),
        day=float((taken - first[row["subject_id"]]).days) if taken else None,
        site="BIDMC",
        attributes=attributes,
    )


def _optional(folder: Path, stem: str, needed: tuple[str, ...]) -> list[Row]:
    path = maybe_table(folder, (f"{stem}.csv.gz", f"{stem}.csv"))
    return rows_of(path, needed) if path else []


def _person(patient: Row, taken: dt.date | None) -> dict[str, str]:
    anchor, year = number(patient.get("anchor_age")), number(patient.get("anchor_year"))
    age = anchor + taken.year - year if taken and anchor is not None and year is not None else None
    return sex_and_age(patient.get("gender"), age)


def _date(row: Row) -> dt.date | None:
    """StudyDate as 21800506, or as a spreadsheet leaves it: 21800506.0."""
    value = number(row.get("StudyDate"))
    try:
        return None if value is None else dt.datetime.strptime(f"{value:.0f}", "%Y%m%d").date()  # noqa: DTZ007
    except ValueError:
        return None
