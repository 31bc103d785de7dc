"""REFUGE2 (Fang et al. 2022; Orlando et al. 2020): fundus pictures with disc and cup outlined, some with glaucoma.

    FOLDER/
      Train/REFUGE1-train/Training400/{Glaucoma,Non-Glaucoma}/g0001.jpg
                          Disc_Cup_Masks/{Glaucoma,Non-Glaucoma}/g0001.bmp
      Train/REFUGE1-val/REFUGE-Validation400/V0001.jpg   Disc_Cup_Masks/V0001.bmp   Fovea_locations.csv (Glaucoma Label)
      Train/REFUGE1-test/Test400/T0001.jpg               Disc_Cup_Masks/T0001.bmp
                          Glaucoma_label_and_Fovea_location.csv (Label(Glaucoma=1))
      Validation/Images/V0001.jpg    Disc_Masks/V0001.png    glaucoma.csv (FileName, Glaucoma Risk)
      Test/refuge2-test/T0001.jpg    Disc_Mask/T0001.png     task1.csv (no header: file, label)

Parts may be absent. Also the layout of REFUGE 2018 (Training400, Annotation-Training400/Disc_Cup_Masks,
REFUGE-Validation400, REFUGE-Validation400-GT, Test400 or REFUGE-Test400, REFUGE-Test-GT). Masks hold 0 in the cup, 128
in the rim of the disc, 255 elsewhere. The owners give some tables as spreadsheets; save them as CSV where openpyxl is
not installed. One picture a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.readers.pictures import SUFFIXES, colour, grey, values
from models.cohorts.readers.tables import LayoutError, all_there, lines_of, maybe_table, number

CUP, RIM, ELSEWHERE = 0, 128, 255
GROUPS = ("Glaucoma", "Non-Glaucoma")
NAMES, LABELS = ("ImgName", "FileName"), ("Glaucoma Label", "Label(Glaucoma=1)", "Glaucoma Risk")


@dataclass(frozen=True, slots=True)
class Part:
    """Folders of one part: pictures, masks, and the table of labels ("" for labels by folder)."""

    split: str
    pictures: str
    masks: str
    table: str = ""


T, V, E = "Train/REFUGE1-train", "Train/REFUGE1-val", "Train/REFUGE1-test"
V_TABLE, E_TABLE = "Fovea_locations", "Glaucoma_label_and_Fovea_location"
PARTS = (
    Part("train", f"{T}/Training400", f"{T}/Disc_Cup_Masks"),
    Part("train", "Training400", "Annotation-Training400/Disc_Cup_Masks"),
    Part("validation-2018", f"{V}/REFUGE-Validation400", f"{V}/Disc_Cup_Masks", f"{V}/{V_TABLE}"),
    Part(
        "validation-2018",
        "REFUGE-Validation400",
        "REFUGE-Validation400-GT/Disc_Cup_Masks",
        f"REFUGE-Validation400-GT/{V_TABLE}",
    ),
    Part("test-2018", f"{E}/Test400", f"{E}/Disc_Cup_Masks", f"{E}/{E_TABLE}"),
    Part("test-2018", "Test400", "REFUGE-Test-GT/Disc_Cup_Masks", f"REFUGE-Test-GT/{E_TABLE}"),
    Part("test-2018", "REFUGE-Test400", "REFUGE-Test-GT/Disc_Cup_Masks", f"REFUGE-Test-GT/{E_TABLE}"),
    Part("validation", "Validation/Images", "Validation/Disc_Masks", "Validation/glaucoma"),
    Part("test", "Test/refuge2-test", "Test/Disc_Mask", "Test/task1"),
)


def read_refuge2(folder: Path, *, allow_missing: bool = False) -> Cohort:
    """Scans with finding ("glaucoma" or "none") and split; masks disc (with its cup) and cup. Raises LayoutError.

    `allow_missing` takes pictures without masks, and without labels where a table cannot be read.
    """
    scans: list[Scan] = []
    absent: list[str] = []
    for part in PARTS:
        if (folder / part.pictures).is_dir():
            labels = _labels(folder, part, allow_missing=allow_missing)
            pictures = [
                path
                for path in sorted((folder / part.pictures).rglob("*"))
                if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
            ]
            scans += [_scan(path, folder, part, labels, absent) for path in pictures]
    if not scans:
        raise LayoutError(
            "REFUGE2: no pictures in Train/REFUGE1-train/Training400 or its like; give the folder that holds Train"
        )
    all_there("REFUGE2", absent, allow_missing=allow_missing)
    return Cohort("refuge2", tuple(scans))


def _scan(path: Path, folder: Path, part: Part, labels: dict[str, float | None], absent: list[str]) -> Scan:
    group = path.parent.name if path.parent.name in GROUPS else ""
    glaucoma = float(group == "Glaucoma") if group else labels.get(path.stem)
    places = [folder / part.masks / group / f"{path.stem}{suffix}" for suffix in (".bmp", ".png")]
    mask = next((place for place in places if place.is_file()), None)
    if mask is None:
        absent.append(places[0].relative_to(folder).as_posix())
    attributes = {"split": part.split}
    if glaucoma in (0, 1):
        attributes["finding"] = "glaucoma" if glaucoma else "none"
    return Scan(
        name=f"{part.split}/{path.name}",
        subject=f"{part.split}-{path.stem}",
        session="1",
        load=partial(grey, path),
        attributes=attributes,
        masks={"disc": partial(_mask, mask, RIM), "cup": partial(_mask, mask, CUP)} if mask else {},
        load_colour=partial(colour, path),
    )


def _mask(path: Path, most: int) -> NDArray[np.bool_]:
    stored = values(path)
    if not np.isin(stored, (CUP, RIM, ELSEWHERE)).all():
        raise LayoutError(f"{path.name} is no mask of REFUGE: it holds values other than 0 (cup), 128 (rim), 255")
    return np.asarray(stored <= most, np.bool_)


def _labels(folder: Path, part: Part, *, allow_missing: bool) -> dict[str, float | None]:
    if not part.table:
        return {}
    stem = Path(part.table)
    if not (folder / stem.parent).is_dir():
        return {}
    table = maybe_table(
        folder / stem.parent, [f"{stem.name}{suffix}" for suffix in (".csv", ".csv.gz", ".xlsx", ".xls")]
    )
    if table is None:
        return {}
    try:
        lines = lines_of(table)
    except LayoutError:
        if allow_missing:
            return {}
        raise
    head = lines[0] if lines else []
    name = next((head.index(column) for column in NAMES if column in head), None)
    label = next((head.index(column) for column in LABELS if column in head), -1)
    body = lines if name is None else lines[1:]  # without a header the first line is a picture too
    return {Path(line[name or 0]).stem: number(line[label]) for line in body if len(line) >= len(head)}
