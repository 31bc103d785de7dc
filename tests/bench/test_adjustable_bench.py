"""What bench.adjustable compares with and measures by: oracles for baselines, attackers that succeed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage

from bench.adjustable_baselines import Mae, blurred, filled, noised, random_patches
from bench.adjustable_measures import Attackers, Frozen
from bench.adjustable_readers import HOGS, Reader, linear_of
from models.cohorts import synthetic_chest
from models.train.reid_material import Material, gathered


@pytest.fixture(autouse=True)
def _still() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)


def people(count: int, seed: int) -> Material:
    cohort = synthetic_chest(count, 2, seed, difficulty=0.2)
    return gathered([cohort], ("effusion",), 64, lambda *_: None)


def test_the_blur_is_a_gaussian_with_the_edge_repeated() -> None:
    x = torch.rand(2, 1, 64, 64)
    oracle = np.stack([ndimage.gaussian_filter(one[0].numpy(), 2.0, mode="nearest", truncate=3.0) for one in x])
    np.testing.assert_allclose(blurred(x, 2.0)[:, 0], oracle, atol=1e-5)


def test_noise_has_its_spread_and_stays_within_the_range() -> None:
    x = torch.full((4, 1, 64, 64), 0.5)
    assert (noised(x, 0.05, 1) - x).std().item() == pytest.approx(0.05, rel=0.05)
    assert torch.equal(noised(x, 1.0, 1), noised(x, 1.0, 1))
    assert 0 <= noised(x, 3.0, 1).min() <= noised(x, 3.0, 1).max() <= 1


def test_patches_are_hidden_in_exactly_the_share_and_only_those_are_filled() -> None:
    hidden = random_patches(5, 0.3, torch.Generator().manual_seed(0))
    assert hidden.flatten(1).sum(1).tolist() == [19] * 5  # of 64
    mae, x = Mae().eval(), torch.rand(5, 1, 64, 64)
    made = mae(x, hidden)
    where = hidden.repeat_interleave(8, 1).repeat_interleave(8, 2)[:, None]
    assert torch.equal(made[~where], x[~where])
    other = torch.where(where, torch.rand_like(x), x)
    assert torch.equal(mae(other, hidden), made)  # what is hidden is not seen
    assert filled(mae, x, 0.8).shape == x.shape


def test_the_attackers_find_people_on_their_originals_and_nobody_on_noise() -> None:
    auxiliary, judged = people(24, 31), people(32, 32)
    attackers = Attackers.of(Frozen(), auxiliary, judged)
    same, seen = attackers.rank1(auxiliary.x.float(), judged.x.float())
    assert same["other visit"]["rank1"] > 0.3
    assert same["same scan"]["rank1"] > 0.95
    assert seen.shape[0] == 64
    nothing = [torch.rand(len(one), 1, 64, 64) for one in (auxiliary, judged)]
    lost, _ = attackers.rank1(*nothing)
    assert lost["other visit"]["rank1"] < 0.15
    assert set(lost["other visit"]) == {
        "linear, retrained", "linear, frozen", "network, frozen", "worst", "rank1", "upper",
    }  # fmt: skip


def test_the_reader_of_findings_reads_what_it_learnt_and_not_noise() -> None:
    fitted = people(60, 33)
    shown = fitted.findings[:, 0] > 0.5
    marked = fitted.x.float()
    marked[shown, :, 40:56, 8:24] = 1.0  # a finding that anybody can see
    fitted = Material(marked.half(), fitted.who, fitted.findings, fitted.names, fitted.people)
    features = linear_of(marked)[:, -HOGS:]
    reader = Reader(features, fitted)
    found = reader.auroc(features, fitted)
    assert found.value > 0.95
    told = found.told("auroc")
    assert told["low"] <= told["auroc"] <= told["high"] + 0.02
    assert reader.auroc(linear_of(torch.rand_like(marked))[:, -HOGS:], fitted).value < 0.8
