"""Words that were read in a picture: technical marks, and those of the header."""

from __future__ import annotations

import pytest
from gate_cases import encode, identified_ct

from gateway.gate.attributes import Kept
from gateway.gate.bytescan import scan_bytes
from gateway.gate.terms import Terms
from gateway.gate.text_words import HeaderWords, is_technical, letters
from gateway.policy import HeaderPolicy
from gateway.settings import SHIPPED_POLICIES

KEPT_TEXT = SHIPPED_POLICIES / "regions" / "kept_text.txt"


def test_what_the_stage_keeps_as_shipped_may_stand() -> None:
    kept = KEPT_TEXT.read_text("utf-8").splitlines()
    words = [word for line in kept for word in line.partition("#")[0].split()]
    assert [word for word in words if letters(word) > 1 and not is_technical(word)] == []


@pytest.mark.parametrize(
    ("text", "technical"),
    [
        ("120 kVp 200 mA", True),
        ("120kVp200mA", True),
        ("WL: 40 WW: 400", True),
        ("TIs<0.4 MI=0.8", True),
        ("Im: 12/80", True),
        ("10.5 cm", True),
        ("31.01.1950", False),
        ("31 01 50", False),
        ("31JAN1950", False),
        ("DOB 01/02/1950", False),
        ("12:34:56", False),
        ("123456", False),
        ("1950", False),
        ("AP Zzsynth", False),
        ("渡辺", False),
    ],
)
def test_marks_are_told_from_dates_numbers_and_names(text: str, technical: bool) -> None:
    assert is_technical(text) is technical


@pytest.mark.parametrize(
    ("read", "rule"),
    [
        ("ZZSYNTH", "name of (0010,0010)"),
        ("ZZ5YNTH, LEAKTE5T", "name of (0010,0010)"),
        ("1D LEAK000I", "id of (0010,0020)"),
        ("31.01.1950", "birth_date of (0010,0030)"),
        ("QUASTENFL0SSER", "name of (0008,1048)"),
        ("ZZOO", ""),
        ("10.5 cm", ""),
    ],
)
def test_words_of_the_header_are_known_through_errors_of_reading(read: str, rule: str) -> None:
    terms = Terms(Kept(HeaderPolicy()))
    terms.harvest(scan_bytes(encode(identified_ct()), original=True))
    assert HeaderWords(terms).rule_of(read) == rule
