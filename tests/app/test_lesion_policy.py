"""A tumour study through a policy with `lesion_preserving`: DICOM in, header, stage and gate, DICOM out."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pydicom
import pytest
import yaml
from pydicom.dataset import Dataset
from scrubbing import Scrubbing, ends, tree

import gateway.app.workers
from gateway.app.policy.registry import registry_of
from gateway.cli.homes import policy_at
from gateway.cli.policy_preview import previews
from gateway.errors import PolicyError
from gateway.ledger import Ledger
from gateway.policy import load_policy
from gateway.settings import Home
from gateway.volumes import planes_of, sort
from tests.cli.previewing import WorkersHere
from tests.lesion_series import CARD, MASK_CARD, modality_of, write_card, write_mask_card, write_study
from tests.lesion_studies import lesion_of

PERSON = 1
ASPECTS = ["burned_in_text", "recognizable_features", "image_identity"]
POLICY = {
    "name": "lesions",
    "extends": ["ps3.15-basic@2026d"],
    "header": {"options": ["clean-descriptors"]},
    "pixels": [{"lesion_preserving": {"card": CARD}}],
    "gate": {
        "study": {"residual_identifiers": {"max": 0}},
        "not_assessed": [
            {"aspects": ASPECTS, "modality": ["MR", "SEG"], "reason": "synthetic people", "approver": "a test"}
        ],
    },
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_card(tmp_path_factory.mktemp("models"))


@pytest.fixture
def scrubbing(home: Home, models: Path, tmp_path: Path) -> Scrubbing:
    shutil.copytree(models, home.root / "models", dirs_exist_ok=True)
    path = tmp_path / "lesions.yaml"
    path.write_text(yaml.safe_dump(POLICY))
    return Scrubbing(home, tmp_path / "out", path)


def series(paths: list[Path]) -> dict[str, list[Dataset]]:
    found: dict[str, list[Dataset]] = {}
    for path in paths:
        dataset = pydicom.dcmread(path)
        found.setdefault(str(dataset.get("SeriesDescription")), []).append(dataset)
    return found


def test_a_study_arrives_anonymised_with_its_mask_aligned_and_twice_the_same(
    scrubbing: Scrubbing, tmp_path: Path
) -> None:
    write_study(tmp_path / "in", PERSON)
    assert ends(scrubbing(tmp_path / "in")) == [("sent", "")]
    sent = series(sorted(scrubbing.target.rglob("*.dcm")))
    before = series(sorted((tmp_path / "in").rglob("*.dcm")))
    assert sent.keys() == before.keys() == {"T1", "FLAIR", "segmentation"}
    (mask,) = sent["segmentation"]
    lesion = lesion_of(PERSON)
    for name in ("T1", "FLAIR"):
        images = sorted(sent[name], key=lambda one: float(one.ImagePositionPatient[2]))
        old = sorted(before[name], key=lambda one: float(one.ImagePositionPatient[2]))
        new, was = (np.stack([one.pixel_array for one in some]) for some in (images, old))
        np.testing.assert_array_equal(new[lesion], was[lesion])
        assert (new != was)[was > 0].mean() > 0.8
        assert {one.SyntheticData for one in images} == {"YES"}
        assert {one.FrameOfReferenceUID for one in images} == {mask.FrameOfReferenceUID}
        assert images[0].FrameOfReferenceUID != old[0].FrameOfReferenceUID
        assert {one.PatientIdentityRemoved for one in images} == {"YES"}
    (stack,), _ = sort(
        plane for number, one in enumerate(sorted(sent["T1"], key=_height)) for plane in planes_of(one, number)
    )
    marked = np.zeros(stack.shape, np.bool_)
    for plane, frame in zip(planes_of(mask, 0), mask.pixel_array, strict=True):
        index = round((plane.position[2] - stack.affine[2, 3]) / stack.spacing_mm[2])  # type: ignore[union-attr]
        marked[index] |= frame > 0
    np.testing.assert_array_equal(marked, lesion)
    instances = {one.SOPInstanceUID for name in ("T1", "FLAIR") for one in sent[name]}
    sources = {
        group.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID
        for group in mask.PerFrameFunctionalGroupsSequence
    }
    assert sources <= instances
    first = tree(scrubbing.target)
    shutil.rmtree(scrubbing.home.root / "estimates")
    again = Scrubbing(scrubbing.home, tmp_path / "again", scrubbing.policy)
    assert ends(again(tmp_path / "in")) == [("sent", "")]
    assert sorted(tree(again.target).values()) == sorted(first.values())


def _height(dataset: Dataset) -> float:
    return float(dataset.ImagePositionPatient[2])


def test_a_study_without_a_mask_is_held_and_nothing_leaves(scrubbing: Scrubbing, tmp_path: Path) -> None:
    for path in write_study(tmp_path / "in", PERSON):
        if modality_of(path) == "SEG":
            path.unlink()
    assert ends(scrubbing(tmp_path / "in")) == [("held", "lesion_mask_missing")]
    assert not list(scrubbing.target.rglob("*.dcm"))


def test_a_study_without_a_mask_leaves_with_the_card_s_and_the_ledger_tells(
    scrubbing: Scrubbing, models: Path, tmp_path: Path
) -> None:
    write_mask_card(scrubbing.home.root / "models")
    path = tmp_path / "by-card.yaml"
    path.write_text(
        yaml.safe_dump({**POLICY, "pixels": [{"lesion_preserving": {"card": CARD, "mask": {"card": MASK_CARD}}}]})
    )
    for one in write_study(tmp_path / "in", PERSON):
        if modality_of(one) == "SEG":
            one.unlink()
    by_card = Scrubbing(scrubbing.home, tmp_path / "out", path)
    assert ends(by_card(tmp_path / "in")) == [("sent", "")]
    sent = [pydicom.dcmread(one) for one in sorted(by_card.target.rglob("*.dcm"))]
    assert all(f"marked by card {MASK_CARD}" in one.DerivationDescription for one in sent)
    ledger = Ledger(by_card.home.ledger, by_card.keys.ledger)
    (steps,) = [line["steps"] for line in ledger.lines() if "lesion_preserving@1" in line.get("steps", {})]
    assert steps["lesion_preserving@1"]["mask_by_card"] == len(sent)


def test_a_policy_whose_card_is_not_there_does_not_load(scrubbing: Scrubbing, tmp_path: Path) -> None:
    load_policy(Path(scrubbing.policy), registry_of(scrubbing.home.root / "models"))
    with pytest.raises(PolicyError) as error:
        load_policy(Path(scrubbing.policy), registry_of(tmp_path))
    (fault,) = error.value.faults
    assert f"no card is called {CARD}" in fault.says
    (scrubbing.home.root / "models" / f"{CARD}.safetensors").write_bytes(b"another file")
    with pytest.raises(PolicyError):
        load_policy(Path(scrubbing.policy), registry_of(scrubbing.home.root / "models"))


@pytest.mark.parametrize(
    ("mask", "says"),
    [("from-seq", "must be 'from-study', 'from-seg' or 'from-rtstruct'"), ({"card": "nobody-1"}, "no card is called")],
)
def test_a_mask_that_is_not_there_is_one_fault(scrubbing: Scrubbing, tmp_path: Path, mask: object, says: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump({**POLICY, "pixels": [{"lesion_preserving": {"card": CARD, "mask": mask}}]}))
    with pytest.raises(PolicyError) as error:
        load_policy(path, registry_of(scrubbing.home.root / "models"))
    (fault,) = error.value.faults
    assert says in fault.says


def test_a_preview_is_made_with_the_home_s_own_cards(
    scrubbing: Scrubbing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway.app.workers, "Workers", WorkersHere)
    write_study(tmp_path / "in", PERSON)
    chosen = policy_at(str(scrubbing.policy), scrubbing.home)
    files = sorted((tmp_path / "in").rglob("*.dcm"))
    (found,), _ = previews([(str(scrubbing.policy), chosen)], files, home=scrubbing.home.root, project="", items=1)
    assert {one.reason for one in found} == {""}
    assert all("lesion_preserving" in [step.stage for step in one.steps] for one in found)
    assert all(one.leaves for one in found)
