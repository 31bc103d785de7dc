"""BraTS 2020 and 2021 (Menze et al. 2015; Baid et al. 2021): gliomas, four sequences on one grid, skull-stripped.

    FOLDER/**/BraTS20_Training_001/BraTS20_Training_001_{t1,t1ce,t2,flair,seg}.nii      (2020; .nii.gz too)
    FOLDER/**/BraTS2021_00000/BraTS2021_00000_{t1,t1ce,t2,flair,seg}.nii.gz             (2021)
    FOLDER/**/name_mapping.csv, survival_info.csv                                        (2020, optional)

name_mapping.csv gives the grade (HGG, LGG) and, in the names of earlier years, the site; survival_info.csv the age.
Validation folders have no seg, hence no masks. BraTS20_Training_355 comes with a seg of another name
(W39_1998.09.19_Segm.nii), which is taken.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.readers.tables import LayoutError, all_there, known, number, rows_of, sex_and_age
from models.cohorts.readers.volumes import mask, spacing_mm, volume

CASE = re.compile(r"BraTS20_(?:Training|Validation)_\d{3}|BraTS2021_\d{5}")
SEQUENCES = {"t1": "T1", "t1ce": "T1ce", "t2": "T2", "flair": "FLAIR"}
PARTS: dict[str, tuple[int, ...]] = {  # labels of seg
    "tumour": (1, 2, 4),
    "necrosis": (1,),
    "oedema": (2,),
    "enhancing": (4,),
}
EARLIER = ("BraTS_2019_subject_ID", "BraTS_2018_subject_ID", "BraTS_2017_subject_ID")
SITE = re.compile(r"Bra[tT][sS]1\d_([A-Za-z]+|\d{4})\d*_")


def read_brats(folder: Path, *, allow_missing: bool = False) -> Cohort:
    """A scan for each sequence, one session; masks tumour, necrosis, oedema, enhancing. Raises LayoutError."""
    if not folder.is_dir():
        raise LayoutError(f"BraTS: there is no folder {folder.name}")
    named = [case for case in sorted(folder.rglob("BraTS20*")) if case.is_dir() and CASE.fullmatch(case.name)]
    cases = list({case.name: case for case in reversed(named)}.values())[::-1]  # of two copies the first
    if not cases:
        raise LayoutError(
            "BraTS: no folder like BraTS20_Training_001 or BraTS2021_00000; give the folder that holds them"
        )
    sites, facts = _facts(folder)
    absent: list[str] = []
    scans = [
        scan for case in cases for scan in _scans(case, sites.get(case.name, ""), facts.get(case.name, {}), absent)
    ]
    all_there("BraTS", absent, allow_missing=allow_missing)
    return Cohort("brats", tuple(scans))


def _scans(case: Path, site: str, facts: dict[str, str], absent: list[str]) -> list[Scan]:
    out = []
    seg = _one(case, f"{case.name}_seg")
    if seg is None:  # case 355
        seg = next((path for path in sorted(case.glob("*_[Ss]egm*.nii*")) if not path.name.startswith(".")), None)
    if seg is None and "Training" in case.name:
        absent.append(f"{case.name}_seg.nii")
    parts = {name: partial(mask, seg, partial(_labelled, labels)) for name, labels in PARTS.items()} if seg else {}
    for ending, sequence in SEQUENCES.items():
        path = _one(case, f"{case.name}_{ending}")
        if path is None:
            absent.append(f"{case.name}_{ending}.nii")
            continue
        out.append(
            Scan(
                name=f"{case.name}_{ending}",
                subject=case.name,
                session="1",
                load=partial(volume, path),
                day=0.0,
                site=site,
                spacing_mm=spacing_mm(path),
                attributes={"sequence": sequence, "diagnosis": "glioma", **facts},
                masks=parts,
            )
        )
    return out


def _labelled(labels: tuple[int, ...], stored: NDArray[np.generic]) -> NDArray[np.bool_]:
    return np.isin(np.round(stored), labels)


def _one(case: Path, stem: str) -> Path | None:
    return next((path for suffix in (".nii.gz", ".nii") if (path := case / f"{stem}{suffix}").is_file()), None)


def _facts(folder: Path) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Sites and attributes by case."""
    sites: dict[str, str] = {}
    facts: dict[str, dict[str, str]] = {}
    for path in sorted(folder.rglob("name_mapping*.csv*")):
        for row in rows_of(path, ("BraTS_2020_subject_ID",)):
            case = row["BraTS_2020_subject_ID"]
            if grade := known(row.get("Grade")):
                facts.setdefault(case, {})["grade"] = grade
            named = next((m for column in EARLIER if (m := SITE.match(row.get(column, "")))), None)
            if named:
                sites[case] = named[1]
    for path in sorted(folder.rglob("survival_*.csv*")):
        for row in rows_of(path, ()):
            case = row.get("Brats20ID") or row.get("BraTS20ID") or ""
            facts.setdefault(case, {}).update(sex_and_age(None, number(row.get("Age"))))
    return sites, facts
