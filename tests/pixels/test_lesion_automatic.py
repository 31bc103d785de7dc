"""`lesion_preserving` with a card that marks the lesion where nobody drew it: what it does, tells and holds."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
import yaml
from pydicom.dataset import Dataset
from safetensors.torch import load, save
from scipy import ndimage

from gateway.errors import Hold
from gateway.pixels import Instance, Work, run_stage
from gateway.pixels.lesion_preserving import LesionPreserving, MaskCard
from gateway.pixels.stage_card import folders_of
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from gateway.study import Step
from tests.lesion_series import CARD, MASK_CARD, instances, modality_of, write_card, write_mask_card, write_study
from tests.lesion_studies import MM, lesion_of
from tests.pixels.test_lesion_stage import changed, volumes

POLICY = Policy(name="lesion", header=HeaderPolicy(), gate=GatePolicy(study={}))
PERSON = 1


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_mask_card(write_card(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_study(tmp_path_factory.mktemp("study"), PERSON)


@pytest.fixture(scope="module")
def images(study: list[Path]) -> list[Path]:
    """Without the segmentation."""
    return [path for path in study if modality_of(path) == "MR"]


def run(group: list[Instance], models: Path, store: Path, **parameters: Any) -> list[Step]:
    stage = LesionPreserving(**{"card": CARD, "mask": MaskCard(MASK_CARD), **parameters})
    return run_stage("lesion_preserving", stage, group, Work(POLICY, b"s" * 32, models), store)


def held(group: list[Instance], models: Path, tmp_path: Path) -> Hold:
    before = [one.candidate.read_bytes() for one in group]
    with pytest.raises(Hold) as hold:
        run(group, models, tmp_path / "estimates")
    assert [one.candidate.read_bytes() for one in group] == before
    return hold.value


def test_the_lesion_that_nobody_drew_stays_and_the_rest_is_new(
    models: Path, images: list[Path], tmp_path: Path
) -> None:
    group = instances(images, tmp_path / "out")
    steps = run(group, models, tmp_path / "estimates")
    before, after = (volumes(some) for some in ([one.original for one in group], [one.candidate for one in group]))
    lesion = lesion_of(PERSON)
    near = ndimage.distance_transform_edt(~lesion, sampling=MM) <= 20.0
    for name in ("T1", "FLAIR"):
        same = after[name] == before[name]
        assert same[lesion].mean() > 0.98
        assert (~same)[(before[name] > 0) & ~near].mean() > 0.9
    assert sum(step.counts["mask_by_card"] for step in steps) == len(images)


def test_object_and_estimate_say_that_a_card_marked_it(models: Path, images: list[Path], tmp_path: Path) -> None:
    group = instances(images, tmp_path / "out")
    run(group, models, tmp_path / "estimates")
    sha256 = yaml.safe_load((models / f"{MASK_CARD}.yaml").read_text())["weights"]["sha256"]
    for one in group:
        said = pydicom.dcmread(one.candidate, stop_before_pixels=True).DerivationDescription
        assert f"marked by card {MASK_CARD} (weights sha256 {sha256[:12]}) and by no person" in said
        assert len(said) <= 1024  # ST
    (stored,) = (tmp_path / "estimates").glob("*/facts.json")
    facts = json.loads(stored.read_bytes())
    assert (facts["mask"]["card"], facts["mask"]["sha256"]) == (MASK_CARD, sha256)
    assert 0.9 < facts["mask"]["certainty"] <= 1


def test_the_same_study_twice_gives_the_same_bytes(models: Path, images: list[Path], tmp_path: Path) -> None:
    ends = []
    for turn in ("first", "second"):
        group = instances(images, tmp_path / turn)
        run(group, models, tmp_path / f"estimates-{turn}")
        ends.append([one.candidate.read_bytes() for one in group])
    assert ends[0] == ends[1]


def test_a_mask_that_the_study_brings_beats_the_card(models: Path, study: list[Path], tmp_path: Path) -> None:
    ends = []
    for mask in (MaskCard(MASK_CARD), "from-study"):
        group = instances(study, tmp_path / f"out-{len(ends)}")
        steps = run(group, models, tmp_path / f"estimates-{len(ends)}", mask=mask)
        assert not any("mask_by_card" in step.counts for step in steps)
        ends.append([one.candidate.read_bytes() for one in group])
    assert ends[0] == ends[1]


def test_a_sequence_on_a_grid_of_its_own_is_marked_too(models: Path, images: list[Path], tmp_path: Path) -> None:
    def cut(dataset: Dataset) -> None:
        if dataset.SeriesDescription == "T1":
            dataset.PixelData = np.ascontiguousarray(dataset.pixel_array[:, 2:-2]).tobytes()
            dataset.Columns -= 4
            x, y, z = dataset.ImagePositionPatient
            dataset.ImagePositionPatient = [float(x) + 2 * MM[2], y, z]

    group = instances(changed(images, tmp_path / "in", cut), tmp_path / "out")
    run(group, models, tmp_path / "estimates")
    before, after = (volumes(some) for some in ([one.original for one in group], [one.candidate for one in group]))
    lesion = lesion_of(PERSON)
    assert (after["T1"] == before["T1"])[lesion[:, :, 2:-2]].mean() > 0.95
    assert (after["FLAIR"] == before["FLAIR"])[lesion].mean() > 0.98


# -- what holds ---------------------------------------------------------------------------------------------------


def with_parameters(models: Path, folder: Path, **given: Any) -> Path:
    """The cards once more, the segmenter's with other parameters."""
    shutil.copytree(models, folder)
    path = folder / f"{MASK_CARD}.yaml"
    card = yaml.safe_load(path.read_text())
    card["parameters"] |= given
    path.write_text(yaml.safe_dump(card))
    return folder


def test_a_head_in_which_nothing_certain_is_found_is_held(models: Path, images: list[Path], tmp_path: Path) -> None:
    """Plain brain in place of the ball, under a card that takes such heads for its own kind."""
    heights = [float(pydicom.dcmread(path, stop_before_pixels=True).ImagePositionPatient[2]) for path in images]

    def healthy(dataset: Dataset) -> None:
        ball = lesion_of(PERSON)[round((float(dataset.ImagePositionPatient[2]) - min(heights)) / MM[0])]
        values = dataset.pixel_array.copy()
        if ball.any():
            values[ball] = int(np.median(values[(values > 0) & ~ball]))
        dataset.PixelData = values.tobytes()

    wide = {f"domain {kind} {name}": (0.0, 1.0) for kind in ("histogram", "bright share") for name in ("T1", "FLAIR")}
    wider = with_parameters(models, tmp_path / "models", **{name: list(limits) for name, limits in wide.items()})
    group = instances(changed(images, tmp_path / "in", healthy), tmp_path / "out")
    hold = held(group, wider, tmp_path)
    assert hold.reason in ("lesion_mask_empty", "lesion_mask_uncertain")
    assert hold.at.startswith(f"card {MASK_CARD}: ")


def test_an_empty_mask_of_the_card_is_held(models: Path, images: list[Path], tmp_path: Path) -> None:
    """A network whose output is far below any probability."""
    blind = with_parameters(models, tmp_path / "models")
    weights, path = blind / f"{MASK_CARD}.safetensors", blind / f"{MASK_CARD}.yaml"
    tensors = load(weights.read_bytes())
    (last,) = [name for name, one in tensors.items() if name.endswith(".bias") and one.shape == (1,)]
    tensors[last] = tensors[last] - 100
    weights.write_bytes(save(tensors))
    card = yaml.safe_load(path.read_text())
    card["weights"]["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
    path.write_text(yaml.safe_dump(card))
    hold = held(instances(images, tmp_path / "out"), blind, tmp_path)
    assert (hold.reason, hold.at) == ("lesion_mask_empty", f"card {MASK_CARD}: it found nothing")


def test_a_mask_below_the_card_s_certainty_is_held(models: Path, images: list[Path], tmp_path: Path) -> None:
    stricter = with_parameters(models, tmp_path / "models", least_certainty=0.9999)
    hold = held(instances(images, tmp_path / "out"), stricter, tmp_path)
    assert hold.reason == "lesion_mask_uncertain"
    assert "at least 1.00 is needed" in hold.at


def test_a_study_without_a_sequence_of_the_card_is_held(models: Path, images: list[Path], tmp_path: Path) -> None:
    some = [path for path in images if pydicom.dcmread(path, stop_before_pixels=True).SeriesDescription == "T1"]
    hold = held(instances(some, tmp_path / "out"), models, tmp_path)
    assert (hold.reason, hold.at) == (
        "outside_domain",
        f"card {MASK_CARD}: the study has no FLAIR, which the card needs",
    )


def test_a_study_of_another_kind_is_held_by_the_card(models: Path, images: list[Path], tmp_path: Path) -> None:
    def shrunk(dataset: Dataset) -> None:
        dataset.PixelSpacing = [float(one) / 3 for one in dataset.PixelSpacing]
        dataset.ImagePositionPatient = [float(one) / 3 for one in dataset.ImagePositionPatient]

    hold = held(instances(changed(images, tmp_path / "in", shrunk), tmp_path / "out"), models, tmp_path)
    assert hold.reason == "outside_domain"
    assert hold.at.startswith(f"card {MASK_CARD}: ")
    assert "head x (mm)" in hold.at


def test_an_empty_segmentation_is_no_reason_to_ask_the_card(models: Path, study: list[Path], tmp_path: Path) -> None:
    def empty(dataset: Dataset) -> None:
        if dataset.Modality == "SEG":
            dataset.PixelData = bytes(len(dataset.PixelData))

    group = instances(changed(study, tmp_path / "in", empty), tmp_path / "out")
    hold = held(group, models, tmp_path)
    assert (hold.reason, MASK_CARD in hold.at) == ("lesion_mask_empty", False)


# -- the policy ---------------------------------------------------------------------------------------------------


def test_a_policy_names_a_segmenter_s_card_and_no_other(models: Path) -> None:
    def faults(mask: str) -> list[str]:
        stage = LesionPreserving(CARD, MaskCard(mask))
        return [says for says, _ in stage.misfits(POLICY, folders_of(models))]

    assert faults(MASK_CARD) == []
    assert faults("nobody-1")[0].startswith("no card is called nobody-1")
    assert faults(CARD) == [f"the card {CARD} is no lesion segmenter's (role segmenter, algorithm lesion_segmentation)"]


def test_a_card_that_looks_at_more_than_the_anonymiser_makes_is_refused(models: Path, tmp_path: Path) -> None:
    wider = with_parameters(models, tmp_path / "models", sequences="T1,T2,FLAIR")
    ((says, _),) = LesionPreserving(CARD, MaskCard(MASK_CARD)).misfits(POLICY, folders_of(wider))
    assert says == f"the card {MASK_CARD} looks at T2, which the card {CARD} does not make"


def test_the_stage_says_who_marks_the_lesion() -> None:
    stage = LesionPreserving(CARD, MaskCard(MASK_CARD))
    assert f"the card {MASK_CARD} marks it" in stage.describe()
    assert stage.cards == (CARD, MASK_CARD)
    assert "without a lesion's segmentation or contours is held" in LesionPreserving(CARD).describe()
