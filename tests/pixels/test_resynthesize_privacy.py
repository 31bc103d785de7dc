"""`resynthesize` by a target risk: which level it takes, what does not load, what holds; markers from the header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
import yaml
from pydicom.dataset import Dataset

from gateway.learn.objects import item
from gateway.pixels.resynthesize import Privacy, Resynthesize
from gateway.pixels.resynthesize_card import keeps
from gateway.pixels.resynthesize_markers import drawn, marks_of
from gateway.pixels.stage_card import folders_of
from gateway.policy import Policy
from gateway.policy.document import Faulty
from gateway.policy.release_section import EscalatePolicy
from models.cards import find_card
from tests.adjustable_cards import (
    CARD,
    POLICY,
    calibrated,
    changed,
    held,
    instances,
    run,
    work_of,
)


def test_a_target_takes_the_weakest_level_that_keeps_it(models: Path, study: list[Path], tmp_path: Path) -> None:
    card = calibrated(models, "tiny-films-two", {0.9: 0.2, 0.6: 0.05, 0.3: 0.01})
    for target, level in ((0.2, "level 0.9"), (0.06, "level 0.6"), (0.02, "level 0.3")):
        group = instances(study, tmp_path / level)
        (step,) = run(group, work_of(models), tmp_path / "estimates", card=card, privacy=Privacy(target))
        assert level in step.counts
    out = instances(study, tmp_path / "out")
    assert (
        "level 0.3" in run(out, work_of(models, level=0.3), tmp_path / "e", card=card, privacy=Privacy(0.06))[0].counts
    )
    for level, target in ((0.9, 0.06), (None, 0.005), (0.95, 0.5)):
        hold = held(
            instances(study, tmp_path / "held"),
            work_of(models, level=level),
            tmp_path / "estimates",
            card=card,
            privacy=Privacy(target),
        )
        assert hold.reason == "level_not_calibrated"


def test_between_two_calibrated_levels_the_weaker_one_s_bound_holds(models: Path) -> None:
    card, _ = find_card(calibrated(models, "tiny-films-six", {0.9: 0.2, 0.3: 0.01}), folders_of(models))
    assert card.calibration is not None
    assert [keeps(card.calibration, level, 0.05) for level in (0.95, 0.9, 0.5, 0.3, 0.1)] == [0, 0, 0, 1, 1]


def test_outside_the_calibrated_domain_nothing_is_promised(models: Path, study: list[Path], tmp_path: Path) -> None:
    card = calibrated(models, "tiny-films-three", {0.9: 0.01})
    path = models / f"{card}.yaml"
    body = yaml.safe_load(path.read_text())
    body["calibration"]["domain"]["mean"] = [0.9, 1.0]
    path.write_text(yaml.safe_dump(body))
    run(instances(study, tmp_path / "levels"), work_of(models), tmp_path / "estimates", card=card)
    hold = held(
        instances(study, tmp_path / "out"), work_of(models), tmp_path / "estimates", card=card, privacy=Privacy(0.05)
    )
    assert (hold.reason, hold.at) == ("outside_domain", "mean")


def test_a_policy_that_asks_what_no_level_keeps_does_not_load(models: Path) -> None:
    folders = folders_of(models)
    card = calibrated(models, "tiny-films-four", {0.9: 0.2, 0.3: 0.03})

    def faults(stage: Resynthesize, policy: Policy = POLICY) -> str:
        return " ".join(says for says, _ in stage.misfits(policy, folders))

    assert "is not calibrated" in faults(Resynthesize(CARD, privacy=Privacy(0.05)))
    assert "no level" in faults(Resynthesize(card, privacy=Privacy(0.02)))
    assert faults(Resynthesize(card, privacy=Privacy(0.05))) == ""
    blind = calibrated(models, "tiny-films-blind", {0.9: 0.2, 0.3: 0.03}, untouched=0.05)
    assert "untouched" in faults(Resynthesize(blind, privacy=Privacy(0.05)))
    assert faults(Resynthesize(blind, privacy=Privacy(0.04))) == ""
    escalating = POLICY.model_copy(update={"escalate": EscalatePolicy(stage="resynthesize", levels=(0.9, 0.3))})
    assert "level 0.9" in faults(Resynthesize(card, privacy=Privacy(0.05)), escalating)
    assert faults(Resynthesize(card, privacy=Privacy(0.3)), escalating) == ""


@pytest.mark.parametrize(
    ("levels", "loads"),
    [((0.9, 0.3), True), ((0.3,), True), ((0.3, 0.9), False), ((2.0, 0.5), False), ((0.9, 0.0), False)],
)
def test_escalation_goes_to_smaller_quantiles_only(models: Path, levels: tuple[float, ...], *, loads: bool) -> None:
    """A smaller r blocks more: in any other order a study that failed would be tried at a weaker level."""
    policy = POLICY.model_copy(update={"escalate": EscalatePolicy(stage="resynthesize", levels=levels)})
    faults = list(Resynthesize(CARD, levels=(0.9, 0.3)).misfits(policy, folders_of(models)))
    assert (not faults) == loads


def test_levels_or_privacy_and_in_order() -> None:
    for wrong in ({}, {"levels": (0.5,), "privacy": Privacy(0.1)}, {"levels": (0.2, 0.9)}):
        with pytest.raises(Faulty):
            Resynthesize(CARD, **wrong)  # type: ignore[arg-type]


# -- markers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "marks"),
    [
        ({"PatientOrientation": ["L", "F"], "ViewPosition": "PA"}, (("L PA", True),)),
        ({"PatientOrientation": ["R", "F"]}, (("R", True),)),
        ({"ImageLaterality": "R"}, (("R", False),)),
        ({"ViewPosition": "AP"}, (("AP", False),)),
        ({"ViewPosition": "SMITH"}, ()),  # no defined term is no header fact
        ({"Laterality": "B"}, ()),
        ({}, ()),
    ],
)
def test_markers_come_from_the_header_alone(header: dict[str, Any], marks: tuple[tuple[str, bool], ...]) -> None:
    assert marks_of(item(**header)) == marks


def test_markers_are_drawn_at_their_edge_in_white_and_nowhere_else(
    models: Path, study: list[Path], tmp_path: Path
) -> None:
    grey = np.full((160, 120), 0.25, np.float32)
    with_mark = drawn(grey, (("L PA", True),))
    found = np.argwhere(with_mark != grey)
    assert with_mark.max() > 0.7
    assert found[:, 0].max() < 40
    assert found[:, 1].min() > 60
    assert drawn(grey, ()) is grey
    assert (drawn(np.zeros((16, 16), np.float32), (("L", True),)) == 0).all()  # too small for a sign

    def larger(dataset: Dataset) -> None:
        values = np.kron(dataset.pixel_array, np.ones((8, 8)))
        dataset.Rows, dataset.Columns = values.shape
        dataset.PixelData = values.astype("<u2").tobytes()

    path, pictures = changed(study[0], tmp_path / "larger.dcm", larger), {}
    for markers in ("drop", "redraw"):
        group = instances([path], tmp_path / markers)
        run(group, work_of(models), tmp_path / "estimates", markers=markers)
        pictures[markers] = pydicom.dcmread(group[0].candidate).pixel_array.astype(int)
    differs = np.argwhere(pictures["drop"] != pictures["redraw"])
    assert len(differs) >= 5
    assert differs[:, 0].max() < 32
    assert differs[:, 1].min() > 64
