"""Masks that are wrong by a known Dice, and what is counted as erased and as left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.lesion_masks import LEVELS, figures, lost_and_left, shifted, shrunk
from bench.lesion_released import Released
from models.lesion_anonymiser import LesionStudy
from models.lesion_segmenter import dice

SHAPE, MM = (24, 24, 24), (3.0, 2.0, 2.0)


def ball() -> np.ndarray:
    grid = np.stack(np.meshgrid(*(np.arange(n) - 12 for n in SHAPE), indexing="ij"), -1) * MM
    return np.asarray((grid**2).sum(-1) < 15**2)


@pytest.mark.parametrize("level", LEVELS)
def test_degraded_masks_have_the_dice_that_they_say(level: float) -> None:
    mask = ball()
    small = shrunk(mask, MM, level)
    assert dice(small, mask) == pytest.approx(level, abs=0.002)
    assert not (small & ~mask).any()
    for seed in range(4):
        moved = shifted(mask, MM, level, seed)
        assert dice(moved, mask) == pytest.approx(level, abs=0.03)
        assert moved.sum() == pytest.approx(mask.sum(), rel=0.05)


def test_erased_is_counted_in_the_true_lesion_and_left_in_the_rest_of_the_head() -> None:
    volume = np.ones((2, 2, 4), np.float32)
    lesion, head = np.zeros(volume.shape, np.bool_), np.ones(volume.shape, np.bool_)
    lesion[0], head[1, 1] = True, False  # 8 voxels of lesion, 4 of head beside it
    study = LesionStudy({"T1": volume, "T2": volume.copy()}, lesion, (1.0, 1.0, 1.0), "HGG")
    t1, t2 = volume.copy(), volume.copy()
    t1[0, 0, 0] = t2[0, 0, 1] = 2  # two of eight, each in one sequence
    t1[1, 0, :3] = 2  # three of four
    made = Released("P", study, study, head, {"T1": t1, "T2": t2}, lesion, head, {"seam": 1.0})
    assert lost_and_left(study, made) == (0.25, 0.25)
    told = figures([made, replace(made, volumes=dict(study.volumes))], held=3)
    assert (told["people"], told["held"]) == (2, 3)
    assert (told["lesion erased"], told["lesion erased, worst"]) == (0.125, 0.25)
    assert told["background left"] == (0.25 + 1) / 2
