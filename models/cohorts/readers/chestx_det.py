"""ChestX-Det (Lian et al. 2021): films of NIH ChestX-ray14 with 13 findings outlined by radiologists.

    FOLDER/
      ChestX_Det_train.json, ChestX_Det_test.json       (one or both)
      train_data/36204.png, test_data/...               (the unpacked archives; train/ and train_data/train/ too)

Each entry: {"file_name", "syms": [names], "boxes": [[x1, y1, x2, y2]], "polygons": [[[x, y], ...]]}, polygons in pixels
of the picture, one for each name. Names of films that keep NIH's form, 00000042_006.png, give person and visit; the
others say nothing of the person, so each is a person of its own.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.readers.pictures import grey, polygons_on
from models.cohorts.readers.tables import LayoutError, all_there

NIH = re.compile(r"(\d{8})_(\d{3})")


def read_chestx_det(folder: Path, *, allow_missing: bool = False) -> Cohort:
    """Scans with finding ("|" between several) and split; a mask for each finding, "pleural_thickening" and so on."""
    scans, absent, seen = [], [], False
    for split in ("train", "test"):
        table = folder / f"ChestX_Det_{split}.json"
        if not table.is_file():
            continue
        seen = True
        places = [folder / f"{split}_data", folder / split, folder / f"{split}_data" / split]
        for number, entry in enumerate(_entries(table), start=1):
            name, shapes = _checked(entry, f"{table.name}, entry {number}")
            picture = next((place / name for place in places if (place / name).is_file()), None)
            if picture is None:
                absent.append(f"{split}_data/{name}")
            else:
                scans.append(_scan(picture, shapes, split))
    if not seen:
        raise LayoutError(
            "ChestX-Det: no ChestX_Det_train.json or ChestX_Det_test.json; give the folder that holds them"
        )
    all_there("ChestX-Det", absent, allow_missing=allow_missing)
    return Cohort("chestx-det", tuple(scans))


def _entries(table: Path) -> list[Any]:
    try:
        found = json.loads(table.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LayoutError(f"{table.name} cannot be read as JSON ({type(error).__name__}); fetch it again") from error
    if not isinstance(found, list):
        raise LayoutError(f"{table.name} is not a list of films")
    return found


def _checked(entry: Any, where: str) -> tuple[str, dict[str, list[Any]]]:
    """File name, and polygons by finding."""
    try:
        name, syms, polygons = str(entry["file_name"]), list(entry["syms"]), list(entry["polygons"])
        if Path(name).name != name or len(syms) != len(polygons):
            raise ValueError("names and polygons differ")
        shapes: dict[str, list[Any]] = {}
        for sym, polygon in zip(syms, polygons, strict=True):
            shapes.setdefault(str(sym), []).append([(float(x), float(y)) for x, y in polygon])
    except (KeyError, TypeError, ValueError) as error:
        raise LayoutError(f"{where}: not a film with file_name, syms and as many polygons") from error
    return name, shapes


def _scan(picture: Path, shapes: dict[str, list[Any]], split: str) -> Scan:
    nih = NIH.fullmatch(picture.stem)
    return Scan(
        name=picture.name,
        subject=nih[1] if nih else picture.stem,
        session=nih[2] if nih else "1",
        load=partial(grey, picture),
        site="NIH",
        attributes={"finding": "|".join(shapes) or "No Finding", "split": split},
        masks={
            sym.lower().replace(" ", "_"): partial(polygons_on, picture, polygons) for sym, polygons in shapes.items()
        },
    )
