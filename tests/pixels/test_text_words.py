"""Words of a line: hints of the header, words that may stay, and neither (synthetic people)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydicom.dataset import Dataset

from gateway.pixels.text_words import Hints, Kept, folded, hints_of, shipped_kept


def header() -> Dataset:
    dataset = Dataset()
    dataset.PatientName = "Zzsynth^Leaktest^^Dr"
    dataset.PatientID = "LEAK0001"
    dataset.PatientBirthDate = "19500131"
    dataset.InstitutionName = "St. Odile Hospital"
    dataset.StudyDescription = "CHEST ROUTINE"
    item = Dataset()
    item.PerformingPhysicianName = "Fernbach^Anna"
    dataset.RequestAttributesSequence = [item]
    return dataset


@pytest.mark.parametrize(
    "line",
    [
        "ZZSYNTH, LEAKTEST",
        "Leaktest Zzsynth",
        "2ZSYNTH",  # one sign misread
        "LEAKTESTZZSYNTH M",  # spaces lost
        "ID: LEAKOOO1",  # zeros read as letters
        "DOB 31.01.1950",
        "01/31/1950",
        "31-JAN-1950",
        "ODILE",
        "Fernbach",
    ],
)
def test_a_line_with_a_word_of_the_header_is_a_hint(line: str) -> None:
    assert hints_of([header()]).in_line(line)


@pytest.mark.parametrize("line", ["CHEST", "L", "120 kVp", "ROUTINE", "DIST 3.2 cm", ""])
def test_a_line_without_one_is_none(line: str) -> None:
    assert not hints_of([header()]).in_line(line)


def test_an_emptied_header_gives_no_hints() -> None:
    assert hints_of([Dataset()]) == Hints()


@pytest.mark.parametrize(
    "line",
    ["L", "R", "AP", "120 kVp", "70kVp 3.2mAs", "TIS0.4 MI 1.1", "10 cm", "FR 28Hz", "PA ERECT", "+ Dist 3.2 cm"],
)
def test_what_every_screen_shows_may_stay(line: str) -> None:
    assert Kept(shipped_kept()).covers(line, Hints())


@pytest.mark.parametrize(
    "line",
    [
        "ZZSYNTH",
        "L ZZSYNTH",
        "19500131",
        "1950",
        "31.01.1950",
        "123456 cm",
        "5/25/2011",
        "佐藤",
        "Иван",
        "",
        "-",
        "P12345",
    ],
)
def test_anything_else_may_not(line: str) -> None:
    assert not Kept(shipped_kept()).covers(line, Hints())


def test_a_hint_never_stays_even_where_its_word_is_on_the_list() -> None:
    dataset = Dataset()
    dataset.PatientName = "SUPINE^ANT"
    assert not Kept(shipped_kept()).covers("SUPINE", hints_of([dataset]))


@given(st.text(max_size=40))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    hints = hints_of([header()])
    assert not (hints.in_line(text) and Kept(shipped_kept()).covers(text, hints))
    assert folded(folded(text)) == folded(text) or not folded(text).isascii()
