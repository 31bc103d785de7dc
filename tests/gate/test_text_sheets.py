"""Sheets for the gate's readers: every tile once, none over another; parts of a second view."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.gate.text_reading import Read
from gateway.gate.text_sheets import GAP_PIXELS, SHEET_PIXELS, Origin, Placed, Sheets
from gateway.gate.text_stack import parts


class Corners:
    """A reader that reads the first pixel of every bright tile, whose number is its value."""

    def __init__(self) -> None:
        self.sheets: list[np.ndarray] = []

    def __call__(self, sheet: np.ndarray) -> list[Read]:
        self.sheets.append(sheet)
        return []


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.tuples(st.integers(800, 1100), st.integers(800, 1100)), min_size=1, max_size=9))
def test_tiles_lie_beside_each_other_and_none_is_lost(sizes: list[tuple[int, int]]) -> None:
    reader = Corners()
    sheets = Sheets((reader,))
    seen: list[Placed] = []
    for number, size in enumerate(sizes, 1):
        seen += sheets.add(np.full(size, number, np.uint8), Origin(str(number), "place", 0))
    seen += sheets.flush()
    assert sheets.passes == len(reader.sheets)
    counts = sum((np.bincount(sheet.ravel(), minlength=len(sizes) + 1) for sheet in reader.sheets), np.zeros(1, int))
    assert [int(counts[number]) for number in range(1, len(sizes) + 1)] == [rows * columns for rows, columns in sizes]
    assert all(max(sheet.shape) <= SHEET_PIXELS for sheet in reader.sheets)


def test_four_screens_and_a_cut_out_between_them_are_one_sheet() -> None:
    reader = Corners()
    sheets = Sheets((reader,))
    for size in [(768, 1024), (768, 1024), (84, 128), (768, 1024), (768, 1024)]:
        assert not list(sheets.add(np.ones(size, np.uint8), Origin("one", "place", 0)))
    list(sheets.flush())
    assert sheets.passes == 1
    assert 2 * 1024 + GAP_PIXELS <= SHEET_PIXELS


def test_what_is_read_is_said_in_pixels_of_the_frame() -> None:
    def reader(sheet: np.ndarray) -> list[Read]:
        rows, columns = np.nonzero(sheet == 200)
        box = int(rows.min()), int(columns.min()), int(rows.max()) + 1, int(columns.max()) + 1
        return [Read(*box, "WORD", 1.0, 1.0, "rapidocr")]

    sheets = Sheets((reader,))
    picture = np.full((1000, 900), 50, np.uint8)
    list(sheets.add(picture, Origin("other", "place", 0)))
    cut = np.full((800, 800), 60, np.uint8)
    cut[100:120, 30:90] = 200
    list(sheets.add(cut, Origin("one", "place", 3, top=40, left=7)))
    (placed,) = sheets.flush()
    assert (placed.origin.instance, placed.origin.frame) == ("one", 3)
    assert (placed.read.top, placed.read.left, placed.read.bottom, placed.read.right) == (140, 37, 160, 97)


def test_parts_of_a_view_hold_all_that_differs_and_are_whole_where_most_does() -> None:
    mask = np.zeros((200, 300), bool)
    mask[20:30, 40:90] = mask[150:160, 200:210] = True
    found = parts(mask)
    inside = np.zeros_like(mask)
    for one in found:
        inside[one.top : one.bottom, one.left : one.right] = True
    assert inside[mask].all()
    assert inside.mean() < 0.2
    mask[:, :200] = True
    (whole,) = parts(mask)
    assert (whole.top, whole.left, whole.bottom, whole.right) == (0, 0, 200, 300)
    assert parts(np.zeros((50, 60), bool)) == []
