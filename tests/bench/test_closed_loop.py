"""The closed loop keeps its promise: what leaks nothing clears, and what leaks at the limit does not pass by trying."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.closed_loop import Rules, loop

AT_THE_LIMIT, LEAKING = 0.265, 0.64  # of the original's direction stays: D_sys of endless people is then 0.40, 0.91
RULES = Rules(people=60, limit=0.4, attempts=2, replicates=60, permutations=40)
RUNS = 20


def ends(leaks: list[float], **changes: Any) -> list[Any]:
    rules = Rules(**{**{name: getattr(RULES, name) for name in RULES.__dataclass_fields__}, **changes})
    return [loop(leaks, seed, rules) for seed in range(1, RUNS + 1)]


def test_a_release_without_a_trace_clears_nine_times_in_ten() -> None:
    found = ends([0.0, 0.0])
    assert np.mean([end.cleared for end in found]) >= 0.9
    assert {end.looks for end in found} <= {1, 2}


def test_a_release_that_leaks_at_the_limit_passes_at_most_one_time_in_twenty_whatever_is_tried() -> None:
    found = ends([AT_THE_LIMIT, AT_THE_LIMIT], hold_below_p=0.0)
    assert sum(end.cleared for end in found) <= RUNS * 0.05
    assert all(end.looks == RULES.attempts for end in found if not end.cleared)


def test_a_release_whose_next_level_leaves_no_trace_clears_there() -> None:
    found = ends([LEAKING, 0.0], hold_below_p=0.0)
    assert np.mean([end.cleared for end in found]) >= 0.9
    assert all(end.looks == 2 for end in found)
    assert all(set(end.levels) == {1} for end in found)


def test_same_scan_sends_who_is_found_to_the_next_level_before_the_release_is_judged() -> None:
    found = ends([LEAKING, 0.0])
    assert np.mean([end.cleared for end in found]) >= 0.9
    assert np.mean([sum(end.levels) / RULES.people for end in found]) > 0.3


@pytest.mark.parametrize("seed", [1, 2])
def test_a_loop_repeats_itself(seed: int) -> None:
    assert loop([AT_THE_LIMIT, 0.0], seed, RULES) == loop([AT_THE_LIMIT, 0.0], seed, RULES)
