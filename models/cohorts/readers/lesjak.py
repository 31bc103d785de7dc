"""Lesjak's longitudinal multiple sclerosis set (Lesjak et al. 2016), as a folder with manifest.csv.

    FOLDER/manifest.csv                                         (see models/cohorts/manifest.py)
    FOLDER/lesjak_long/P01_study1_{T1W,T2W,FLAIR}.nii.gz        native space
      P01_common_{brainmask,lesion_change}.nii.gz               on a grid common to both visits
      P01_study1_FLAIR_to_common_space.txt                      ITK affine transforms of the owners
      P01_study1_{T1W,T2W}_intrastudy_to_FLAIR.txt

The masks lie on another grid than the scans: they are carried to each scan by the owners' transforms, nearest voxel.
An ITK transform "A to B" maps points of B to points of A, in mm to the left, back and up; here its inverse is used.
"lesion_change" marks what changed between the visits, not all lesions.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.cohorts.cohort import Cohort, Scan
from models.cohorts.manifest import read_manifest
from models.cohorts.readers.tables import LayoutError

NAME = re.compile(r"(P\d+)_(study\d+)_(T1W|T2W|FLAIR)\.nii(?:\.gz)?")
MASKS = {"brain": "brainmask", "lesion_change": "lesion_change"}
TO_LPS = np.diag([-1.0, -1.0, 1.0, 1.0])  # NIfTI counts to the right and front, ITK to the left and back


def read_lesjak_longitudinal(folder: Path) -> Cohort:
    """Scans with day, sex, age_band, sequence, finding; masks brain and lesion_change where the owners' files are."""
    cohort = read_manifest(folder, "lesjak-longitudinal")
    return replace(cohort, scans=tuple(_with_masks(folder, scan) for scan in cohort))


def _with_masks(folder: Path, scan: Scan) -> Scan:
    path = folder / scan.name
    name = NAME.fullmatch(path.name)
    if name is None:
        return scan
    steps = [path.with_name(f"{name[1]}_{name[2]}_FLAIR_to_common_space.txt")]
    if name[3] != "FLAIR":
        steps.insert(0, path.with_name(f"{name[1]}_{name[2]}_{name[3]}_intrastudy_to_FLAIR.txt"))
    if not all(step.is_file() for step in steps):
        return scan
    found = {
        key: stored
        for key, part in MASKS.items()
        for stored in [path.with_name(f"{name[1]}_common_{part}.nii.gz")]
        if stored.is_file()
    }
    return replace(
        scan,
        masks=dict(scan.masks) | {key: partial(_carried, stored, path, tuple(steps)) for key, stored in found.items()},
    )


def _carried(stored: Path, path: Path, steps: tuple[Path, ...]) -> NDArray[np.bool_]:
    """The mask on the grid of the scan, axes as in `Scan`."""
    from scipy.ndimage import affine_transform

    from models.cohorts.readers.volumes import canonical_of, opened

    mask, scan = opened(stored), opened(path)
    across = np.eye(4)
    for step in steps:
        across = np.linalg.inv(itk_affine(step)) @ across
    voxels = np.linalg.inv(mask.affine) @ TO_LPS @ across @ TO_LPS @ scan.affine
    there = affine_transform(
        np.asanyarray(mask.dataobj).astype(np.float32),
        voxels[:3, :3],
        voxels[:3, 3],
        output_shape=scan.shape[:3],
        order=0,
    )
    return canonical_of(there > 0, scan.affine, path)


def itk_affine(path: Path) -> NDArray[np.float64]:
    """(4, 4) of a MatrixOffsetTransformBase file: x -> M (x - c) + c + t."""
    text = path.read_text(encoding="ascii")
    numbers = re.search(r"^Parameters:(.*)$", text, re.MULTILINE)
    centre = re.search(r"^FixedParameters:(.*)$", text, re.MULTILINE)
    values = np.array(numbers[1].split(), np.float64) if numbers else np.empty(0)
    if values.shape != (12,) or centre is None or len(centre[1].split()) != 3:
        raise LayoutError(f"{path.name} is no ITK affine transform of three dimensions")
    at = np.array(centre[1].split(), np.float64)
    out = np.eye(4)
    out[:3, :3] = values[:9].reshape(3, 3)
    out[:3, 3] = values[9:] + at - out[:3, :3] @ at
    return out
