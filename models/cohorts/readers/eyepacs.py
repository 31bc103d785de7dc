"""EyePACS of Kaggle's diabetic retinopathy detection (2015): both eyes of each person, graded 0 to 4.

    FOLDER/
      trainLabels.csv                             (image, level)
      train/10_left.jpeg, train/10_right.jpeg     (other picture types too)
      retinopathy_solution.csv, test/             (image, level, Usage; optional)

The two eyes of a person are two scans of one session: they are no mates, an eye links to itself only.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.readers.pictures import SUFFIXES, colour, grey
from models.cohorts.readers.tables import LayoutError, all_there, maybe_table, number, one_table, rows_of

DATASET = "EyePACS"
LEVELS = ("No DR", "Mild", "Moderate", "Severe", "Proliferative DR")
NAME = re.compile(r"(\d+)_(left|right)")


def read_eyepacs(folder: Path, *, allow_missing: bool = False) -> Cohort:
    """Scans with eye (L or R), finding (the grade in words) and split. Raises LayoutError."""
    tables = [(one_table(folder, ("trainLabels.csv", "trainLabels.csv.gz"), DATASET), "train")]
    solution = maybe_table(folder, ("retinopathy_solution.csv", "retinopathy_solution.csv.gz"))
    if solution:
        tables.append((solution, "test"))
    scans, absent = [], []
    for table, split in tables:
        pictures = {path.stem: path for path in sorted((folder / split).glob("*_*")) if path.suffix.lower() in SUFFIXES}
        for line, row in enumerate(rows_of(table, ("image", "level")), start=2):
            name = NAME.fullmatch(row["image"])
            if name is None:
                raise LayoutError(f"{table.name}, line {line}: the image is not named like 10_left")
            if row["image"] in pictures:
                scans.append(_scan(pictures[row["image"]], name, row, split))
            else:
                absent.append(f"{split}/{row['image']}.jpeg")
    all_there(DATASET, absent, allow_missing=allow_missing)
    return Cohort("eyepacs", tuple(scans))


def _scan(picture: Path, name: re.Match[str], row: dict[str, str], split: str) -> Scan:
    attributes = {"eye": "L" if name[2] == "left" else "R", "split": split}
    level = number(row["level"])
    if level is not None and level in range(len(LEVELS)):
        attributes["finding"] = LEVELS[int(level)]
    return Scan(
        row["image"],
        name[1],
        "1",
        partial(grey, picture),
        attributes=attributes,
        load_colour=partial(colour, picture),
    )
