"""OASIS-2 (Marcus et al. 2010): 150 people of 60 to 96 years, T1 MRI at two or more visits, some with dementia.

    FOLDER/
      OAS2_RAW_PART1/ OAS2_RAW_PART2/            (one or both, in any depth)
        OAS2_0001_MR1/RAW/mpr-1.nifti.hdr, mpr-1.nifti.img, mpr-2.nifti.hdr, ...
      oasis_longitudinal_demographics*.csv       (or .xlsx where openpyxl is installed; also oasis_longitudinal.csv)

The table's columns: Subject ID, MRI ID, Group, Visit, MR Delay (days since the first visit), M/F, Age, CDR, ... The
three or four acquisitions of a visit are scans of one session. A header without orientation is read as sagittal: the
first axis to the front, the second up, the third to the left, as OASIS-1 stores its raw volumes (no header of OASIS-2
was at hand to confirm it).
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.readers.tables import LayoutError, all_there, known, number, one_table, rows_of, sex_and_age
from models.cohorts.readers.volumes import spacing_mm, volume

DATASET = "OASIS-2"
TABLES = ("oasis_longitudinal*.csv", "oasis_longitudinal*.csv.gz", "oasis_longitudinal*.xlsx")
VISIT = re.compile(r"(OAS2_\d{4})_MR(\d+)")
ACQUISITION = re.compile(r"mpr-(\d+)\.(?:nifti\.hdr|nifti\.nii|nifti\.nii\.gz|nii|nii\.gz)")
SAGITTAL = np.array([[0, 0, -1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]], np.float64)


def read_oasis2(folder: Path, *, allow_missing: bool = False) -> Cohort:
    """Scans with day, sex, age_band, diagnosis (the table's Group) and cdr. Raises LayoutError."""
    path = one_table(folder, TABLES, DATASET)
    rows = {row["MRI ID"]: row for row in rows_of(path, ("Subject ID", "MRI ID", "Group", "MR Delay", "M/F", "Age"))}
    found = {visit.name: visit for visit in sorted(folder.rglob("OAS2_*_MR*")) if VISIT.fullmatch(visit.name)}
    files = {
        name: [path for path in sorted((visit / "RAW").glob("mpr-*")) if ACQUISITION.fullmatch(path.name)]
        for name, visit in found.items()
    }
    absent = [f"{name}/RAW/mpr-1.nifti.hdr" for name in sorted({*rows, *found}) if not files.get(name)]
    all_there(DATASET, absent, allow_missing=allow_missing)
    scans = [_scan(name, path, rows.get(name, {})) for name in sorted(files) for path in files[name]]
    if not scans:
        raise LayoutError("OASIS-2: no OAS2_0001_MR1/RAW/mpr-1.nifti.hdr or its like; unpack OAS2_RAW_PART1 here")
    return Cohort("oasis-2", tuple(scans))


def _scan(visit: str, path: Path, row: dict[str, str]) -> Scan:
    subject, number_of_visit = visit.rsplit("_", 1)
    attributes = sex_and_age(row.get("M/F"), number(row.get("Age"))) | {"sequence": "T1"}
    attributes |= {
        key: value for key, column in (("diagnosis", "Group"), ("cdr", "CDR")) if (value := known(row.get(column)))
    }
    return Scan(
        name=f"{visit}_{path.name.split('.')[0]}",
        subject=subject,
        session=number_of_visit,
        load=partial(volume, path, SAGITTAL),
        day=number(row.get("MR Delay")),
        spacing_mm=spacing_mm(path, SAGITTAL),
        attributes=attributes,
    )
