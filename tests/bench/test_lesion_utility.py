"""The figures of bench.lesion on arrays whose answer is known: overlap, who learns on what, who is found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import bench.lesion_utility
from bench.lesion_linkage import linked
from bench.lesion_released import Released
from bench.lesion_utility import WINDOW, Slices, arm_of, around_lesion, classification, mean_iou, segmentation
from models.lesion_anonymiser import LesionStudy

SHAPE = (3, 16, 16)


def released(number: int, kind: str) -> Released:
    """A real volume of `number` hundredths, a released one of 50 more."""
    lesion = np.zeros(SHAPE, np.bool_)
    lesion[1, 4:8, 4:8] = True
    study = LesionStudy({"T1": np.full(SHAPE, number / 100, np.float32)}, lesion, (1.0, 1.0, 1.0), kind)
    made = {"T1": np.full(SHAPE, (50 + number) / 100, np.float32)}
    return Released(f"P{number}", study, study, np.ones(SHAPE, np.bool_), made, lesion, lesion, {})


def test_overlap_is_averaged_over_both_classes_then_people() -> None:
    true, marked = torch.zeros(2, 2, 2, dtype=torch.bool), torch.zeros(2, 2, 2, dtype=torch.bool)
    true[0, 0] = True  # 2 of 4 pixels; 1 of them is marked
    marked[0, 0, 0] = True
    first = (1 / 2 + 2 / 3) / 2
    assert mean_iou(marked, true, torch.tensor([0, 1])) == pytest.approx((first + 1) / 2)


def test_halves_share_nobody_and_hold_both_grades() -> None:
    learners = [released(number, "HGG" if number < 4 else "LGG") for number in range(8)]

    def values(arm: str) -> list[int]:
        return sorted({round(100 * float(one)) for one in arm_of(arm, learners).x.flatten(1)[:, 0]})

    assert values("real") == list(range(8))
    assert values("half_real") == [0, 2, 4, 6]
    assert values("mixed") == [0, 2, 4, 6, 51, 53, 55, 57]
    assert values("anonymised") == list(range(50, 58))
    assert set(arm_of("half_real", learners).grade.tolist()) == {0, 1}


def squares(people: int, generator: torch.Generator) -> Slices:
    """A bright square is the lesion; it is brighter in grade 1."""
    person = torch.arange(people).repeat_interleave(3)
    grade = person % 2
    x = 0.05 * torch.randn(len(person), 1, 16, 16, generator=generator)
    lesion = torch.zeros(len(person), 16, 16, dtype=torch.bool)
    lesion[:, 4:10, 5:11] = True
    x[:, 0][lesion] += (0.6 + 0.4 * grade).repeat_interleave(36)
    return Slices(x.half(), lesion, grade, person)


def test_a_lesion_that_is_plain_to_see_is_learned() -> None:
    generator = torch.Generator().manual_seed(0)
    learned, judged = squares(8, generator), squares(4, generator)
    ticks: list[None] = []
    found = segmentation(learned, judged, 40, 1, lambda: ticks.append(None))
    assert found["miou"] > 0.8
    assert len(ticks) == 40


def test_people_are_judged_by_the_mean_of_the_slices_that_show_a_lesion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that tells a grade by the brightest pixel, against squares of 0.6 (grade 0) and 1.0 (grade 1)."""

    class Brightness(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            brightest = x.flatten(1).amax(1)
            return torch.stack([torch.full_like(brightest, 0.9), brightest], 1)

    monkeypatch.setattr(bench.lesion_utility, "fitted", lambda *_: Brightness())
    judged = squares(4, torch.Generator().manual_seed(0))
    judged.x[0] += 1  # one slice of a person of grade 0 is taken for grade 1
    judged.lesion[2] = False  # another one shows no lesion, and is not asked
    told = classification(judged, judged, 1, 1, lambda: None)
    assert told["by slice"] == round(10 / 11, 4)
    assert (told["accuracy"], told["people judged"], told["slices learned"]) == (0.75, 4, 11)


def test_the_window_lies_around_the_lesion_and_is_filled_with_zeros() -> None:
    slices = squares(2, torch.Generator().manual_seed(0))
    cut = around_lesion(slices)
    assert cut.x.shape == (6, 1, WINDOW, WINDOW)
    assert [int(one) for one in torch.nonzero(cut.lesion[0]).amin(0)] == [14, 14]  # 6 of 32 pixels, in the middle
    assert torch.equal(cut.x[0, 0][cut.lesion[0]], slices.x[0, 0][slices.lesion[0]])
    assert float(cut.x[:, :, :8].abs().sum()) == 0


def test_a_probe_that_is_its_original_is_found_and_one_that_is_nobody_is_not() -> None:
    generator = np.random.default_rng(0)
    gallery = generator.normal(size=(60, 30)).astype(np.float32)
    assert linked(gallery, gallery)["rank1"] == 1
    stranger = linked(generator.normal(size=(60, 30)).astype(np.float32), gallery)
    assert stranger["rank1"] < 0.1
    assert stranger["d_sys"] <= stranger["d_sys upper"]
