"""What `bench.text` stands on: its people, plants and arithmetic. Frames here are synthetic."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy.stats import binom

from bench import text
from bench.text_clean import clean_frames
from bench.text_fonts import FONTS, HAND, PRINT, font_file, fonts_for
from bench.text_frames import FORMS, SHARED, Frame, frames, palette_order, pixels, stored_values
from bench.text_items import CLEAN, STYLE_NAMES, Outcome, covered_by, text_area
from bench.text_plants import BY_NAME, STYLES, plant
from bench.text_words import CJK, CYRILLIC, DEVELOPMENT, HELD_OUT, LATIN, line, person


def outcome(**changes: object) -> Outcome:
    facts = {
        "number": 0,
        "style": "plain",
        "file": "synthetic",
        "form": "8 bits",
        "held": False,
        "coverage": (1.0, 1.0),
        "words_px": (12, 12),
        "picture_pixels": 1000,
        "touched_pixels": 0,
        "exact": True,
        "passes": 2,
    }
    return Outcome(**{**facts, **changes})  # type: ignore[arg-type]


def test_the_halves_share_no_word_and_no_font() -> None:
    seen: dict[str, set[str]] = {}
    for half in (DEVELOPMENT, HELD_OUT):
        people = [person(half, script, Random(at)) for script in (LATIN, CYRILLIC, CJK) for at in range(300)]
        seen[half] = {word for who in people for word in (who.surname, who.given, who.place)}
    assert len(seen[DEVELOPMENT]) > 20
    assert not seen[DEVELOPMENT] & seen[HELD_OUT]
    fonts = {half: {name for key, names in FONTS.items() if key[0] == half for name in names} for half in seen}
    assert not fonts[DEVELOPMENT] & fonts[HELD_OUT]


def test_every_style_has_fonts_in_both_halves() -> None:
    for style, half in itertools.product(STYLES, (DEVELOPMENT, HELD_OUT)):
        assert FONTS[half, style.script, style.font]
    assert {PRINT, HAND} == {style.font for style in STYLES}


def test_a_font_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        font_file("no_such_package:a.ttf")


def test_a_font_without_a_sign_of_a_text_does_not_draw_it() -> None:
    fonts = FONTS[DEVELOPMENT, LATIN, PRINT]
    if not all(map(_exists, fonts)):
        pytest.skip("not all fonts are here")
    assert fonts_for("Zimmerfeld 31.01.1950", DEVELOPMENT, LATIN, PRINT) == list(fonts)
    assert fonts_for("张健一", DEVELOPMENT, LATIN, PRINT) == []


def test_a_line_shows_something_of_its_person() -> None:
    for at in range(200):
        random = Random(at)
        who = person(DEVELOPMENT, LATIN, random)
        shown = line(who, random).upper()
        marks = (who.surname.upper(), who.patient_id.upper(), who.place.upper(), str(who.birth[0]))
        assert any(mark in shown for mark in marks)


@pytest.mark.parametrize("name", ["plain", "dark", "boxed", "low_contrast", "turned_90", "shadow"])
def test_a_plant_is_where_the_key_says_and_nowhere_else(name: str) -> None:
    if not all(map(_exists, FONTS[DEVELOPMENT, LATIN, PRINT])):
        pytest.skip("no DejaVu fonts here")
    generator = np.random.default_rng(2)
    frame = np.linspace(0.1, 0.9, 900) + generator.normal(0, 0.01, (700, 900))
    before = frame.copy()
    made = plant(frame, BY_NAME[name], DEVELOPMENT, Random(5), [])
    assert made is not None
    changed = np.abs(frame - before) > 1e-9
    window = changed[made.top : made.bottom, made.left : made.right]
    assert window[made.ink].all()
    pad = 16
    changed[made.top - pad : made.bottom + pad, max(0, made.left - pad) : made.right + pad] = False
    assert not changed.any()


def _exists(font: str) -> bool:
    try:
        font_file(font)
    except FileNotFoundError:
        return False
    return True


def test_stored_values_show_the_picture_again() -> None:
    picture = np.linspace(0, 1, 256).reshape(16, 16)
    order = palette_order(Random(1))
    for form in FORMS:
        stored = stored_values(picture, form, order).astype(int)
        if form.palette:
            stored = np.argsort(order)[stored]
        back = stored / form.top
        assert np.abs((1 - back if form.inverted else back) - picture).max() <= 1 / form.top


@pytest.mark.parametrize(("hits", "of"), [(97, 100), (100, 100), (0, 50), (1999, 2000)])
def test_bounds_are_those_of_clopper_and_pearson(hits: int, of: int) -> None:
    """The lower bound is the share under which so many hits or more come about in 5 % of the runs."""
    if hits:
        assert binom.sf(hits - 1, of, text.lower(hits, of)) == pytest.approx(0.05, abs=1e-9)
    if hits < of:
        assert binom.cdf(hits, of, text.upper(hits, of)) == pytest.approx(0.05, abs=1e-9)
    assert text.lower(hits, of) <= hits / of <= text.upper(hits, of)


def test_a_held_frame_is_safe_and_not_removed() -> None:
    row = text.figures([outcome(), outcome(held=True, coverage=(0.0, 0.0)), outcome(coverage=(0.97, 1.0))])
    assert (row["identities"], row["removed"], row["removed_or_held"]) == (6, 0.5, round(5 / 6, 5))
    assert row["hold_rate"] == round(1 / 3, 5)


def test_the_summary_keeps_clean_frames_apart() -> None:
    clean = outcome(style=CLEAN, coverage=(), words_px=(), held=True)
    result = text.summary([outcome(touched_pixels=10), clean])
    assert (result["hold_rate"], result["hold_rate_clean"]) == (0.0, 1.0)
    assert result["untouched_share"] == 0.99
    assert set(result["per_style"]) == {"plain"}  # type: ignore[call-overload]


def test_a_miss_is_told_without_its_words() -> None:
    (miss,) = text.misses([outcome(coverage=(0.5, 1.0)), outcome(held=True, coverage=(0.0,), words_px=(9,))])
    assert miss["coverage"] == 0.5
    assert "words" not in miss


def test_every_style_comes_round_and_clean_frames_between() -> None:
    first = list(itertools.islice(text.items(31), 90))
    assert {style for _, style in first} == {*STYLE_NAMES, CLEAN}
    assert len(set(first)) == len(first)
    assert sorted(number for number, style in first if style == CLEAN) == list(range(31))


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data here")
def test_clean_frames_are_distinct_many_and_of_other_people_in_each_half() -> None:
    halves = {half: [frame.file for frame in clean_frames(half)] for half in (DEVELOPMENT, HELD_OUT)}
    people = {half: {_person(name) for name in names} for half, names in halves.items()}
    assert not people[DEVELOPMENT] & people[HELD_OUT]
    for half, names in halves.items():
        assert len(names) == len(set(names)) >= 300, "fewer say nothing of a hold rate of 1 %"
        drawn_on = {_person(frame.file) for frame in frames(half)} - {""}
        assert drawn_on <= people[half]
        kinds = {Path(name.partition(":")[0]).suffix: frame for frame in clean_frames(half) for name in [frame.file]}
        assert all(0 <= pixels(frame).min() < pixels(frame).max() <= 1 for frame in kinds.values())


def _person(file: str) -> str:
    """Whose a frame is, "" where no manifest says so."""
    folder, _, name = file.partition(":")[0].partition("/")
    path = SHARED / folder / "manifest.csv"
    if not path.is_file():
        return ""
    with open(path, encoding="utf-8", newline="") as table:
        return next((row.get("subject") or "" for row in csv.DictReader(table) if row["file"] == name), "")


def test_boxes_and_text_are_areas_of_frames() -> None:
    covered = covered_by(
        {"text": [[-1, 0, 0, 2, 3, 0.9]], "hint": [[1, 4, 4, 6, 6, 0.9]], "uncertain": [[0, 0, 0, 9, 9, 1]]}, (2, 8, 8)
    )  # type: ignore[dict-item]
    assert covered.sum() == 2 * 6 + 4
    area = text_area([], Frame("synthetic", HELD_OUT, ((20, 20, 24, 30),)), (2, 64, 64), every_frame=False)
    assert area[:, 20:24, 20:30].all()
    assert not area[:, :10].any()


def test_a_run_that_was_cut_off_goes_on(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "store.jsonl"
    import json

    path.write_text(json.dumps(outcome(number=3).as_json()) + '\n{"number": 4, "sty')
    assert text.known_outcomes(path) == {(3, "plain"): outcome(number=3)}
