"""Short lines that stand close under each other are read line by line, and none of them stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.data import get_testdata_file
from text_objects import mask_of, work

from gateway.pixels import Instance
from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.text_blocks import lines_within
from gateway.pixels.text_engine import Line

ULTRASOUND = "examples_ybr_color.dcm"
# Where "MI 0.9 TIS 0.7" stands in it, line under line, in small print (seen by eye).
INDICES = slice(60, 98), slice(302, 318)


def block(top: float, left: float, bottom: float, right: float, lean: float = 0.0) -> Line:
    corners = [[left, top], [right, top + lean], [right, bottom + lean], [left, bottom]]
    return Line(np.array(corners, np.float32), 0.8)


def stacked(rows: list[int], text: str = "MI 0.9") -> np.ndarray:
    picture = sum(mask_of(text, (120, 90), at=(row, 10), size=14) for row in rows)
    return np.repeat((255 * np.clip(picture, 0, 1)).astype(np.uint8)[..., None], 3, 2)


@pytest.mark.parametrize("rows", [[10, 30], [10, 30, 50, 70]])
def test_lines_are_told_apart_where_nothing_is_drawn_between_them(rows: list[int]) -> None:
    found = lines_within(stacked(rows), block(8, 6, rows[-1] + 20, 70))
    assert len(found) == len(rows)
    for line, row in zip(found, rows, strict=True):
        inked = np.flatnonzero(mask_of("MI 0.9", (120, 90), at=(row, 10), size=14).any(1))
        assert line.extent[0] <= inked[0] + 1
        assert line.extent[2] >= inked[-1]
        assert line.extent[2] - line.extent[0] < 20


def test_one_line_a_leaning_one_and_an_empty_place_are_no_blocks() -> None:
    assert lines_within(stacked([10]), block(8, 6, 30, 70)) == []
    assert lines_within(stacked([10, 30]), block(8, 6, 50, 70, lean=20)) == []
    assert lines_within(np.zeros((120, 90, 3), np.uint8), block(8, 6, 50, 70)) == []
    assert lines_within(stacked([10, 30]), block(-20, -9, 3, 2)) == []


def test_of_a_real_clip_no_line_of_a_block_stays(tmp_path: Path) -> None:
    source, target = Path(get_testdata_file(ULTRASOUND)), tmp_path / "after.dcm"
    target.write_bytes(source.read_bytes())
    group, stage = [Instance("00001", source, target)], BurnedInText()
    stage.apply(group, work(), stage.estimate(group, work()))
    before, after = pydicom.dcmread(source).pixel_array, pydicom.dcmread(target).pixel_array
    brightest = before[(slice(None), *INDICES, 0)].max()
    assert brightest > 90
    assert after[(slice(None), *INDICES, 0)].max() < brightest / 2
