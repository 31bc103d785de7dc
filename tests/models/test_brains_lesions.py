"""Lesions of synthetic brains: where they lie, how they grow, what takes up contrast."""

from __future__ import annotations

import numpy as np
import pytest

from models.cohorts import Scan, synthetic_brains

EACH = ("healthy", "HGG", "LGG", "MS")


def scans_of(diagnosis: str, sessions: int = 1, **more: object) -> list[Scan]:
    shares = {name: float(name == diagnosis) for name in EACH}
    return list(synthetic_brains(1, sessions, 9, "easy", diagnoses=shares, spacing_mm=4.0, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("diagnosis", ["healthy", "HGG", "LGG", "MS"])
def test_lesions_lie_in_the_brain_and_the_brain_in_the_head(diagnosis: str) -> None:
    scan = scans_of(diagnosis)[0]
    masks = {name: mask() for name, mask in scan.masks.items()}
    assert masks["lesion"].any() == (diagnosis != "healthy")
    assert masks["lesion"].dtype == np.bool_
    assert masks["lesion"].shape == scan.load().shape
    assert not (masks["lesion"] & ~masks["brain"]).any()
    assert not (masks["brain"] & ~masks["head"]).any()
    if "core" in masks:
        assert not (masks["core"] & ~masks["lesion"]).any()
        assert masks["core"].any()


def test_a_high_grade_glioma_grows_faster_than_a_low_grade_one() -> None:
    def growth(diagnosis: str) -> float:
        scans = scans_of(diagnosis, sessions=3)
        return float(scans[2].masks["lesion"]().sum() / scans[0].masks["lesion"]().sum())

    assert growth("HGG") > 1.25 * growth("LGG") > 1.0


def test_the_rim_of_a_high_grade_glioma_takes_up_contrast_and_a_low_grade_one_does_not() -> None:
    def brighter(diagnosis: str) -> float:
        plain, contrast = scans_of(diagnosis, sequences=("T1", "T1c"))
        core = plain.masks["core"]()
        return float((contrast.load()[core] - plain.load()[core]).max())

    assert brighter("HGG") > 0.2
    assert brighter("LGG") < 0.12


def test_plaques_are_small_many_and_more_with_the_years() -> None:
    from scipy.ndimage import label

    scans = list(synthetic_brains(1, 6, 9, "easy", diagnoses={"MS": 1.0}, spacing_mm=2.0))
    first, last = scans[0].masks["lesion"](), scans[5].masks["lesion"]()
    assert label(first)[1] >= 4
    assert first.sum() * 8 < 40_000  # mm3
    assert last.sum() > first.sum()
