"""Figures of a few fixed scans, by which a test notices that the generator has drifted from its frozen calibration."""

from __future__ import annotations

import numpy as np

from models.cohorts.brains import synthetic_brains
from models.cohorts.cohort import Pixels

SEED, SPACING_MM = 20_261, 4.0
TOLERANCE = 0.003  # of intensities from 0 to 1: other processors round otherwise, another generator differs by more


def reference_figures() -> dict[str, list[float]]:
    """By "level scan": mean intensity of the eight octants, standard deviation, 90th percentile, share of lesion."""
    found = {}
    for level in ("easy", "hard"):
        cohort = synthetic_brains(6, 2, SEED, level, sequences=("T1", "FLAIR"), spacing_mm=SPACING_MM)
        for scan in cohort.scans[2::5]:
            lesion = float(scan.masks["lesion"]().mean())
            found[f"{level} {scan.name}"] = [round(one, 4) for one in (*_figures(scan.load()), 100 * lesion)]
    return found


def _figures(volume: Pixels) -> list[float]:
    z, y, x = (n // 2 for n in volume.shape)
    octants = [
        float(volume[part, row, column].mean())
        for part in (slice(z), slice(z, None))
        for row in (slice(y), slice(y, None))
        for column in (slice(x), slice(x, None))
    ]
    return [*octants, float(volume.std()), float(np.percentile(volume, 90))]
