"""Readers of research data sets in the folders that their owners give: a folder in, a `Cohort` out.

Each reader documents the tree that it expects, reads tables and headers at once, and pixels when a scan is loaded. What
is missing is named in a `LayoutError`; a label that is not there, or not certain, is left out and never guessed.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from models.cohorts.cohort import Cohort
from models.cohorts.manifest import read_manifest
from models.cohorts.readers.brats import read_brats
from models.cohorts.readers.chestx_det import read_chestx_det
from models.cohorts.readers.chexpert import read_chexpert
from models.cohorts.readers.eyepacs import read_eyepacs
from models.cohorts.readers.lesjak import read_lesjak_longitudinal
from models.cohorts.readers.mimic_cxr import read_mimic_cxr
from models.cohorts.readers.miriad import read_miriad
from models.cohorts.readers.oasis2 import read_oasis2
from models.cohorts.readers.refuge2 import read_refuge2
from models.cohorts.readers.tables import LayoutError

# By name: the folder -> its people. Most take allow_missing=True, for a part of a data set.
READERS: dict[str, Callable[[Path], Cohort]] = {
    "nih64": partial(read_manifest, dataset="nih-chestxray14"),
    "hannover": partial(read_manifest, dataset="hannover-covid19"),
    "ridb": partial(read_manifest, dataset="RIDB"),
    "lesjak-cross-sectional": partial(read_manifest, dataset="lesjak-cross-sectional"),
    "lesjak-longitudinal": read_lesjak_longitudinal,
    "oasis-2": read_oasis2,
    "miriad": read_miriad,
    "brats": read_brats,
    "mimic-cxr": read_mimic_cxr,
    "chexpert": read_chexpert,
    "chestx-det": read_chestx_det,
    "eyepacs": read_eyepacs,
    "refuge2": read_refuge2,
}

# By name as well: the DICOM modality of what a data set holds, by which cards are chosen for it.
MODALITIES: dict[str, str] = {
    **dict.fromkeys(("nih64", "hannover", "mimic-cxr", "chexpert", "chestx-det"), "DX"),
    **dict.fromkeys(("ridb", "eyepacs", "refuge2"), "OP"),
    **dict.fromkeys(("lesjak-cross-sectional", "lesjak-longitudinal", "oasis-2", "miriad", "brats"), "MR"),
}

__all__ = ["MODALITIES", "READERS", "LayoutError"]
