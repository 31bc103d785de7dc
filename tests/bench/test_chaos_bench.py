"""What the result file of the chaos bench says of its runs."""

from __future__ import annotations

from typing import Any

from bench.chaos import STUDIES_A_RUN, of_commit, summed


def a_run(seed: int, **findings: list[str]) -> dict[str, Any]:
    return {
        "seed": seed,
        "upgraded": bool(seed % 2),
        "kills": {"gateway": 12, "child": 8},
        "faults": {"disk full": 3},
        "ends": {"sent": 41},
        "acknowledged": 90,
        "refused": 300,
        "arrivals": 70,
        "restarts": 1,
        "duration_s": 60.5,
        "findings": {"lost": [], "identifiers_outside": [], **findings},
    }


def test_what_was_run_and_found_is_added_up() -> None:
    said = summed([a_run(2, lost=["one", "two"]), a_run(1)])
    assert (said["kills"], said["studies"], said["seeds"]) == (40, 2 * STUDIES_A_RUN, [1, 2])
    assert (said["lost"], said["sent_twice_different"], said["identifiers_outside"]) == (2, 0, 0)
    assert (said["killed"], said["duration_s"], said["upgraded_runs"]) == ({"gateway": 24, "child": 16}, 121.0, 1)
    assert [run["seed"] for run in said["runs"]] == [1, 2]


def test_a_run_that_broke_off_is_a_finding_and_counts_for_nothing_else() -> None:
    said = summed([a_run(1), {"seed": 2, "findings": {"broken": ["not through within 3600 s"]}}])
    assert (said["kills"], said["studies"], said["broken"], said["lost"]) == (20, STUDIES_A_RUN, 1, 0)


def test_what_another_commit_showed_says_nothing_of_this_one() -> None:
    runs = [{**a_run(seed), "revision": which} for seed, which in enumerate(("1e97d0a", "1e97d0a-dirty", "cb79b36"))]
    assert [run["seed"] for run in of_commit([*runs, a_run(9)], "1e97d0a-dirty")] == [0, 1]
    assert [run["seed"] for run in of_commit(runs, "cb79b36")] == [2]
