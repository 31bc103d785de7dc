"""Who is trained on is not who judges, however the cohorts are given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import UsageError
from gateway.learn import training
from models.cards import CardFolder, people_hash, read_people
from models.cohorts import Cohort, synthetic_chest
from models.train import chest_audit
from models.train.contrastive import Plan
from models.train.trained import lists_of, sides


def quiet(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody looks at."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = replace(chest_audit.RECIPE, side=32, width=4, learned=8, whitened=12, plan=Plan(2, people=6, views=2))
    monkeypatch.setattr(chest_audit, "RECIPE", recipe)


def test_people_who_are_trained_on_do_not_judge(tmp_path: Path) -> None:
    cohort = synthetic_chest(24, 2, 5)
    ours, others = sides(cohort, training.SHARE)
    with pytest.raises(UsageError, match=f"^{len(ours.subjects)} people"):
        training.train("chest-audit-1", [cohort], CardFolder.flat(tmp_path), quiet, judged=[cohort])
    assert not list(tmp_path.iterdir())
    run = training.train("chest-audit-1", [cohort], CardFolder.flat(tmp_path), quiet, judged=[others])
    assert run.held_out == len(others.subjects)  # once each, though they were named twice
    assert run.card.metrics[f"{cohort.name} (synthetic): scans"] == len(others)


def test_two_parts_of_one_data_set_are_one_cohort_on_the_card(tmp_path: Path) -> None:
    cohort = synthetic_chest(24, 2, 5)
    parts = [cohort.of(cohort.subjects[:10]), cohort.of(cohort.subjects[8:])]
    folder = CardFolder.flat(tmp_path)
    run = training.train("chest-audit-1", parts, folder, quiet)
    ours, others = sides(cohort, training.SHARE)
    (part,) = run.card.trained_on
    assert part.people == len(ours.subjects)
    assert read_people(run.card, folder) == {people_hash(cohort.name, one) for one in ours.subjects}
    assert run.held_out == run.card.metrics[f"{cohort.name} (synthetic): people"] == len(others.subjects)
    assert run.card.metrics[f"{cohort.name} (synthetic): scans"] == len(others)


def test_a_run_does_not_go_on_from_what_others_were_taught(tmp_path: Path) -> None:
    """Else the card would name these people, and the weights know those as well."""
    first, second = synthetic_chest(24, 2, 5), synthetic_chest(24, 2, 6)
    kept, fresh = tmp_path / "kept", tmp_path / "fresh"
    for cohort, keep in ((first, kept), (second, kept), (second, fresh)):
        training.train("chest-audit-1", [cohort], CardFolder.flat(keep), quiet, keep=keep)
    assert (kept / "chest-audit-1.safetensors").read_bytes() == (fresh / "chest-audit-1.safetensors").read_bytes()
    modes = {path.stat().st_mode & 0o777 for path in kept.iterdir()}
    assert modes == {0o600}


def test_no_list_of_people_overwrites_another() -> None:
    scans = synthetic_chest(1, 1, 5).scans
    with pytest.raises(ValueError, match="two cohorts are called my-set"):
        lists_of("card", [Cohort("My Set", scans), Cohort("my_set", scans)])
