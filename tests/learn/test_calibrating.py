"""`models calibrate`: impostors of people the card does not know, and p-values that are what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gateway.cli import run
from gateway.errors import UsageError
from gateway.gate.attackers import folders_of, impostors_of
from gateway.gate.same_scan import SameScan
from gateway.learn.calibrating import calibrate, drawn
from models.cards import SHIPPED, CardFolder, find_card, read_people, weights_of
from models.cohorts import Cohort, Scan, synthetic_chest

QUIET = lambda *_: None  # noqa: E731


def people(count: int, name: str = "films", first: int = 0) -> Cohort:
    """Noise that has a person's own pattern: quick to draw, and nobody is like another."""

    def load(person: int) -> np.ndarray:
        return np.random.default_rng(person).random((24, 24)).astype(np.float32)

    scans = [
        Scan(f"{p}-{s}", f"P{p:04d}", str(s), lambda p=p: load(p))
        for p in range(first, first + count)
        for s in range(2)
    ]
    return Cohort(name, tuple(scans))


def test_a_calibrated_card_judges_single_studies_with_valid_p_values(tmp_path: Path) -> None:
    target = CardFolder.flat(tmp_path)
    made = calibrate("grey-similarity", [people(220)], [SHIPPED], target, QUIET, new_name="grey-ours")
    card, folder = find_card("grey-ours", folders_of(tmp_path))
    found = impostors_of(card, folder)
    assert made.card == card
    assert (found.people, found.metric) == (220, "cosine")
    assert "220 people of films" in found.calibrated
    assert SameScan("grey-ours").misfits is not None
    # Conformal: of people like these, the share of p-values at or under a level is at most about that level.
    strangers = [scan.load() for scan in people(80, first=5000).scans[::2]]
    rows = np.stack([one.reshape(-1) - one.mean() for one in strangers])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    apart = (1 - unit @ unit.T)[np.triu_indices(80, 1)]
    levels = np.array([found.p_value(float(one)) for one in apart])
    for level in (0.05, 0.2, 0.5):
        assert (levels <= level).mean() == pytest.approx(level, abs=0.15 * level + 0.05)


def test_nobody_is_drawn_against_himself_nor_twice() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    found = drawn(rows, "euclid", 0)
    assert found.shape == (60, 50)
    assert found.min() > 0
    assert all(len(set(row.tolist())) == 50 for row in found)
    assert np.array_equal(found, drawn(rows, "euclid", 0))
    assert drawn(rows[:5], "euclid", 0).shape == (5, 4)


def test_too_few_people_are_counted_and_whom_it_knows_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="199 people whom grey-similarity was not trained on"):
        calibrate("grey-similarity", [people(199)], [SHIPPED], CardFolder.flat(tmp_path), QUIET, new_name="x")
    card, _ = find_card("brain-audit-1")
    seen = len(read_people(card, SHIPPED))
    cohort = replace(people(4), name="synthetic-brains-21")
    known = replace(cohort, scans=tuple(replace(scan, subject=f"P{k:04d}") for k, scan in enumerate(cohort)))
    with pytest.raises(UsageError, match=r"people whom brain-audit-1 was not trained on \(\d+ others were left out\)"):
        calibrate("brain-audit-1", [known], [SHIPPED], CardFolder.flat(tmp_path), QUIET, new_name="x")
    assert seen == 72
    assert list(tmp_path.iterdir()) == []


def test_names_that_ship_or_belong_to_another_card_are_refused(tmp_path: Path) -> None:
    target = CardFolder.flat(tmp_path)
    with pytest.raises(UsageError, match="ships, and goes before"):
        calibrate("grey-similarity", [people(200)], [SHIPPED], target, QUIET)
    with pytest.raises(UsageError, match="small letters"):
        calibrate("grey-similarity", [people(200)], [SHIPPED], target, QUIET, new_name="Grey!")
    with pytest.raises(UsageError, match="lesion"):
        calibrate("lesion-brain-1", [people(200)], [SHIPPED], target, QUIET, new_name="x")


def test_the_command_writes_a_card_with_weights_that_a_policy_can_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    assert run(["init", str(home)]) == 0
    monkeypatch.setattr("gateway.learn.calibrating.read_cohort", lambda _text: synthetic_chest(200, 1, 9, size=64))
    words = ["models", "calibrate", "chest-audit-1", "--cohort", "synthetic-chest=200,1,9", "--home", str(home)]
    assert run(words) == 2
    assert "--name" in capsys.readouterr().err
    assert run([*words, "--name", "chest-ours", "--valid-until", "2099-01-01"]) == 0
    assert "200 people, 0 left out" in capsys.readouterr().out.replace("\n", " ")
    card, folder = find_card("chest-ours", folders_of(home / "models"))
    assert weights_of(card, folder) is not None
    assert len(read_people(card, folder)) == sum(one.people for one in card.trained_on)
    assert impostors_of(card, folder).people == 200
    assert str(card.valid_until) == "2099-01-01"
