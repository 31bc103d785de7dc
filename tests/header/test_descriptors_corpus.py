"""Two corpora of descriptions: what must survive whole, and what must lose identity and nothing else.

Cases 15, 23 and 40 of cases.md.
"""

from __future__ import annotations

import pytest
from planted_words import NOBODY, OWN, cleaned, corpus, own

from gateway.header.descriptors_masking import masked
from gateway.header.descriptors_own import NAME, NUMBER, Said

KEPT = [row["text"] for row in corpus("descriptors_kept.csv")]
CLEANED = [(row["text"], row["expected"]) for row in corpus("descriptors_cleaned.csv")]


def test_the_corpora_are_large() -> None:
    assert len(KEPT) >= 200
    assert len(CLEANED) >= 200


@pytest.mark.parametrize("text", KEPT)
def test_a_technical_description_survives_whole(text: str) -> None:
    assert cleaned(text, OWN) == text
    assert cleaned(text, NOBODY) == text


@pytest.mark.parametrize(("text", "expected"), CLEANED)
def test_a_description_with_identity_loses_exactly_that(text: str, expected: str) -> None:
    assert cleaned(text) == expected


@pytest.mark.parametrize("text", [*KEPT, *(text for text, _ in CLEANED)])
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = cleaned(text)
    assert cleaned(once) == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LONG AXIS HEAD", "LONG AXIS HEAD"),  # technical words first: nobody is named by them
        ("Head, Long", ""),
        ("Long H. AX T1", "AX T1"),  # the own initial beside it: that is a name
        ("LONG HEAD AXIS", "AXIS"),
        ("MR HEAD LONG T1", "MR T1"),
    ],
)
def test_a_name_of_technical_words_counts_only_as_a_whole(text: str, expected: str) -> None:
    assert cleaned(text, own(Said(NAME, "LONG^HEAD"))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Zzsynth L", "L"),  # a side, and the initial of nobody who would be told by it
        ("R Zzsynth", "R"),
        ("Zzsynth L.", ""),  # an initial
        ("L. Zzsynth", ""),
        ("Zzsynth L Leaktest", ""),
        ("Zzsynth M", ""),
        ("M. Zzsynth T1", "T1"),
        ("L knee", "L knee"),
    ],
)
def test_an_initial_goes_with_its_name_and_a_side_stays(text: str, expected: str) -> None:
    assert cleaned(text, own(Said(NAME, "ZZSYNTH^LEAKTEST^M"))) == expected


@pytest.mark.parametrize("written", ["12-34567/8", "12345678", "1234567 8", "0012345678", "12 34567 8", "ID12345678"])
def test_a_number_is_found_with_any_separators_and_leading_zeros(written: str) -> None:
    assert "4567" not in cleaned(f"knee {written} left", own(Said(NUMBER, "12-34567/8")))


def test_what_is_masked_for_being_unknown_is_told_apart_from_the_rest() -> None:
    found = masked("AX Zoomscout LEAK0001 by Dr. Meyer 2020-01-31", OWN)
    assert found.text == "AX"
    assert found.unknown == ("Zoomscout",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("89 y/o", "89 y/o"),
        ("90 y/o", "90 y/o"),
        ("91 y/o", "90 y/o"),
        ("093Y", "090Y"),
        ("aged 104", "aged 90"),
        ("93-jähriger Patient", "90-jähriger Patient"),
        ("93 ans", "90 ans"),
        ("TE 93 TR 1200", "TE 93 TR 1200"),
        ("93% phase", "93% phase"),
        ("100 kV 95 mAs", "100 kV 95 mAs"),
    ],
)
def test_ages_over_89_become_90(text: str, expected: str) -> None:
    assert cleaned(text) == expected
