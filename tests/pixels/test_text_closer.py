"""A closer look tells text, of any script, however it lies and however faint it is, from what looked like it once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from pydicom.dataset import Dataset
from text_objects import group_of, mask_of, run, save, stored, texture

from bench.text_frames import SHARED, Frame
from bench.text_frames import pixels as frame_pixels
from bench.text_words import DEVELOPMENT
from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.text_closer import Answer, Doubt, View, answer_of, settled, views_of
from gateway.pixels.text_engine import Line, engine
from gateway.pixels.text_judge import Hit, Judge, Kind
from gateway.pixels.text_lines import Seen, line_seen
from gateway.pixels.text_look import Found, look
from gateway.pixels.text_sheet import ReadLine
from gateway.pixels.text_words import Hints, hints_of

Bytes = NDArray[np.uint8]
SHAPE = (160, 320)
DEJAVU = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
SCRIPTS = [("דוד כהן", 20), ("Арам 4711", 12), ("ნინო", 20)]


def grey(picture: NDArray[np.float64]) -> Bytes:
    return np.repeat(np.clip(picture, 0, 255).astype(np.uint8)[..., None], 3, 2)


def box_of(mask: NDArray[np.float64], margin: int = 4) -> tuple[int, int, int, int]:
    rows, columns = (np.flatnonzero((mask > 0.3).any(axis)) for axis in (1, 0))
    return int(rows[0]) - margin, int(columns[0]) - margin, int(rows[-1]) + margin + 1, int(columns[-1]) + margin + 1


def asked(picture: Bytes, box: tuple[int, int, int, int], scale: float = 2.0, high: float = 0) -> Answer:
    views = views_of(picture, Doubt(box, (box,), 0.9, high or min(box[2] - box[0], box[3] - box[1])), scale)
    return answer_of(views, [engine().detect(view.pixels, scale) for view in views])


@pytest.mark.skipif(not Path(DEJAVU).is_file(), reason="no DejaVu font here")
@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
@pytest.mark.parametrize(("text", "size"), SCRIPTS)
def test_a_line_is_seen_again_in_whatever_script_and_way_it_runs(text: str, size: int, quarters: int) -> None:
    mask = mask_of(text, SHAPE, at=(60, 80), size=size, font=DEJAVU)
    turned = np.rot90(mask, quarters)
    ground = texture(turned.shape)  # type: ignore[arg-type]
    assert asked(grey(ground * (1 - turned) + 200 * turned), box_of(turned)) is Answer.TEXT
    assert asked(grey(ground + 22 * turned), box_of(turned)) is Answer.TEXT, "a tenth of the range above its ground"


@pytest.mark.skipif(not Path(DEJAVU).is_file(), reason="no DejaVu font here")
@pytest.mark.parametrize("degrees", [-25, 12, 25])
def test_a_slanted_line_is_as_large_in_its_views_as_a_level_one(degrees: int) -> None:
    shape = (360, 360)
    level = Image.fromarray(
        (255 * mask_of("דוד כהן 1950", shape, at=(170, 100), size=18, font=DEJAVU)).astype(np.uint8)
    )
    mask = np.asarray(level.rotate(degrees, Image.Resampling.BICUBIC)) / 255
    picture = grey(texture(shape) * (1 - mask) + 200 * mask)
    assert asked(picture, box_of(mask), high=24) is Answer.TEXT


def test_an_edge_a_vessel_and_noise_are_seen_in_no_view() -> None:
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    vessel = np.exp(-(((rows - 80 - 6 * np.sin(columns / 25)) / 3) ** 2)) * 90
    noise = np.random.default_rng(3).normal(0, 12, SHAPE)
    for picture in (texture(SHAPE) + vessel, texture(SHAPE) + 90 * (rows > 80), texture(SHAPE) + noise):
        assert asked(grey(picture), (68, 80, 92, 220)) is Answer.NONE


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data here")
def test_a_real_slice_whose_folds_look_like_a_line_once_is_neither_held_nor_touched() -> None:
    folds = frame_pixels(Frame("brain_mri/lesjak_long/P03_study1_FLAIR.nii.gz:24", DEVELOPMENT, ()))
    assert look((255 * folds).clip(0, 255).astype(np.uint8), engine(), Judge(Hints())) == []


@settings(max_examples=25, deadline=None)
@given(
    box=st.tuples(st.integers(0, 150), st.integers(0, 300), st.integers(3, 80), st.integers(3, 200)),
    scale=st.sampled_from([0.75, 1.0, 2.0]),
)
def test_views_hold_the_line_where_they_say(box: tuple[int, int, int, int], scale: float) -> None:
    """Where a place is white and nothing else is, so is the box of each view, however it is turned."""
    top, left, rows, columns = box
    bottom, right = min(SHAPE[0], top + rows), min(SHAPE[1], left + columns)
    picture = np.zeros((*SHAPE, 3), np.uint8)
    picture[top:bottom, left:right] = 255
    place = (top, left, bottom, right)
    for view in views_of(picture, Doubt(place, (place,), 0.9, 999), scale)[:2]:
        t, x, b, r = view.box
        assert 0 <= t < b <= view.pixels.shape[0] + 1
        assert 0 <= x < r <= view.pixels.shape[1] + 1
        assert b - t <= r - x + 1, "a line lies flat"
        assert view.pixels[t:b, x:r].mean() > 200
        lit = view.pixels[..., 0] > 128
        assert lit[t:b, x:r].sum() >= 0.9 * lit.sum()
        assert max(view.pixels.shape[:2]) * scale <= 1601


def line(score: float, left: float = 0, right: float = 100) -> Line:
    return Line(np.array([[left, 10], [right, 10], [right, 30], [left, 30]], np.float32), score)


@pytest.mark.parametrize(
    ("seen", "answer"),
    [
        ([[line(0.9)], [line(0.85)], []], Answer.TEXT),
        ([[line(0.9)], [], []], Answer.OPEN),
        ([[line(0.9)], [line(0.7)], []], Answer.OPEN),
        ([[line(0.9, 0, 60)], [line(0.9, 60, 100), line(0.9, 0, 45)], []], Answer.TEXT),
        ([[line(0.9, 0, 30)], [line(0.9, 0, 30)], [line(0.9, 0, 30)]], Answer.OPEN),
        ([[line(0.9, 200, 300)], [line(0.45)], []], Answer.NONE),
        ([[], [], []], Answer.NONE),
    ],
    ids=["two of three", "one", "one and a half", "in pieces", "an end of it", "others", "nothing"],
)
def test_most_views_must_show_most_of_a_line(seen: list[list[Line]], answer: Answer) -> None:
    view = View(np.zeros((40, 300, 3), np.uint8), (10, 0, 30, 100))
    assert answer_of([view] * 3, seen) is answer


@pytest.mark.parametrize("kind", [Kind.UNCERTAIN, None])
def test_what_is_too_tall_for_small_print_is_no_text_for_its_views_alone(kind: Kind | None) -> None:
    """Anatomy of that height looks like a short line in every view; what would hold still does."""
    place = (0, 0, 90, 150)
    hits = [] if kind is None else [Hit(place, kind, 0.9)]
    found = Found(hits, [Doubt(place, (place,), 0.9, 90, tall=True)], [], first=True)
    assert found.settled([Answer.TEXT]) == found.settled([Answer.OPEN]) == hits
    assert found.settled([Answer.NONE]) == []


def test_what_is_settled_takes_the_place_of_what_was_uncertain() -> None:
    places = [(0, 0, 9, 30), (20, 0, 29, 30), (40, 0, 49, 30)]
    hits = [Hit(place, Kind.UNCERTAIN, 0.8) for place in places] + [Hit((60, 0, 69, 30), Kind.HINT, 0.9)]
    doubts = [Doubt(place, (place,), 0.8, 9) for place in places]
    found = list(settled(hits, doubts, [Answer.TEXT, Answer.NONE, Answer.OPEN]))
    assert [(hit.place, hit.kind) for hit in found] == [
        (places[0], Kind.TEXT),
        (places[2], Kind.UNCERTAIN),
        ((60, 0, 69, 30), Kind.HINT),
    ]


def test_what_turns_out_to_be_text_takes_along_the_sign_beside_it() -> None:
    """A surname of one sign, apart from the given name: alone it is nothing."""
    name, sign, far = (20, 60, 44, 160), (21, 34, 43, 56), (100, 34, 122, 56)
    lines = [
        Seen(
            box,
            [box],
            None,
            0.9 if box == name else 0.65,
            0.1,
            high=24,
            long=4.2 if box == name else 1.0,
            doubtful=True,
        )
        for box in (name, sign, far)
    ]
    found = Found([], [Doubt(name, (name,), 0.9, 24)], lines, first=True)
    assert {hit.place for hit in found.settled([Answer.TEXT])} == {name, sign}
    assert found.settled([Answer.NONE]) == found.settled([Answer.OPEN]) == []


@pytest.mark.skipif(not Path(DEJAVU).is_file(), reason="no DejaVu font here")
@pytest.mark.parametrize("text", ["ნინო", "דוד", "Արամ"])
def test_short_names_in_scripts_that_nobody_here_reads_go_and_do_not_hold(tmp_path: Path, text: str) -> None:
    mask = mask_of(text, SHAPE, at=(70, 90), size=22, font=DEJAVU)
    frame = np.clip(texture(SHAPE) * (1 - mask) + 220 * mask, 0, 255).astype(np.uint8)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [frame]))
    run(BurnedInText(), group)
    after = stored(group[0].candidate)
    assert not after[mask > 0.3].any()
    assert np.array_equal(after[:50], frame[:50])
    assert np.array_equal(after[115:], frame[115:])


@pytest.mark.parametrize(
    ("part_px", "text", "sure", "kind"),
    [
        (48, "SMO", 0.41, None),
        (198, "X", 0.95, None),
        (48, "SMOKE", 0.7, Kind.TEXT),
        (30, "SMO", 0.41, Kind.TEXT),
        (48, "ZIMMERFELD", 0.35, Kind.HINT),
    ],
    ids=["tall and hardly read", "one sign", "tall and read", "small print in a script nobody reads", "header word"],
)
def test_a_large_block_is_text_for_a_line_that_is_text(part_px: int, text: str, sure: float, kind: Kind | None) -> None:
    """205 pixels of a head in a picture of 568 looked like a block with a few signs in it."""

    def line_of(high: float) -> Line:
        return Line(np.array([[0, 0], [345, 0], [345, high], [0, high]], np.float32), 0.95)

    person = Dataset()
    person.PatientName = "Zimmerfeld^Anna"
    block = line_of(205)
    read = ReadLine(block, "X", 0.24, np.zeros((205, 345, 3), np.uint8), block, ((line_of(part_px), text, sure),))
    assert line_seen(read, (568, 568, 3), engine(), Judge(hints_of([person])), 568.0, None).kind is kind
