"""A line ends where its signs do: boxes that are too short reach the last sign, wide margins go."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from text_objects import mask_of, texture

from gateway.pixels import text_look
from gateway.pixels.text_closer import Answer
from gateway.pixels.text_engine import Engine, Line, Sign, engine
from gateway.pixels.text_ground import is_solid
from gateway.pixels.text_judge import Judge, Kind
from gateway.pixels.text_look import look
from gateway.pixels.text_reach import reached
from gateway.pixels.text_words import Hints

Bytes = NDArray[np.uint8]
TEXT, SHAPE = "ZZSYNTH LEAKTEST 4711", (80, 420)
PLACE = 20, 100, 60, 300  # of the tests without any reading: 40 high


class Reader:
    """Sees signs at these columns of the picture (its numbers in the first row say which they are), each so sure."""

    def __init__(self, signs: dict[int, float], known: float = 1.0) -> None:
        self._signs, self._known = signs, known

    def signs(self, line: Bytes) -> list[Sign]:
        columns = line[0, :, 0].astype(int) + 256 * line[0, :, 1].astype(int)
        at = {int(column): position for position, column in enumerate(columns)}
        found = [(at[column] / len(columns), sure) for column, sure in self._signs.items() if column in at]
        return [Sign(share, sure, self._known) for share, sure in sorted(found)]


def numbered(columns: int = 600) -> Bytes:
    """A picture whose pixels say in which column they are."""
    at = np.arange(columns)
    return np.broadcast_to(np.stack([at % 256, at // 256, at * 0], 1).astype(np.uint8), (80, columns, 3)).copy()


def ends(signs: dict[int, float], known: float = 1.0) -> tuple[int, int]:
    _, left, _, right = reached([numbered()], PLACE, Reader(signs, known))  # type: ignore[arg-type]
    return left, right


def test_signs_that_go_on_belong_to_the_line_and_those_after_a_gap_do_not() -> None:
    inside = dict.fromkeys(range(120, 300, 20), 0.9)
    left, right = ends(inside | {310: 0.9, 330: 0.8, 385: 0.9, 90: 0.9})
    assert 330 < right < 350
    assert 70 <= left < 85


def test_a_line_goes_on_as_far_as_it_is_seen_beyond_the_room_of_one_look() -> None:
    _, right = ends(dict.fromkeys(range(120, 470, 20), 0.9))
    assert 460 < right < 490


def test_doubtful_signs_beside_a_box_are_none_and_in_it_they_keep_its_margin() -> None:
    inside = dict.fromkeys(range(120, 280, 20), 0.9)
    assert ends(inside | {310: 0.5, 85: 0.6})[1] <= 300
    assert ends(inside | {290: 0.3})[1] > 290


def test_a_margin_goes_where_all_is_clear_but_never_more_than_some_of_it() -> None:
    inside = dict.fromkeys(range(120, 280, 20), 0.9)
    left, right = ends(inside)
    assert 100 < left < 120
    assert 260 < right < 300
    assert ends(dict.fromkeys(range(160, 240, 20), 0.9)) == (123, 277)
    assert ends(inside, known=0.6) == (100, 300)  # read badly: it stays as it was


def test_a_line_that_nobody_reads_and_a_square_stay_as_they_are() -> None:
    assert ends({120: 0.9, 140: 0.9}) == (100, 300)
    thin = 20, 0, 24, 600
    assert reached([numbered()], thin, Reader(dict.fromkeys(range(10, 600, 5), 0.9))) == thin  # type: ignore[arg-type]
    square = 20, 100, 60, 140
    assert reached([numbered()], square, Reader({})) == square  # type: ignore[arg-type]


@pytest.mark.parametrize("turn", range(4))
def test_half_a_box_reaches_all_of_a_real_line_whichever_way_it_runs(turn: int) -> None:
    mask = mask_of(TEXT, SHAPE, at=(30, 90), size=18)
    picture = np.clip(texture(SHAPE) * (1 - mask) + 220 * mask, 0, 255).astype(np.uint8)
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    box = np.zeros(SHAPE, bool)
    box[rows[0] - 8 : rows[-1] + 9, columns[0] + 60 : columns[-1] - 60] = True
    turned, box, ink = (np.rot90(one, turn) for one in (np.repeat(picture[..., None], 3, 2), box, mask > 0.5))
    down, across = np.flatnonzero(box.any(1)), np.flatnonzero(box.any(0))
    place = int(down[0]), int(across[0]), int(down[-1]) + 1, int(across[-1]) + 1
    top, left, bottom, right = reached([np.ascontiguousarray(turned)], place, engine())
    ink = ink.copy()
    ink[top:bottom, left:right] = False
    assert not ink.any()
    assert (bottom - top) * (right - left) < 1.35 * (rows[-1] - rows[0] + 18) * (columns[-1] - columns[0])


@pytest.mark.parametrize("sign", ["O", "I", "L", "M", "8", "R"])
@pytest.mark.parametrize("light", [True, False])
def test_letters_are_strokes_and_filled_shapes_are_none(sign: str, light: bool) -> None:
    mask = mask_of(sign, (44, 40), at=(8, 10), size=28)
    filled = np.zeros((44, 40))
    filled[8:34, 9:32] = 1
    for ink, solid in ((mask, False), (filled, True)):
        grey = 40 + 180 * (ink if light else 1 - ink)
        assert is_solid(np.repeat(grey[..., None], 3, 2).astype(np.uint8)) is solid


def test_a_filled_shape_that_is_read_as_one_sign_is_no_text_and_many_signs_of_no_known_script_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_look, "answer_of", lambda *_: Answer.OPEN)
    picture = np.full((96, 256, 3), 30, np.uint8)
    picture[20:60, 40:90] = 240
    box = np.array([[30, 10], [100, 10], [100, 70], [30, 70]], np.float32)

    class One(Engine):
        def __init__(self, text: str, sure: float, line: Line, signs: list[Sign]) -> None:
            self.passes, self._said, self._line, self._signs = 0, (text, sure), line, signs

        def detect(self, image: Bytes, scale: float = 1.0, floor: float = 0.3) -> list[Line]:
            self.passes += 1
            return [self._line] if self.passes == 1 else []

        def read(self, image: Bytes, lines: object) -> list[tuple[str, float]]:
            return [self._said for _ in list(lines)]  # type: ignore[call-overload]

        def signs(self, line: Bytes) -> list[Sign]:
            return self._signs

    judge = Judge(Hints())
    assert look(picture, One("口", 0.99, Line(box, 0.95), []), judge) == []
    flat = Line(np.array([[30, 30], [130, 30], [130, 52], [30, 52]], np.float32), 0.78)
    plain = np.full((96, 256, 3), 30, np.uint8)
    for sure, kind in ((0.95, Kind.TEXT), (0.6, Kind.UNCERTAIN)):
        signs = [Sign(at / 8, sure, 0.3) for at in range(1, 8)]
        (hit,) = look(plain, One("pqxz", 0.37, flat, signs), judge)
        assert hit.kind is kind
