"""Synthetic chest films: people who stay themselves, findings where their masks say, a calibration that stays."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.evidence import People, leave_one_out
from models.audit_encoders import BASELINES, embed
from models.cohorts import Scan, chest, synthetic_chest
from models.cohorts.traits import Visit

FROZEN = yaml.safe_load((Path(chest.__file__).parent / "chest_difficulty.yaml").read_text(encoding="utf-8"))


def visit_of(scan: Scan) -> tuple[Visit, int]:
    assert isinstance(scan.load, partial)
    return scan.load.args


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), difficulty=st.floats(0, 1))
def test_every_film_is_a_picture_and_comes_back_the_same(seed: int, difficulty: float) -> None:
    for scan in synthetic_chest(2, 1, seed, difficulty=difficulty, finding_share=1):
        film = scan.load()
        assert film.shape == (64, 64)
        assert film.dtype == np.float32
        assert np.isfinite(film).all()
        assert film.min() >= 0
        assert film.max() <= 1
        assert film.std() > 0.08
        np.testing.assert_array_equal(film, pickle.loads(pickle.dumps(scan)).load())
        lungs = scan.masks["lungs"]()
        assert 0.12 < lungs.mean() < 0.55
        assert set(scan.attributes) == {"sex", "age_band", "finding", "view", "site"}


def test_a_person_does_not_depend_on_how_many_others_there_are() -> None:
    few, many = synthetic_chest(2, 2, 5), synthetic_chest(4, 3, 5)
    assert few.synthetic
    for scan in few:
        twin = next(s for s in many if s.name == scan.name)
        np.testing.assert_array_equal(scan.load(), twin.load())
        assert (scan.day, scan.attributes) == (twin.day, twin.attributes)
    days = [s.day for s in many if s.subject == "chest-00000"]
    assert days[0] == 0
    assert days == sorted(set(days))


def test_a_small_film_is_the_large_one_seen_from_farther() -> None:
    for small, large in zip(synthetic_chest(3, 1, 3), synthetic_chest(3, 1, 3, size=256), strict=True):
        shrunk = cv2.resize(large.load(), (64, 64), interpolation=cv2.INTER_AREA)
        assert np.corrcoef(small.load().ravel(), shrunk.ravel())[0, 1] > 0.95  # what is left is noise


@pytest.mark.parametrize("finding", ["consolidation", "effusion", "nodule"])
def test_a_finding_brightens_what_its_mask_covers_and_leaves_the_rest(finding: str) -> None:
    seen = 0
    for scan in synthetic_chest(30, 1, 8, finding_share=1, size=128):
        visit, size = visit_of(scan)
        if visit.finding != finding:
            continue
        seen += 1
        change = scan.load() - chest._film(replace(visit, finding=""), size)
        mask, lungs = scan.masks[finding](), scan.masks["lungs"]()
        assert mask.any()
        assert (mask & lungs).sum() >= 0.9 * mask.sum()
        assert change[mask].mean() > 0.02
        assert np.abs(change[~mask]).mean() < 0.25 * np.abs(change[mask]).mean()
    assert seen >= 3


def test_a_large_heart_is_larger_and_masked() -> None:
    for scan in synthetic_chest(20, 1, 8, finding_share=1):
        visit, size = visit_of(scan)
        if visit.finding == "cardiomegaly":
            usual = chest._mask(replace(visit, finding=""), size, "heart")
            assert scan.masks["cardiomegaly"]().sum() > 1.25 * usual.sum()
            return
    pytest.fail("nobody has a large heart")


def test_the_sexes_differ_by_as_much_as_is_asked() -> None:
    def breast(strength: float) -> dict[str, float]:
        of: dict[str, list[float]] = {"F": [], "M": []}
        for scan in synthetic_chest(200, 1, 4, sex_strength=strength):
            of[scan.attributes["sex"]].append(visit_of(scan)[0].traits["breast"])
        assert len(of["F"]) == len(of["M"]) == 100
        return {sex: float(np.mean(values)) for sex, values in of.items()}

    assert breast(1.0)["F"] - breast(1.0)["M"] == pytest.approx(0.18, abs=0.02)
    assert abs(breast(0.0)["F"] - breast(0.0)["M"]) < 0.02


def test_nothing_but_gains_changes_with_difficulty() -> None:
    easy, hard = (visit_of(synthetic_chest(1, 1, 2, difficulty=d).scans[0])[0] for d in (0.0, 1.0))
    assert (easy.sex, easy.age_years, easy.finding, easy.view, easy.site) == (
        hard.sex,
        hard.age_years,
        hard.finding,
        hard.view,
        hard.site,
    )
    assert (easy.identity, easy.session) == pytest.approx((chest.SPREAD.identity[0], chest.SPREAD.session[0]))
    assert (hard.identity, hard.session) == pytest.approx((chest.SPREAD.identity[1], chest.SPREAD.session[1]))


def test_linkage_falls_as_the_calibration_says() -> None:
    rank1 = []
    for difficulty in (0.0, 0.5, 1.0):
        cohort = synthetic_chest(30, 2, 99, difficulty=difficulty)
        x = embed((scan.load() for scan in cohort), BASELINES["hog"])
        people = People.of([s.subject for s in cohort], [s.session for s in cohort])
        rank1.append(leave_one_out(x, people, "cosine").rank1)
    assert rank1[0] > 0.65
    assert rank1[0] > rank1[1] + 0.1 > rank1[2] + 0.2
    assert rank1[2] < 0.2


@pytest.mark.parametrize("measure", ["rank1", "d_sys"])
@pytest.mark.parametrize("encoder", ["raw", "hog"])
def test_the_frozen_figures_fall_from_easy_to_hard(encoder: str, measure: str) -> None:
    values = [row[encoder][measure] for row in FROZEN["figures"]]
    assert all(b <= a + 0.02 for a, b in pairwise(values))  # 0.02: of 360 films
    assert values[0] > 2.5 * values[-1]


def test_the_code_is_the_one_that_was_calibrated() -> None:
    now = {name: [t.mean, t.people, t.sessions, t.sex] for name, t in chest.TRAITS.items()}
    assert now == FROZEN["traits"]
    assert FROZEN["spread"] == {"identity": list(chest.SPREAD.identity), "session": list(chest.SPREAD.session)}
    cohort = synthetic_chest(**FROZEN["reference"])
    assert {scan.name for scan in cohort} == set(FROZEN["digest"])
    for scan in cohort:
        kept = np.array([[float(v) for v in row.split()] for row in FROZEN["digest"][scan.name]])
        found = cv2.resize(scan.load(), kept.shape, interpolation=cv2.INTER_AREA)
        assert np.abs(found - kept).max() < 0.01, "films differ from the calibrated ones: run bench.cohorts_2d --freeze"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"size": 32}, "64 to 512"),
        ({"difficulty": 1.1}, "between 0"),
        ({"people": 0}, "at least one person"),
        ({"finding_share": -0.1}, "share"),
    ],
)
def test_numbers_that_make_no_cohort_are_refused(arguments: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        synthetic_chest(**({"people": 1, "sessions": 1, "seed": 0} | arguments))
