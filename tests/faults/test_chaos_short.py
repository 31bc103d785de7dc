"""The short form of `make chaos`: a few kills and faults from a fixed seed, on each store."""

from __future__ import annotations

from pathlib import Path

import pytest
from chaos_run import Plan, run
from peers import need


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan("sqlite", seed=2, kills=5, studies=6, receivers=2), id="sqlite"),
        pytest.param(Plan("postgresql", seed=9, kills=2, studies=4), id="postgresql", marks=pytest.mark.peer),
    ],
)
def test_what_must_hold_holds_after_kills_and_faults(tmp_path: Path, plan: Plan) -> None:
    if plan.store == "postgresql":
        need("postgres")
    outcome = run(plan, tmp_path)
    assert outcome.findings.any() == {}
    assert sum(outcome.kills.values()) == plan.kills
    assert outcome.ends["sent"] > 0
    assert outcome.arrivals > 0
