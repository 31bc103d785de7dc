"""The frozen calibration: what it says is monotone, and the generator still is the one that was calibrated."""

from __future__ import annotations

import itertools

import pytest

from models.cohorts.brains_reference import TOLERANCE, reference_figures
from models.cohorts.difficulty import Strengths, difficulty_of, frozen, strengths


def test_levels_are_in_order_and_numbers_pass() -> None:
    assert 0 <= difficulty_of("easy") < difficulty_of("medium") < difficulty_of("hard") <= 1
    assert difficulty_of(0.25) == 0.25


def test_people_differ_less_and_visits_more_as_it_gets_harder() -> None:
    rows = [strengths(step / 20) for step in range(21)]
    for easier, harder in itertools.pairwise(rows):
        assert harder.person < easier.person
        assert harder.visit > easier.visit
        assert harder.scanner > easier.scanner
        assert harder.noise > easier.noise


def test_between_rows_strengths_are_linear() -> None:
    low, high = frozen()["strengths"][:2]
    middle = strengths((low["difficulty"] + high["difficulty"]) / 2)
    names = ("person", "visit", "scanner", "noise")
    assert middle == Strengths(*(pytest.approx((low[name] + high[name]) / 2) for name in names))


def test_measured_linkage_spans_easy_to_hard() -> None:
    """Of every attacker, in order of difficulty: near certain at the easy end, near chance at the hard one."""
    measured = frozen()["measured"]
    for encoder in {row["encoder"] for row in measured}:
        rows = sorted((row for row in measured if row["encoder"] == encoder), key=lambda row: row["difficulty"])
        for name in ("rank1", "d_sys"):
            values = [row[name] for row in rows]
            assert values[0] > 0.9
            assert values[-1] < 0.35
            assert all(later <= earlier + 0.05 for earlier, later in itertools.pairwise(values))
            assert all(row[name] <= row[f"{name}_upper"] <= 1 for row in rows)


def test_the_generator_is_the_one_that_was_calibrated() -> None:
    """Another figure means other brains: calibrate anew (bench/cohorts.py --freeze) and say so in the cards."""
    found, expected = reference_figures(), frozen()["reference"]
    assert found.keys() == expected.keys()
    for name, figures in expected.items():
        assert found[name] == pytest.approx(figures, abs=TOLERANCE), name


def test_another_generator_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from models.cohorts import brains_visit

    monkeypatch.setitem(brains_visit.SEQUENCES, "T1", tuple(0.97 * one for one in brains_visit.SEQUENCES["T1"]))
    found, expected = reference_figures(), frozen()["reference"]
    worst = max(abs(a - b) for name in expected for a, b in zip(found[name], expected[name], strict=True))
    assert worst > TOLERANCE
