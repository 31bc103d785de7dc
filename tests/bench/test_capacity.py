"""The capacity bench: what it computes is what one computes by hand where that is possible."""

from __future__ import annotations

import numpy as np
import pytest

from bench.capacity import ASSUMED, Kind, fewest_cores, mix, open_hours, seconds_a_study, simulate

ALWAYS = np.ones(168, bool)
COST = {
    "receive_s_per_file": 0.0,
    "header_s_per_file": 0.01,
    "send_s_per_file": 0.02,
    "screen_s_per_slice": 0.1,
    "read_share_of_slices": 0.5,
    "read_s_per_slice": 1.0,
    "read_s_per_film": 2.0,
    "read_s_per_frame": 3.0,
    "deface_s_per_volume": 10.0,
    "face_check_s_per_volume": 20.0,
}


def test_the_work_of_a_study_is_the_sum_of_its_parts() -> None:
    head = Kind("head", 1.0, instances=100, instance_mb=1.0, pictures=50, read_share=0.5, read_s=1.0, volumes=2)
    of_files = 100 * (0.01 * (1 + ASSUMED["gate_times_header"]) + 0.02)
    of_text = ASSUMED["passes_of_text"] * 50 * (0.1 + 0.5 * 1.0)
    assert seconds_a_study(head, COST, ()) == pytest.approx(of_files)
    assert seconds_a_study(head, COST, ("text",)) == pytest.approx(of_files + of_text)
    assert seconds_a_study(head, COST, ("text", "face")) == pytest.approx(of_files + of_text + 2 * 30.0)


def test_the_shares_of_the_mix_are_a_whole() -> None:
    assert sum(kind.share for kind in mix(COST)) == pytest.approx(1.0)


def test_nights_and_weekends_are_counted() -> None:
    assert open_hours(20, 6).sum() == 5 * 10 + 2 * 24
    assert open_hours(20, 6)[[19, 20, 24 + 5, 24 + 6, 5 * 24 + 12]].tolist() == [False, True, True, False, True]


def test_with_cores_enough_the_pace_of_the_pacs_decides() -> None:
    days, most, _ = simulate(24_000, 1000, 100, ALWAYS, np.array([36.0]), np.array([1.0]))
    assert days == pytest.approx(10.0, rel=0.02)
    assert most == 0.0


def test_with_few_cores_they_decide_and_studies_wait() -> None:
    days, most, busy = simulate(24_000, 0.5, 100, ALWAYS, np.array([36.0]), np.array([1.0]))  # 50 an hour
    assert days == pytest.approx(20.0, rel=0.02)
    assert most == pytest.approx(12_000, rel=0.02)
    assert busy > 0.99


def test_the_fewest_cores_are_enough_and_one_fewer_is_not() -> None:
    means, shares = np.array([3600.0, 360.0]), np.array([0.5, 0.5])
    cores = fewest_cores(5_000, 10.0, 50.0, ALWAYS, means, shares)
    assert simulate(5_000, cores, 50.0, ALWAYS, means, shares)[0] <= 10.0
    assert simulate(5_000, cores - 1, 50.0, ALWAYS, means, shares)[0] > 10.0
    assert cores == pytest.approx(5_000 * 1980 / (10 * 86400), rel=0.1)


def test_the_same_seed_gives_the_same_plan() -> None:
    arguments = (5_000, 20.0, 50.0, open_hours(20, 6), np.array([3600.0]), np.array([1.0]))
    assert simulate(*arguments) == simulate(*arguments)
