"""MIRIAD (Malone et al. 2013): 46 people with Alzheimer's disease and 23 without, T1 MRI at up to nine visits.

    FOLDER/**/miriad_188_AD_M_01_MR_1.nii          (or .nii.gz, in any depth)

The name holds subject, group (AD or HC), sex, visit and acquisition: back-to-back acquisitions of a visit are scans of
one session. The names give neither dates nor ages, so `day` and the age band stay unknown.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.readers.tables import LayoutError
from models.cohorts.readers.volumes import spacing_mm, volume

NAME = re.compile(r"(miriad_\d+)_(AD|HC)_([MF])_(\d+)_MR_(\d+)\.nii(?:\.gz)?", re.IGNORECASE)
GROUPS = {"AD": "Alzheimer's disease", "HC": "healthy control"}


def read_miriad(folder: Path) -> Cohort:
    """Scans with sex and diagnosis. Other files are left alone. Raises LayoutError, also for a person of two sexes."""
    found: dict[str, tuple[re.Match[str], Path]] = {}
    for path in sorted(folder.rglob("*.nii*")):
        match = NAME.fullmatch(path.name)
        if match and path.is_file():
            found.setdefault(path.name.split(".")[0], (match, path))  # packed and unpacked copies are one scan
    if not found:
        raise LayoutError(
            "MIRIAD: no file like miriad_188_AD_M_01_MR_1.nii in the folder; give the folder that holds them"
        )
    facts: dict[str, tuple[str, str]] = {}
    for match, path in found.values():
        said = (match[2].upper(), match[3].upper())
        if facts.setdefault(match[1].lower(), said) != said:
            raise LayoutError(f"MIRIAD: {path.name} gives its person another group or sex than another file does")
    return Cohort("miriad", tuple(_scan(match, path) for match, path in found.values()))


def _scan(match: re.Match[str], path: Path) -> Scan:
    return Scan(
        name=path.name.split(".")[0],
        subject=match[1].lower(),
        session=match[4],
        load=partial(volume, path),
        spacing_mm=spacing_mm(path),
        attributes={"sex": match[3].upper(), "diagnosis": GROUPS[match[2].upper()], "sequence": "T1"},
    )
