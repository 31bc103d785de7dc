"""Region rules: strict files, first match on the header as received, regions of ultrasound (PS3.3 C.8.5.5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydicom.dataset import Dataset
from text_objects import US, group_of, save, texture, work

from gateway.errors import PolicyError
from gateway.frames import KEYWORDS, Changes, EncodedImage, transcode
from gateway.pixels import burned_in_text as stage_module
from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.regions import (
    FOLDER,
    Device,
    RegionRule,
    image_regions,
    load_regions,
    outside,
    rule_for,
    tables_digest,
)

RULE = """rules:
  - name: one
    device: {manufacturer: ["maker*"], rows: 10, columns: 20}
    blank: [[0, 0, 2, 20]]
    source: synthetic
"""


def device(**elements: object) -> Dataset:
    dataset = Dataset()
    for keyword, value in elements.items():
        setattr(dataset, keyword, value)
    return dataset


def written(folder: Path, text: str) -> Path:
    (folder / "rules.yaml").write_text(text)
    return folder


def test_the_shipped_rules_load_and_lie_within_their_screens() -> None:
    rules = load_regions()
    assert len(rules) >= 12
    for rule in rules:
        for _, _, bottom, right in rule.blank:
            assert bottom <= (rule.device.rows or 0), rule.name
            assert right <= (rule.device.columns or 0), rule.name


def test_a_device_is_known_by_maker_model_and_size() -> None:
    epiq = device(Manufacturer="Philips Medical Systems", ManufacturerModelName="EPIQ 5G", Rows=768, Columns=1024)
    rule = rule_for(epiq)
    assert rule is not None
    assert (rule.name, rule.blank) == ("philips-epiq-1024", ((0, 0, 49, 1024),))
    epiq.Rows = 600
    assert rule_for(epiq) is None
    assert rule_for(Dataset()) is None


def test_software_may_have_several_values_and_one_must_fit(tmp_path: Path) -> None:
    text = RULE.replace("rows:", 'software: ["5.*"], rows:')
    (rule,) = load_regions(written(tmp_path, text))
    fits = device(Manufacturer="MAKER INC", SoftwareVersions=["1.0", "5.2"], Rows=10, Columns=20)
    assert rule.device.fits(fits)
    fits.SoftwareVersions = "4"
    assert not rule.device.fits(fits)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("source:", "sauce:", 5, "unknown key sauce"),
        ("rows: 10, ", "", 2, "need the size"),
        ("[0, 0, 2, 20]", "[2, 0, 2, 20]", 4, "half open"),
        ("[0, 0, 2, 20]", "[0, 0, 2]", 4, ""),
        ('"maker*"', '"*"', 3, "fits every device"),
        ("name: one", "name: One", 2, ""),
        ("rows: 10", "rows: '10'", 3, "whole number"),
    ],
)
def test_a_fault_in_a_file_is_told_with_its_line(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_regions(written(tmp_path, RULE.replace(old, new)))
    assert any(fault.line == line and says in fault.says for fault in caught.value.faults), caught.value


def test_a_name_that_is_there_twice_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(RULE)
    (tmp_path / "b.yaml").write_text(RULE)
    with pytest.raises(PolicyError, match="twice"):
        load_regions(tmp_path)


def test_another_rule_or_word_is_another_digest_and_a_comment_is_not(tmp_path: Path) -> None:
    digests = set()
    for name, rules, words in (
        ("same", RULE, "L R"),
        ("comment", "# here\n" + RULE, "L R # both"),
        ("rule", RULE.replace("2, 20", "3, 20"), "L R"),
        ("word", RULE, "L"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        written(folder, rules)
        (folder / "kept_text.txt").write_text(words)
        digests.add(tables_digest(folder))
    assert len(digests) == 3
    assert len(tables_digest(FOLDER)) == 16


def ultrasound(*regions: tuple[int, int, int, int]) -> Dataset:
    dataset = Dataset()
    dataset.SequenceOfUltrasoundRegions = [
        device(RegionLocationMinX0=x0, RegionLocationMinY0=y0, RegionLocationMaxX1=x1, RegionLocationMaxY1=y1)
        for x0, y0, x1, y1 in regions
    ]
    return dataset


def test_regions_include_their_corners() -> None:
    assert image_regions(ultrasound((10, 20, 109, 219))) == [(20, 10, 220, 110)]


def test_regions_that_make_no_sense_are_not_believed() -> None:
    assert image_regions(ultrasound((10, 20, 5, 219))) == []
    assert image_regions(Dataset()) == []
    broken = ultrasound((1, 1, 5, 5))
    del broken.SequenceOfUltrasoundRegions[0].RegionLocationMaxX1
    assert image_regions(broken) == []


region = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 30), st.integers(1, 30)).map(
    lambda r: (r[0], r[1], r[0] + r[2], r[1] + r[3])
)


@given(st.lists(region, min_size=1, max_size=4))
def test_outside_is_exactly_what_no_region_has(inside: list[tuple[int, int, int, int]]) -> None:
    rows, columns = 40, 48
    expected = np.ones((rows, columns), int)
    for top, left, bottom, right in inside:
        expected[top:bottom, left:right] = 0
    painted = np.zeros((rows, columns), int)
    for top, left, bottom, right in outside(inside, rows, columns):
        painted[top:bottom, left:right] += 1
    assert np.array_equal(painted, expected)


class Blind:
    """An engine that sees no text."""

    passes = 0

    def detect(self, *_: object) -> list[object]:
        return []

    def read(self, *_: object) -> list[object]:
        return []


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
def test_a_rule_blanks_its_regions_however_the_frames_are_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keyword: str
) -> None:
    """An object whose syntax somebody did not foresee must not pass unchanged."""
    monkeypatch.setattr(stage_module, "engine", Blind)
    frame = np.clip(texture((60, 80)), 1, 255).astype(np.uint8)
    path = save(tmp_path / "a.dcm", [frame, frame], US, Manufacturer="Maker Inc")
    transcode(path, path, KEYWORDS[keyword], Changes())
    rule = RegionRule(
        name="one", device=Device(manufacturer=("maker*",), rows=60, columns=80), blank=((0, 0, 9, 80),), source="-"
    )
    (instance,) = group_of(tmp_path, path)
    stage = BurnedInText(regions=(rule,), unknown_device="hold")
    stage.apply([instance], work(), stage.estimate([instance], work()))
    with EncodedImage.open(instance.candidate) as image:
        assert image.transfer_syntax == KEYWORDS[keyword]
        for at in range(2):
            stored = image.stored(at)
            assert not stored[:9].any()
            np.testing.assert_array_equal(stored[9:], frame[9:])
