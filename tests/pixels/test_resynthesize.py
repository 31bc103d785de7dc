"""Films through `resynthesize`: made anew as the level says, marked as what they are, and held when in doubt."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset

from gateway.gate import Pair
from gateway.gate.encoding import judge_encoding
from gateway.learn.objects import coded
from gateway.pixels import Work
from gateway.pixels.resynthesize import Resynthesize
from gateway.pixels.stage_card import folders_of
from tests.adjustable_cards import (
    CARD,
    POLICY,
    calibrated,
    changed,
    held,
    instances,
    run,
    work_of,
    write_films,
)

# -- what is written ------------------------------------------------------------------------------------------------


def test_a_film_is_made_anew_and_its_header_says_so(models: Path, study: list[Path], tmp_path: Path) -> None:
    group = instances(study, tmp_path / "out")
    (step,) = run(group, work_of(models), tmp_path / "estimates")
    before, after = pydicom.dcmread(group[0].original), pydicom.dcmread(group[0].candidate)
    assert (after.pixel_array != before.pixel_array).mean() > 0.9
    assert step.counts == {"frames": 1, "near_limit": step.counts["near_limit"], "level 0.9": 1}
    assert after.ImageType == ["DERIVED", "PRIMARY"]
    assert after.SyntheticData == "YES"
    assert CARD in after.DerivationDescription
    assert "level 0.9" in after.DerivationDescription
    assert "Not for diagnosis" in after.DerivationDescription
    assert after.ImageComments.startswith("NOT FOR DIAGNOSIS")
    assert after.ContributingEquipmentSequence[-1].PurposeOfReferenceCodeSequence[0].CodeValue == "109104"
    assert f"resynthesize {CARD}" in after.DeidentificationMethod
    for keyword in (
        *("Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "RescaleSlope"),
        *("RescaleIntercept", "WindowCenter", "WindowWidth", "PhotometricInterpretation", "ViewPosition"),
        *("PatientOrientation", "SOPInstanceUID"),
    ):
        assert after[keyword] == before[keyword]
    verdict = judge_encoding([Pair(group[0].name, group[0].original, group[0].candidate)])
    assert {finding.rule for finding in verdict.findings} <= {"does not say YES", "no method stated"}  # the header's


def test_the_same_key_and_level_give_the_same_bytes_and_others_do_not(
    models: Path, study: list[Path], tmp_path: Path
) -> None:
    def made(name: str, store: str, work: Work) -> bytes:
        group = instances(study, tmp_path / name)
        run(group, work, tmp_path / store)
        return group[0].candidate.read_bytes()

    first = made("first", "a", work_of(models))
    assert made("again", "b", work_of(models)) == first
    assert made("replayed", "a", work_of(models)) == first
    assert made("same level", "c", work_of(models, level=0.9)) == first
    others = {
        made("other key", "a", work_of(models, b"t" * 32)),
        made("other level", "a", work_of(models, level=0.3)),
        first,
    }
    assert len(others) == 3


def test_a_late_instance_changes_nothing_that_was_made_before(models: Path, tmp_path: Path) -> None:
    film, late = write_films(tmp_path / "in", visits=2)
    alone, both = instances([film], tmp_path / "alone"), instances([late, film], tmp_path / "both")
    run(alone, work_of(models), tmp_path / "estimates")
    run(both, work_of(models), tmp_path / "estimates")
    assert both[1].candidate.read_bytes() == alone[0].candidate.read_bytes()
    assert both[0].candidate.read_bytes() != alone[0].candidate.read_bytes()


def test_where_the_largest_value_is_black_the_same_picture_comes_out(
    models: Path, study: list[Path], tmp_path: Path
) -> None:
    def inverted(dataset: Dataset) -> None:
        dataset.PixelData = (4095 - dataset.pixel_array).astype("<u2").tobytes()
        dataset.PhotometricInterpretation = "MONOCHROME1"

    group = instances(
        [study[0], changed(study[0], tmp_path / "inverted.dcm", inverted)],
        tmp_path / "out",
    )
    for one in group:
        run([one], work_of(models), tmp_path / "estimates")
    plain, other = (pydicom.dcmread(one.candidate) for one in group)
    assert other.PhotometricInterpretation == "MONOCHROME1"
    assert np.abs(4095 - other.pixel_array.astype(int) - plain.pixel_array.astype(int)).max() <= 1


def test_a_film_of_another_size_and_depth_keeps_both(models: Path, study: list[Path], tmp_path: Path) -> None:
    def larger(dataset: Dataset) -> None:
        values = np.kron(dataset.pixel_array, np.ones((5, 4)))
        dataset.Rows, dataset.Columns = values.shape
        dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, 16, 15, 1
        dataset.PixelData = (values - 3000).astype("<i2").tobytes()

    group = instances([changed(study[0], tmp_path / "larger.dcm", larger)], tmp_path / "out")
    run(group, work_of(models), tmp_path / "estimates")
    after = pydicom.dcmread(group[0].candidate)
    assert after.pixel_array.shape == (80, 64)
    assert after.pixel_array.dtype == np.int16
    assert -3500 < after.pixel_array.min() < after.pixel_array.max() < 1500


# -- what holds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("picture", "statistic"),
    [
        (lambda y, x: (x + y) % 2, "spread"),  # a pattern
        (lambda y, x: x / 15, "mean"),  # a ramp
        (lambda y, x: 1.0 - 0.9 * np.exp(-((y - 8) ** 2 + (x - 8) ** 2) / 30), "mean"),  # a film shown the wrong way
    ],
)
def test_what_is_no_chest_film_is_held(
    models: Path, study: list[Path], tmp_path: Path, picture: Callable[..., Any], statistic: str
) -> None:
    def other(dataset: Dataset) -> None:
        y, x = np.mgrid[:16, :16]
        dataset.PixelData = (4095 * np.asarray(picture(y, x), float)).astype("<u2").tobytes()

    path = changed(study[0], tmp_path / "other.dcm", other)
    hold = held(instances([path], tmp_path / "out"), work_of(models), tmp_path / "estimates")
    assert hold.reason == "outside_domain"
    assert statistic in hold.at


def test_a_picture_of_another_kind_holds_or_is_left_out(models: Path, tmp_path: Path) -> None:
    film, second = write_films(tmp_path / "in", visits=2)
    changes: dict[str, Callable[[Dataset], Any]] = {
        "projection": lambda one: setattr(one, "ViewPosition", "LL"),
        "a projection": lambda one: setattr(one, "ViewCodeSequence", [coded("399198007", "SCT", "right lateral")]),
        "body part": lambda one: setattr(one, "BodyPartExamined", "HAND"),
        "modality": lambda one: setattr(one, "Modality", "MG"),
        "localizer": lambda one: setattr(one, "ImageType", ["ORIGINAL", "PRIMARY", "LOCALIZER"]),
    }
    for number, (why, change) in enumerate(changes.items()):
        path = changed(second, tmp_path / f"{number}.dcm", change)
        group = instances([film, path], tmp_path / why)
        hold = held(group, work_of(models), tmp_path / "estimates")
        assert (hold.reason, why in hold.at) == ("picture_uncovered", True)
        steps = run(group, work_of(models), tmp_path / "estimates", uncovered="drop")
        assert [step.dropped for step in steps] == ["", "uncovered"]
        alone = held(instances([path], tmp_path / f"alone {why}"), work_of(models), tmp_path / "estimates")
        assert alone.reason == "no_picture"


@pytest.mark.parametrize(
    "code", ["272479007", "399348003", "R-10206"]
)  # PS3.16 CID 4010: postero-anterior, its reverse
def test_a_frontal_view_that_is_stated_by_code_is_made_anew(
    models: Path, study: list[Path], tmp_path: Path, code: str
) -> None:
    def by_code(dataset: Dataset) -> None:
        dataset.ViewPosition = ""
        dataset.ViewCodeSequence = [coded(code, "SRT" if code.startswith("R") else "SCT", "a view")]

    group = instances([changed(study[0], tmp_path / "coded.dcm", by_code)], tmp_path / "out")
    assert run(group, work_of(models), tmp_path / "estimates")[0].counts["frames"] == 1


def test_a_follow_up_holds_unless_the_policy_takes_it(models: Path, study: list[Path], tmp_path: Path) -> None:
    group = instances(study, tmp_path / "out")
    assert held(group, work_of(models, follow_up=True), tmp_path / "estimates").reason == "follow_up"
    first = instances(study, tmp_path / "first")
    run(first, work_of(models), tmp_path / "estimates")
    run(group, work_of(models, follow_up=True), tmp_path / "estimates", followups="accept")
    assert group[0].candidate.read_bytes() == first[0].candidate.read_bytes()


def test_a_card_that_is_not_there_or_past_its_date_holds(models: Path, study: list[Path], tmp_path: Path) -> None:
    old = calibrated(models, "tiny-films-old", {0.9: 0.04}, valid_until=date(2026, 11, 1))
    for card in ("nobody-1", old):
        hold = held(instances(study, tmp_path / card), work_of(models), tmp_path / "estimates", card=card)
        assert hold.reason == "card_unusable"
        assert list(Resynthesize(card, levels=(0.5,)).misfits(POLICY, folders_of(models)))
    assert "valid until" in hold.at
