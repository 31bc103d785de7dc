"""Synthetic fundus pictures: eyes that stay themselves, discs, cups and spots where masks say, a frozen calibration."""

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
from models.cohorts import Scan, fundus, synthetic_fundus
from models.cohorts.fundus_retina import cup_ratio
from models.cohorts.traits import Visit

FROZEN = yaml.safe_load((Path(fundus.__file__).parent / "fundus_difficulty.yaml").read_text(encoding="utf-8"))


def visit_of(scan: Scan) -> tuple[Visit, int, str]:
    assert isinstance(scan.load, partial)
    return scan.load.args


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), difficulty=st.floats(0, 1), eyes=st.sampled_from(["R", "L", "RL"]))
def test_every_picture_is_one_and_comes_back_the_same(seed: int, difficulty: float, eyes: str) -> None:
    for scan in synthetic_fundus(2, 1, seed, difficulty=difficulty, finding_share=1, eyes=eyes):
        picture = scan.load()
        assert picture.shape == (64, 64)
        assert picture.dtype == np.float32
        assert np.isfinite(picture).all()
        assert picture.min() >= 0
        assert picture.max() <= 1
        assert picture[0, 0] == picture[-1, -1] == 0  # outside the round field
        np.testing.assert_array_equal(picture, pickle.loads(pickle.dumps(scan)).load())
        assert set(scan.attributes) == {"sex", "age_band", "finding", "view", "eye", "site"}
        assert not (scan.masks["cup"]() & ~scan.masks["disc"]()).any()


def test_a_person_does_not_depend_on_how_many_others_there_are() -> None:
    few, many = synthetic_fundus(2, 2, 5), synthetic_fundus(4, 3, 5)
    assert few.synthetic
    for scan in few:
        np.testing.assert_array_equal(scan.load(), next(s for s in many if s.name == scan.name).load())


def test_a_small_picture_is_the_large_one_seen_from_farther() -> None:
    for small, large in zip(synthetic_fundus(3, 1, 3), synthetic_fundus(3, 1, 3, size=256), strict=True):
        shrunk = cv2.resize(large.load(), (64, 64), interpolation=cv2.INTER_AREA)
        assert np.corrcoef(small.load().ravel(), shrunk.ravel())[0, 1] > 0.95  # what is left is noise


def test_grey_is_the_luminance_of_the_colours() -> None:
    (scan,) = synthetic_fundus(1, 1, 3, size=128)
    colours = fundus.colour(scan)
    assert colours.shape == (128, 128, 3)
    np.testing.assert_allclose(scan.load(), colours @ [0.299, 0.587, 0.114], atol=1e-5)
    inside = colours[40:88, 40:88].mean((0, 1))
    assert inside[0] > inside[1] > inside[2]  # a fundus is orange
    with pytest.raises(TypeError, match="synthetic fundus"):
        fundus.colour(replace(scan, load=lambda: scan.load()))


def test_the_disc_lies_towards_the_nose_and_is_bright() -> None:
    for eyes, right in (("R", True), ("L", False)):
        for scan in synthetic_fundus(8, 1, 6, eyes=eyes, size=128):
            disc, picture = scan.masks["disc"](), scan.load()
            if scan.attributes["view"] == "macula" and disc.sum() > 100:
                assert (np.argwhere(disc)[:, 1].mean() > 64) == right
                near = cv2.dilate(disc.astype(np.uint8), np.ones((21, 21))) > disc
                bare = disc & ~scan.masks["vessels"]()
                assert picture[bare].mean() > 1.15 * picture[near].mean()


def test_a_left_eye_is_a_right_eye_in_the_mirror() -> None:
    right, left = (synthetic_fundus(1, 1, 6, eyes=eyes, size=128).scans[0] for eyes in "RL")
    visit, size, _ = visit_of(right)
    level = dict(visit.traits) | dict.fromkeys(("turn", "shift_x", "bend"), 0.0)
    straight = replace(visit, traits=level)
    a, b = (fundus._mask(straight, size, eye, "vessels") for eye in "RL")
    np.testing.assert_array_equal(a, b[:, ::-1])
    assert left.attributes["eye"] == "L"


def test_the_cup_has_the_ratio_that_the_diagnosis_says() -> None:
    seen = set()
    for scan in synthetic_fundus(16, 1, 2, finding_share=1, size=192):
        visit, _, _ = visit_of(scan)
        disc, cup = scan.masks["disc"](), scan.masks["cup"]()
        glaucoma = visit.finding == "glaucoma"
        if disc[:, 0].any() or disc[:, -1].any():
            continue
        assert np.sqrt(cup.sum() / disc.sum()) == pytest.approx(cup_ratio(visit), abs=0.04)
        assert (cup_ratio(visit) >= 0.65) == glaucoma
        seen.add(glaucoma)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("finding", "brighter"), [("microaneurysms", False), ("haemorrhages", False), ("exudates", True)]
)
def test_spots_are_where_their_mask_says(finding: str, brighter: bool) -> None:
    seen = 0
    for scan in synthetic_fundus(16, 1, 8, finding_share=1, size=192):
        visit, size, eye = visit_of(scan)
        if visit.finding != finding:
            continue
        seen += 1
        change = scan.load() - fundus._grey(replace(visit, finding=""), size, eye)
        mask = scan.masks[finding]() & (scan.load() > 0)
        assert mask.any()
        assert (change[mask].mean() > 0.02) if brighter else (change[mask].mean() < -0.02)
        assert np.abs(change[~mask]).mean() < 0.1 * np.abs(change[mask]).mean()
    assert seen >= 2


def test_later_visits_show_the_same_spots() -> None:
    cohort = synthetic_fundus(30, 2, 8, finding_share=1, size=256)
    for person in cohort.subjects:
        a, b = cohort.of([person])
        if a.attributes["finding"] == "haemorrhages":
            own = [
                replace(visit_of(s)[0], traits=visit_of(a)[0].traits, session_key=(0,), view="macula") for s in (a, b)
            ]
            first, second = (fundus._mask(v, 256, "R", "haemorrhages") for v in own)
            fewer, more = sorted((first, second), key=np.sum)
            assert (fewer & more).sum() > 0.95 * fewer.sum()
            return
    pytest.fail("nobody bleeds")


def test_linkage_falls_as_the_calibration_says() -> None:
    rank1 = []
    for difficulty in (0.0, 0.6, 1.0):
        cohort = synthetic_fundus(30, 2, 99, difficulty=difficulty)
        x = embed((scan.load() for scan in cohort), BASELINES["hog"])
        people = People.of([s.subject for s in cohort], [s.session for s in cohort])
        rank1.append(leave_one_out(x, people, "cosine").rank1)
    assert rank1[0] > 0.55
    assert rank1[0] > rank1[1] > rank1[2] + 0.1
    assert rank1[2] < 0.3


@pytest.mark.parametrize("measure", ["rank1", "d_sys"])
@pytest.mark.parametrize("encoder", ["raw", "hog"])
def test_the_frozen_figures_fall_from_easy_to_hard(encoder: str, measure: str) -> None:
    values = [row[encoder][measure] for row in FROZEN["figures"]]
    assert all(b <= a + 0.02 for a, b in pairwise(values))  # 0.02: of 360 pictures
    assert values[0] > 2.5 * values[-1]


def test_the_code_is_the_one_that_was_calibrated() -> None:
    now = {name: [t.mean, t.people, t.sessions, t.sex] for name, t in fundus.TRAITS.items()}
    assert now == FROZEN["traits"]
    assert FROZEN["spread"] == {"identity": list(fundus.SPREAD.identity), "session": list(fundus.SPREAD.session)}
    cohort = synthetic_fundus(**FROZEN["reference"])
    assert {scan.name for scan in cohort} == set(FROZEN["digest"])
    for scan in cohort:
        kept = np.array([[float(v) for v in row.split()] for row in FROZEN["digest"][scan.name]])
        found = cv2.resize(scan.load(), kept.shape, interpolation=cv2.INTER_AREA)
        assert np.abs(found - kept).max() < 0.01, "pictures differ from the calibrated: run bench.cohorts_2d --freeze"


def test_other_eyes_are_refused() -> None:
    with pytest.raises(ValueError, match="R, L or RL"):
        synthetic_fundus(1, 1, 0, eyes="both")
    with pytest.raises(ValueError, match="64 to 512"):
        synthetic_fundus(1, 1, 0, size=1024)
