"""The simulation of calibrations says what it should on embeddings whose risk is known."""

from __future__ import annotations

import numpy as np
import pytest

from bench import adjustable_calibration
from bench.adjustable_calibration import kept_of, part_of, promises, searched
from gateway.evidence import People


def embeddings(people: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, People]:
    """(released, original) of two visits each: the person, and `noise` times something else in what is released."""
    draw = np.random.default_rng(seed)
    own = np.repeat(draw.standard_normal((people, 16)), 2, axis=0)
    original = own + 0.3 * draw.standard_normal(own.shape)
    released = own + noise * draw.standard_normal(own.shape)
    who = People.of([str(row // 2) for row in range(2 * people)], [str(row % 2) for row in range(2 * people)])
    return released, original, who


def test_a_level_that_names_nobody_is_chosen_and_the_promise_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjustable_calibration, "POOL_DRAWS", 60)
    monkeypatch.setattr(adjustable_calibration, "DRAWS", 30)
    pool, people = {}, None
    for level, noise in ((0.9, 0.1), (0.5, 2.0), (0.1, 60.0)):
        released, original, people = embeddings(150, noise, 1)
        pool[level] = (released, original)
    assert people is not None
    truth = [searched(*pool[level], people, 0, 60)[0] for level in pool]
    assert truth[0] > 0.95 > truth[1] > 0.2 > 0.1 > truth[2]
    found, strict = promises(pool, people, [0.2, 0.001], 20, 80)
    assert set(found["chosen"]) <= {"0.1", "none"}
    assert found["chosen"]["0.1"] >= 15
    assert (found["kept"], found["draws"], found["pool"]) == (1.0, 20, 150)
    assert found["p that fewer than 95 % keep it"] == 1.0
    assert strict["chosen"] == {"none": 20}
    broken = kept_of({0.9: 0.3, 0.1: 0.1}, [[0.2, 0.1], [0.4, 0.1], [0.4, 0.3]], 0.2)  # the first bound was too low
    assert (broken["chosen"], broken["kept"]) == ({"0.1": 1, "0.9": 1, "none": 1}, 2 / 3)


def test_part_of_the_pool_has_all_scans_of_its_people_and_no_other() -> None:
    released, _, people = embeddings(10, 1.0, 2)
    rows, own = part_of(people, released, np.array([3, 7]))
    assert len(rows) == 4
    assert own.count == 2
    assert np.array_equal(rows, released[np.isin(people.subject, [3, 7])])
