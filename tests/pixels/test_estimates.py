"""What a stage estimates is computed once, stored before use, and used by everybody after (DESIGN.md invariant 4)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from gateway.errors import Hold
from gateway.pixels import Estimate, Instance, Scope, Work, run_stage
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from gateway.study import Step

POLICY = Policy(name="estimates", header=HeaderPolicy(), gate=GatePolicy(study={}))
WORK = Work(POLICY, b"s" * 32)
_calls = itertools.count()


@dataclass(frozen=True)
class Guesses:
    """Guesses something else each time, as a detector on another machine would."""

    margin: int = 1
    VERSION: ClassVar[str] = "1"
    SCOPE: ClassVar[Scope] = Scope.SERIES

    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:
        n = next(_calls)
        return Estimate({"box": [n, n + 1]}, {"mask": np.full((2, 3), n, np.uint16), "file": np.zeros(1)})

    def apply(self, group: Sequence[Instance], work: Work, estimate: Estimate) -> list[Step]:
        assert estimate.arrays["mask"].dtype == np.uint16
        assert estimate.arrays["file"].shape == (1,)
        assert int(estimate.arrays["mask"][1, 2]) == estimate.facts["box"][0]
        return [Step("guesses", "1", {"box": estimate.facts["box"][0]}) for _ in group]

    def describe(self) -> str:
        return "Guesses."


@dataclass(frozen=True)
class Refuses(Guesses):
    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:
        raise Hold("text_uncertain", at=group[0].name)


@pytest.fixture
def group(tmp_path: Path) -> list[Instance]:
    made = []
    for name in ("00001", "00002"):
        original, candidate = tmp_path / f"{name}.in", tmp_path / f"{name}.dcm"
        original.write_bytes(b"original " + name.encode())
        candidate.write_bytes(b"candidate " + name.encode())
        made.append(Instance(name, original, candidate))
    return made


def _box(stage: Guesses, group: Sequence[Instance], store: Path, work: Work = WORK) -> int:
    return run_stage("guesses", stage, group, work, store)[0].counts["box"]


def test_a_replay_takes_what_was_estimated_before(group: list[Instance], tmp_path: Path) -> None:
    store = tmp_path / "estimates"
    first = _box(Guesses(), group, store)
    assert [_box(Guesses(), group, store) for _ in range(3)] == [first] * 3
    assert [entry.name for entry in store.iterdir() if "part" in entry.name] == []


def test_other_inputs_parameters_policy_seed_or_level_are_estimated_anew(group: list[Instance], tmp_path: Path) -> None:
    store = tmp_path / "estimates"
    seen = [_box(Guesses(), group, store), _box(Guesses(margin=2), group, store)]
    seen.append(_box(Guesses(), group, store, Work(POLICY, b"t" * 32)))
    seen.append(_box(Guesses(), group, store, Work(POLICY.model_copy(update={"name": "other"}), b"s" * 32)))
    seen += [_box(Guesses(), group, store, replace(WORK, level=level)) for level in (0.95, 0.7)]
    seen.append(_box(Guesses(), group[:1], store))
    group[1].candidate.write_bytes(b"another header")
    seen.append(_box(Guesses(), group, store))
    group[1].original.write_bytes(b"another original")
    seen.append(_box(Guesses(), group, store))
    assert len(set(seen)) == len(seen)


def test_workers_that_estimate_at_once_agree_on_one(group: list[Instance], tmp_path: Path) -> None:
    store = tmp_path / "estimates"
    with ThreadPoolExecutor(4) as threads:
        boxes = list(threads.map(lambda _: _box(Guesses(), group, store), range(8)))
    assert len(set(boxes)) == 1


def test_what_a_killed_worker_left_half_written_is_not_used(group: list[Instance], tmp_path: Path) -> None:
    store = tmp_path / "estimates"
    _box(Guesses(), group, store)
    (whole,) = store.iterdir()
    whole.rename(whole.with_name(f"{whole.name}.0123.part"))
    _box(Guesses(), group, store)
    assert whole.is_dir()


def test_a_stage_that_cannot_tell_holds_and_stores_nothing(group: list[Instance], tmp_path: Path) -> None:
    with pytest.raises(Hold, match="text_uncertain"):
        run_stage("refuses", Refuses(), group, WORK, tmp_path / "estimates")
    assert not list((tmp_path / "estimates").glob("*"))
