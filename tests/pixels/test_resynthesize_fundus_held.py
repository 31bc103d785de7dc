"""What `resynthesize` does not take for a colour photograph of a fundus holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydicom.dataset import Dataset

from gateway.learn.objects import coded
from tests.adjustable_cards import changed, held, instances, work_of, write_films
from tests.adjustable_eyes import CARD


@pytest.mark.parametrize(
    ("why", "change"),
    [
        ("not in colour", "grey"),
        ("a modality", "modality"),
        ("a body part", "part"),
        ("a region", "region"),
    ],
)
def test_what_is_no_colour_photograph_of_a_fundus_holds(
    cards: Path, photograph: Path, tmp_path: Path, why: str, change: str
) -> None:
    def other(dataset: Dataset) -> None:
        if change == "grey":
            dataset.PixelData = dataset.pixel_array.max(-1).astype(np.uint8).tobytes()
            dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
            del dataset.PlanarConfiguration
        elif change == "modality":
            dataset.Modality = "OPT"
        elif change == "part":
            dataset.BodyPartExamined = "CHEST"
        else:
            dataset.AnatomicRegionSequence = [coded("28726007", "SCT", "Cornea")]

    path = changed(photograph, tmp_path / "other.dcm", other)
    hold = held(instances([path], tmp_path / "out"), work_of(cards), tmp_path / "estimates", card=CARD)
    assert (hold.reason, why in hold.at) == ("no_picture", True)
    both = instances([photograph, path], tmp_path / "both")
    assert held(both, work_of(cards), tmp_path / "estimates", card=CARD).reason == "picture_uncovered"


@pytest.mark.parametrize(("way", "statistic"), [("grey", "red over green"), ("blue", "red over green")])
def test_a_photograph_of_other_colours_is_outside_the_domain(
    cards: Path, photograph: Path, tmp_path: Path, way: str, statistic: str
) -> None:
    def other(dataset: Dataset) -> None:
        values = dataset.pixel_array
        values = values[..., ::-1] if way == "blue" else np.repeat(values.mean(-1, keepdims=True), 3, -1)
        dataset.PixelData = values.astype(np.uint8).tobytes()

    path = changed(photograph, tmp_path / "other.dcm", other)
    hold = held(instances([path], tmp_path / "out"), work_of(cards), tmp_path / "estimates", card=CARD)
    assert (hold.reason, statistic in hold.at) == ("outside_domain", True)


def test_a_film_is_not_made_by_a_card_of_eyes(cards: Path, tmp_path: Path) -> None:
    group = instances(write_films(tmp_path / "film"), tmp_path / "out")
    assert held(group, work_of(cards), tmp_path / "estimates", card=CARD).reason == "no_picture"
