"""Cohorts: people are never split, folders with a manifest become one, baselines see what a person would."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from models.audit_encoders import BASELINES, embed
from models.cohorts import Cohort, Scan, read_manifest


def made(people: int, scans: int) -> Cohort:
    picture = np.random.default_rng(0).random((40, 50)).astype(np.float32)
    return Cohort(
        "made", tuple(Scan(f"{p}-{i}", f"P{p}", str(i), lambda: picture) for p in range(people) for i in range(scans))
    )


@given(people=st.integers(1, 60), seed=st.integers(0, 9))
def test_no_split_shares_a_person_or_loses_a_scan(people: int, seed: int) -> None:
    cohort = made(people, 2)
    parts = cohort.split({"train": 0.6, "tune": 0.2, "test": 0.2}, seed)
    of_people = [set(part.subjects) for part in parts.values()]
    assert sum(map(len, of_people)) == people == len(set().union(*of_people))
    assert sum(len(part) for part in parts.values()) == 2 * people
    assert cohort.split({"train": 0.6, "tune": 0.2, "test": 0.2}, seed) == parts


def test_the_digest_names_the_people_whatever_their_scans() -> None:
    assert made(5, 1).people_digest() == made(5, 3).people_digest() != made(6, 1).people_digest()


def test_a_split_that_loses_people_is_refused() -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        made(3, 1).split({"train": 0.5}, 0)


def test_a_folder_with_a_manifest(tmp_path: Path) -> None:
    Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4) * 20).save(tmp_path / "a.png")
    Image.new("RGB", (4, 3), (255, 0, 0)).save(tmp_path / "b.png")
    with open(tmp_path / "manifest.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "dataset", "subject", "session", "day_offset", "sex", "age"])
        table.writerow(["a.png", "films", "P1", "s1", "0", "F", "57"])
        table.writerow(["b.png", "films", "P1", "s2", "30.0", "F", "57"])
        table.writerow(["c.png", "others", "P2", "s1", "", "", ""])
    cohort = read_manifest(tmp_path, "films")
    first, second = cohort
    assert cohort.subjects == ("P1",)
    assert (first.day, second.day, first.attributes) == (0, 30, {"sex": "F", "age_band": "40-59"})
    np.testing.assert_allclose(first.load()[1], np.array([4, 5, 6, 7]) * 20 / 255, rtol=1e-6)
    np.testing.assert_allclose(second.load(), 76 / 255, rtol=1e-6)  # red is 0.299 of grey
    with pytest.raises(ValueError, match="no data set"):
        read_manifest(tmp_path, "nothing")


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_ignores_brightness_and_contrast_and_tells_pictures_apart(name: str) -> None:
    generator = np.random.default_rng(1)
    picture = np.cumsum(generator.normal(size=(96, 80)), axis=0).astype(np.float32)
    other = np.cumsum(generator.normal(size=(96, 80)), axis=1).astype(np.float32)
    same, brighter, apart = embed([picture, 3 * picture + 5, other], BASELINES[name])
    assert np.linalg.norm(same - brighter) < 1e-3 * np.linalg.norm(same)
    assert np.linalg.norm(same - apart) > 0.3 * np.linalg.norm(same)


@pytest.mark.parametrize("name", BASELINES)
def test_a_blank_picture_has_a_finite_embedding(name: str) -> None:
    assert np.isfinite(embed([np.zeros((20, 20), np.float32)], BASELINES[name])).all()
