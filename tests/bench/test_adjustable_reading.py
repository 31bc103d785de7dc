"""What bench.adjustable reads off films and makes of it: oracles for Dice, BLEU, reports, curves and gains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from bench.adjustable_films import first_visits, outline_of, unseen
from bench.adjustable_fitting import fitted_or_kept
from bench.adjustable_readers import DRAWS, Segmenter, auroc_of, dice, over_people
from bench.adjustable_reports import BleuCounts, Captioner, report, slots_of
from bench.adjustable_rivals import Adversarial, adversarial
from bench.adjustable_summary import NO_SEMANTICS, OURS, ablation, at_risk, curve, draws_file, gain, summary, transfer
from models.cohorts import synthetic_chest


def test_dice_of_masks_that_are_counted_by_hand() -> None:
    told = np.array([[[1, 1], [0, 0]], [[1, 0], [0, 0]], [[0, 0], [0, 0]]], bool)
    said = np.array([[[1, 0], [1, 0]], [[1, 0], [0, 0]], [[1, 0], [0, 0]]], bool)
    np.testing.assert_allclose(dice(said, told), [0.5, 1.0, np.nan])  # 2·1/(2+2); 2·1/(1+1); nothing is told


def test_the_area_is_the_library_s_with_ties() -> None:
    draw = np.random.default_rng(2)
    for _ in range(20):
        told, scores = draw.random(30) < 0.3, draw.integers(0, 8, 30).astype(float)
        told[:2] = (True, False)
        assert auroc_of(told, scores) == pytest.approx(roc_auc_score(told, scores), abs=1e-12)


def test_bleu_is_that_of_its_paper() -> None:
    """Papineni et al. 2002, section 2.1: "the" seven times against the first reference has a precision of 2/7."""
    counts = BleuCounts.of([("the",) * 7], [["the", "cat", "is", "on", "the", "mat"]])
    assert (counts.matched[0, 0], counts.total[0, 0]) == (2, 7)
    assert counts.bleu(np.array([0])) == 0.0  # no row of two is matched
    same = BleuCounts.of([["a", "b", "c", "d", "e"]], [["a", "b", "c", "d", "e"]])
    assert same.bleu(np.array([0])) == pytest.approx(1.0)
    short = BleuCounts.of([["a", "b", "c", "d"]], [["a", "b", "c", "d", "e"]])
    assert short.bleu(np.array([0])) == pytest.approx(np.exp(1 - 5 / 4))  # brevity alone
    both = BleuCounts.of([["a", "b", "c", "d", "e"], ["a", "b", "x", "d", "e"]], [["a", "b", "c", "d", "e"]] * 2)
    precisions = np.array([9 / 10, 6 / 8, 3 / 6, 2 / 4])  # of the corpus, rows of 1 to 4 words
    assert both.bleu(np.array([0, 1])) == pytest.approx(np.exp(np.log(precisions).mean()))


def test_a_report_says_what_the_film_was_drawn_with() -> None:
    for scan in synthetic_chest(12, 1, 5, finding_share=1.0):
        outline = outline_of(scan, 64)
        slots = slots_of(scan, outline)
        words = " ".join(report(slots))
        finding = scan.attributes["finding"]
        assert scan.attributes["view"].lower() in words
        assert ("enlarged" in words) == (finding == "cardiomegaly")
        if finding == "cardiomegaly":
            assert not outline.any()
            assert "lungs are clear" in words
        else:
            assert np.array_equal(outline, scan.masks[finding]())
            right = np.nonzero(outline)[1].mean() < 32
            assert f"{finding} in the {'right' if right else 'left'} lung" in words


def test_the_captioner_says_what_it_learnt() -> None:
    slots = [("PA", "normal", "none", "none", "none"), ("AP", "enlarged", "none", "none", "none")] * 20
    features = np.array([[1.0, 0.0], [0.0, 1.0]] * 20) + 0.01 * np.random.default_rng(0).standard_normal((40, 2))
    captioner = Captioner(
        features, [(*one[:2], "effusion" if n % 2 else "none", *one[3:]) for n, one in enumerate(slots)]
    )
    said = captioner(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert said[0] == report(slots[0])
    assert "enlarged" in said[1]


def test_resampling_is_of_people_and_the_same_each_time() -> None:
    who = np.repeat(np.arange(20), 2)
    value = np.repeat(np.random.default_rng(1).standard_normal(20), 2)
    one, two = (over_people(lambda rows: float(value[rows].mean()), who) for _ in range(2))
    assert np.array_equal(one.draws, two.draws)
    assert len(one.draws) == DRAWS
    assert one.draws.std() == pytest.approx(value.std() / 20**0.5, rel=0.2)  # of 20 people, not of 40 films


def test_visits_and_scanners_are_chosen_by_person() -> None:
    cohort = synthetic_chest(12, 4, 3, sites=6)
    new = unseen(cohort)
    assert {scan.site for scan in new} == {"site-3", "site-4", "site-5"}
    two = first_visits(new, 2)
    assert all(sum(scan.subject == subject for scan in two) == 2 for subject in two.subjects)
    assert len(two) > 4


def test_small_networks_are_kept_and_read_again(tmp_path: Path) -> None:
    def loss(draw: torch.Generator) -> torch.Tensor:
        return network(torch.rand(2, 1, 64, 64, generator=draw)).square().mean()

    torch.manual_seed(0)
    network = Segmenter(8)
    one = fitted_or_kept(network, loss, 2, 1e-3, tmp_path / "one.pt", lambda *_: None)
    again = fitted_or_kept(Segmenter(8), loss, 2, 1e-3, tmp_path / "one.pt", lambda *_: None)
    x = torch.rand(1, 1, 64, 64)
    assert one(x).shape == x.shape
    assert torch.equal(one(x), again(x))


def test_the_adversary_pulls_against_the_picture_by_its_weight() -> None:
    torch.manual_seed(0)
    network, x = Adversarial(2, 8), torch.rand(3, 1, 64, 64)
    made = adversarial(network, x, 0.3)
    assert made.shape == x.shape
    assert 0 <= made.min() <= made.max() <= 1
    assert not torch.equal(made, adversarial(network, x, 1.0))


def point(method: str, level: float, rank1: float, auroc: float, upper: float = 1.0) -> dict[str, Any]:
    attack = {"other visit": {"rank1": rank1, "upper": upper}}
    return {"method": method, "level": level, "attack": attack, "auroc": {"auroc": auroc}}


POINTS = [
    point("original", 0.0, 0.8, 0.9),
    point(OURS, 0.95, 0.3, 0.88),
    point(OURS, 0.2, 0.05, 0.78),
    point("Pixel-Blur", 1.0, 0.4, 0.80),
    point("Pixel-Blur", 8.0, 0.04, 0.56),
    point("MAE", 0.05, 0.7, 0.85),
    point("MAE", 0.8, 0.2, 0.6),
]


def test_utility_is_read_between_two_levels_and_never_beyond_the_curve() -> None:
    ours = at_risk(curve(POINTS, OURS), {}, "auroc", 0.1)
    assert ours.value == pytest.approx(0.78 + 0.10 * (0.1 - 0.05) / 0.25)
    weak = at_risk(curve(POINTS, OURS), {}, "auroc", 0.5)
    assert (weak.value, weak.why) == (None, "no level has a rank-1 of 0.5: its highest is 0.300")
    assert at_risk(curve(POINTS, "MAE"), {}, "auroc", 0.1).why.endswith("its lowest is 0.200")
    begins = at_risk(curve(POINTS, "MAE"), {}, "auroc", 0.75)  # between the original and the weakest level
    assert begins.value == pytest.approx(0.875)
    assert at_risk(curve(POINTS, OURS), {}, "dice", 0.1).why == "not measured"


def test_a_gain_is_over_the_best_that_gets_there_with_the_bound_of_paired_draws() -> None:
    draw = np.random.default_rng(0)
    shared = 0.05 * draw.standard_normal(400)  # hard people are hard for every method
    draws = {
        f"{one['method']}|{one['level']}|auroc": one["auroc"]["auroc"] + shared + 0.001 * draw.standard_normal(400)
        for one in POINTS
    }
    found = gain(POINTS, draws, "auroc", 0.1)
    blur = 0.56 + 0.24 * (0.1 - 0.04) / 0.36
    assert found["over"] == "Pixel-Blur"
    assert found["gain"] == pytest.approx(100 * (0.80 - blur), abs=0.01)
    assert found["gain"] - 0.5 < found["lower"] < found["gain"]
    assert "MAE" in found["not reached"]
    assert gain(POINTS, {}, "auroc", 0.1)["lower"] is None
    assert gain(POINTS, draws, "auroc", 0.5)["why"].startswith("ours: no level has a rank-1 of 0.5")


def test_ablations_and_transfer_compare_at_equal_levels() -> None:
    bare = [point(NO_SEMANTICS, 0.95, 0.2, 0.80), point(NO_SEMANTICS, 0.2, 0.03, 0.6)]
    at = ablation([*POINTS, *bare], {}, NO_SEMANTICS)["at equal r"]
    assert at["0.95"] == {"auroc points lost": 8.0, "rank-1 points gained by the attacker": -10.0}
    assert ablation(POINTS, {}, NO_SEMANTICS) == {"why": "not measured"}
    seen = [point(OURS, 0.95, 0.3, 0.88, upper=0.4), point(OURS, 0.2, 0.05, 0.78, upper=0.1)]
    new = [point(OURS, 0.95, 0.35, 0.8), point(OURS, 0.2, 0.2, 0.7)]
    levels = transfer(seen, new)["levels"]
    assert [levels[name]["met"] for name in ("0.95", "0.2")] == [True, False]
    assert levels["0.2"]["rank1"] == [0.05, 0.2]


def test_the_result_has_every_name_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "adjustable_latency.json").write_text(json.dumps({"ratios": {"one step over mae, equal": 4.0}}))
    (tmp_path / "adjustable_calibration.json").write_text(
        json.dumps({"weights sha256": "ab", "calibration_met": 0.97, "calibration_p": 0.9})
    )
    draws = {f"{one['method']}|{one['level']}|auroc": np.full(20, one["auroc"]["auroc"]) for one in POINTS}
    np.savez(draws_file(tmp_path, "synthetic-chest"), **draws)
    found = summary({"synthetic-chest": POINTS}, tmp_path, tmp_path, "ab")
    assert found["auroc_gain_at_r1_10"] == found["gain_lower_bounds"]["auroc_gain_at_r1_10"] == 20.0
    assert found["dice_gain_at_r1_10"] is None
    assert (found["onestep_latency_ratio_to_mae"], found["calibration_met"], found["calibration_p"]) == (4.0, 0.97, 0.9)
    lowest = found["gains"]["synthetic-chest"]["auroc"]["lowest rank-1 of ours"]
    assert (lowest["rank1"], lowest["utility"][OURS]) == (0.05, 0.78)
    other = summary({"synthetic-chest": POINTS}, tmp_path, tmp_path, "cd")
    assert (other["calibration_met"], other["calibration_p"]) == (None, None)  # of other weights
    assert [one["level"] for one in found["curves"]["synthetic-chest"][OURS]] == [0.2, 0.95]
    assert {"bleu_gain_at_r1_10", "cross_site", "ablations", "gains"} <= set(found)
