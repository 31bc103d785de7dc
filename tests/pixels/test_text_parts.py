"""The parts of the look for text: grounds without it, ends of lines, sheets, a second opinion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from text_objects import drawn, mask_of, texture

from gateway.pixels import text_lines, text_look
from gateway.pixels.text_boxes import continues, covered_share, gap_of
from gateway.pixels.text_closer import Answer
from gateway.pixels.text_ends import drawn_out
from gateway.pixels.text_engine import Line, Sign, crop, engine
from gateway.pixels.text_ground import blended, covered
from gateway.pixels.text_judge import Judge, Kind
from gateway.pixels.text_look import look
from gateway.pixels.text_opinion import second_opinion
from gateway.pixels.text_sheet import SHEET_PX, read_lines
from gateway.pixels.text_words import Hints, hints_of

LINE = "ZZSYNTH LEAKTEST"


def unit(picture: NDArray[np.generic]) -> NDArray[np.float32]:
    return np.asarray(picture[..., None] / 255, np.float32)


@settings(max_examples=12, deadline=None)
@given(
    box=st.tuples(st.integers(0, 80), st.integers(0, 200), st.integers(4, 40), st.integers(4, 120)),
    seed=st.integers(0, 9),
)
def test_a_ground_keeps_every_pixel_beside_and_none_of_the_text(box: tuple[int, int, int, int], seed: int) -> None:
    top, left, rows, columns = box
    place = top, left, min(96, top + rows), min(256, left + columns)
    values = unit(texture((96, 256), seed))
    inside = np.zeros((96, 256), bool)
    inside[place[0] : place[2], place[1] : place[3]] = True
    for fill in (covered, blended):
        out = fill(values, [place])
        assert np.array_equal(out[~inside], values[~inside])
        assert np.isfinite(out).all()
        marked = values.copy()
        marked[inside] = 5
        assert np.array_equal(fill(marked, [place]), out)  # what was there leaves no trace


def test_between_two_blended_lines_nothing_looks_like_a_line() -> None:
    """Flat strips made the ground between them one (bench.text, development half)."""
    values = unit(texture((160, 300)))
    places = [(20, 40, 50, 280), (90, 40, 120, 280)]
    strips = blended(values, places)
    for top in (20, 90):
        assert strips[top : top + 30, 40:280].std() > 0.5 * values[top : top + 30, 40:280].std()
    steps = np.abs(np.diff(strips[..., 0].mean(1)))
    assert steps.max() < 4 * np.abs(np.diff(values[..., 0].mean(1))).max()


def test_a_box_is_drawn_out_to_the_letters_that_it_cuts_and_no_further() -> None:
    mask = mask_of(LINE, (96, 256), at=(30, 40), size=18)
    picture = unit(texture((96, 256)) * (1 - mask) + 230 * mask)
    columns = np.flatnonzero((mask > 0.5).any(0))
    rows = np.flatnonzero((mask > 0.5).any(1))
    first, last = int(columns[0]), int(columns[-1]) + 1
    top, bottom = int(rows[0]) - 5, int(rows[-1]) + 6
    place = drawn_out(picture, (top, first + 3, bottom, last - 3))
    assert (place[0], place[2]) == (top, bottom)
    assert first - 10 <= place[1] <= first
    assert last <= place[3] <= last + 10
    turned = drawn_out(picture.transpose(1, 0, 2), (first + 3, top, last - 3, bottom))
    assert turned == (place[1], place[0], place[3], place[2])


def test_an_edge_that_runs_through_a_line_draws_nothing_out() -> None:
    mask = mask_of(LINE, (96, 256), at=(30, 40), size=18)
    frame = texture((96, 256)) * (1 - mask) + 230 * mask
    last = int(np.flatnonzero((mask > 0.5).any(0))[-1]) + 1
    frame[:, last + 6 : last + 9] = 230  # a catheter across the picture
    place = (25, 36, 52, last + 3)
    assert drawn_out(unit(frame), place) == place


def test_a_square_box_has_no_direction() -> None:
    assert drawn_out(unit(texture((96, 96))), (20, 20, 40, 44)) == (20, 20, 40, 44)


def test_what_goes_on_where_a_line_ends_is_its_rest_and_what_lies_on_it_is_not() -> None:
    line = (20, 40, 44, 200)
    assert continues((21, 204, 43, 230), line)
    assert continues((20, 12, 44, 38), line)
    assert not continues((24, 100, 48, 180), line)  # on it
    assert not continues((60, 204, 84, 230), line)  # below
    assert not continues((10, 204, 60, 240), line)  # higher
    assert gap_of(line, (20, 240, 44, 330)) == (20, 200, 44, 240)
    assert gap_of(line, (10, 240, 60, 360)) is None
    assert covered_share((0, 0, 10, 10), [(0, 0, 10, 4), (0, 2, 10, 5)]) == 0.5


class Marks:
    """An engine that sees every bright block, and says how often it looked."""

    def __init__(self) -> None:
        self.passes = 0

    def detect(self, image: NDArray[np.uint8], scale: float = 1.0, floor: float = 0.3) -> list[Line]:
        import cv2

        self.passes += 1
        count, _, stats, _ = cv2.connectedComponentsWithStats((image[..., 0] > 250).astype(np.uint8))
        found = []
        for left, top, width, height, _ in stats[1:count]:
            corners = [[left, top], [left + width, top], [left + width, top + height], [left, top + height]]
            found.append(Line(np.array(corners, np.float32), 0.9))
        return found

    def read(self, image: NDArray[np.uint8], lines: list[Line]) -> list[tuple[str, float]]:
        return [("mark", 0.9) for _ in lines]

    def signs(self, line: NDArray[np.uint8]) -> list[Sign]:
        return []


def test_pictures_share_a_pass_and_each_gets_its_own_lines() -> None:
    pictures = []
    for number in range(4):
        picture = np.full((60 + 10 * number, 90, 3), 30, np.uint8)
        picture[10 + number : 20 + number, 20:60] = 255
        pictures.append(picture)
    marks = Marks()
    found = read_lines(pictures, marks, 1.0, 0.3)  # type: ignore[arg-type]
    assert marks.passes == 1
    assert [one.line.extent for (one,) in found] == [(10 + at, 20, 20 + at, 60) for at in range(4)]
    assert found[2][0].cut_out().min() > 200


def test_a_large_picture_is_looked_at_in_tiles_that_overlap() -> None:
    picture = np.full((SHEET_PX + 900, 300, 3), 30, np.uint8)
    picture[SHEET_PX - 100 : SHEET_PX - 90, 20:60] = 255  # near the end of the first tile, whole in the second
    marks = Marks()
    (lines,) = read_lines([picture], marks, 1.0, 0.3)  # type: ignore[arg-type]
    assert {one.line.extent for one in lines} == {(SHEET_PX - 100, 20, SHEET_PX - 90, 60)}


def test_tesseract_reads_a_line_either_way_up_and_nothing_where_there_is_none() -> None:
    frame = np.repeat(drawn("LEAKTEST 4711", at=(30, 40), size=20)[..., None], 3, 2)
    line = Line(np.array([[34, 28], [200, 28], [200, 58], [34, 58]], np.float32), 0.9)
    for turn in (0, 2):
        text, sure = second_opinion(np.rot90(crop(frame, line), turn).copy())
        assert "LEAKTEST" in text
        assert sure >= 0.75
    plain = np.repeat(texture((30, 160)).clip(0, 255).astype(np.uint8)[..., None], 3, 2)
    text, sure = second_opinion(plain)
    assert sure < 0.75 or len(text) < 4


def test_what_tesseract_reads_well_is_no_longer_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(np.array([[10, 10], [90, 10], [90, 24], [10, 24]], np.float32), 0.8)

    class Doubtful(Marks):
        def detect(self, image: NDArray[np.uint8], scale: float = 1.0, floor: float = 0.3) -> list[Line]:
            self.passes += 1
            return [line] if self.passes == 1 else []

        def read(self, image: NDArray[np.uint8], lines: list[Line]) -> list[tuple[str, float]]:
            return [("xqz", 0.4) for _ in lines]

    monkeypatch.setattr(text_look, "answer_of", lambda *_: Answer.OPEN)
    frame = np.full((96, 256), 30, np.uint8)
    for (text, sure), kind in (
        (("", 0.0), Kind.UNCERTAIN),
        (("SOMEBODY", 0.5), Kind.UNCERTAIN),
        (("ab", 0.99), Kind.UNCERTAIN),
        (("SOMEBODY", 0.9), Kind.TEXT),
        (("LEAKTEST", 0.4), Kind.HINT),
    ):
        monkeypatch.setattr(text_lines, "second_opinion", lambda _, said=(text, sure): said)
        (hit,) = look(frame, Doubtful(), Judge(Hints(frozenset({"LEAKTE5T"}))))  # type: ignore[arg-type]
        assert hit.kind is kind


DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


@pytest.mark.skipif(not DEJAVU.is_file(), reason="no DejaVu font here")
@pytest.mark.parametrize("text", ["דוד כהן", "ნინო ბერიძე", "Արամ Սարգսյան"])
def test_scripts_that_nobody_here_reads_go_or_hold(text: str) -> None:
    mask = mask_of(text, (128, 320), at=(50, 80), size=20, font=str(DEJAVU))
    frame = np.clip(texture((128, 320)) * (1 - mask) + 230 * mask, 0, 255).astype(np.uint8)
    left = mask > 0.5
    for hit in look(frame, engine(), Judge(hints_of([]))):
        left[hit.place[0] : hit.place[2], hit.place[1] : hit.place[3]] = False
    assert not left.any()
