"""CheXpert (Irvin et al. 2019): chest films of Stanford with labels that may be uncertain.

    FOLDER/                                     (CheXpert-v1.0 or CheXpert-v1.0-small)
      train.csv, valid.csv, test.csv            (those that are there; .csv.gz too)
      train/patient00001/study1/view1_frontal.jpg

Columns: Path, Sex, Age, Frontal/Lateral, AP/PA, then 14 labels: 1 present, 0 absent, -1 uncertain, empty not mentioned.
Path starts with the data set's own folder, whatever FOLDER is called. Studies are numbered, without dates.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.readers.pictures import grey
from models.cohorts.readers.tables import (
    LayoutError,
    all_there,
    certain,
    known,
    maybe_table,
    number,
    rows_of,
    sex_and_age,
)

LABELS = (
    "No Finding",
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
)
SPLITS = ("train", "valid", "test")
PLACE = re.compile(r"(?:.*/)?((?:train|valid|test)/(patient\d+)/(study\d+)/[^/]+)")


def read_chexpert(folder: Path, *, allow_missing: bool = False) -> Cohort:
    """Scans with sex, age_band, view (AP, PA or lateral), split, finding, uncertain. Raises LayoutError."""
    scans, absent, seen = [], [], False
    for split in SPLITS:
        path = maybe_table(folder, (f"{split}.csv", f"{split}.csv.gz"))
        if path is None:
            continue
        seen = True
        for line, row in enumerate(rows_of(path, ("Path",)), start=2):
            place = PLACE.fullmatch(row["Path"].replace("\\", "/"))
            if place is None:
                raise LayoutError(
                    f"{path.name}, line {line}: the path is not like train/patient00001/study1/view1_frontal.jpg"
                )
            picture = folder / place[1]
            if picture.is_file():
                scans.append(_scan(picture, place, row, split))
            else:
                absent.append(place[1])
    if not seen:
        raise LayoutError(
            "CheXpert: the folder has no train.csv, valid.csv or test.csv; give the folder that holds them"
        )
    all_there("CheXpert", absent, allow_missing=allow_missing)
    return Cohort("chexpert", tuple(scans))


def _scan(picture: Path, place: re.Match[str], row: dict[str, str], split: str) -> Scan:
    attributes = sex_and_age(row.get("Sex"), number(row.get("Age"))) | {"split": split} | certain(row, LABELS)
    view = "lateral" if row.get("Frontal/Lateral") == "Lateral" else known(row.get("AP/PA"))
    if view:
        attributes["view"] = view
    return Scan(
        name=place[1],
        subject=place[2],
        session=place[3],
        load=partial(grey, picture),
        site="Stanford",
        attributes=attributes,
    )
