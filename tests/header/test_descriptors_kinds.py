"""Kinds of identity that a held-out half of `bench/midib` once showed to be left, in other words than there."""

import re

import pytest
from planted_words import cleaned, own

from gateway.header.descriptors_initials import any_case, by_initial
from gateway.header.descriptors_own import NAME, Said

NOBODY = own()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("T2 axial 4AC5-D67-EF89", "T2 axial"),  # a Medicare Beneficiary Identifier by its form
        ("T2 axial 4AC5D67EF89", "T2 axial"),
        ("Supine. Ext: 40321", "Supine. Ext"),
        ("Prone ext 4032.\r\nRepeat", "Prone ext.\r\nRepeat"),
        ("Phone the ward on 667 2190", "Phone the ward on"),
        ("scanned by Zzanna Major RT(R)", "scanned RT(R)"),
        ("Consent: father Zzanton Page", "Consent: father"),
        ("IV by RN Hope W.", "IV"),
        ("arrived from Zzford Bay Point by car", "arrived from by car"),
    ],
)
def test_what_identifies_by_its_form_or_its_place_goes(text: str, left: str) -> None:
    assert cleaned(text, NOBODY) == left


@pytest.mark.parametrize(
    "text",
    [
        "knee ext 120 deg",
        "EXT 1500 ms",
        "mother with breast cancer",
        "lesion in left upper lobe",
        "RN requested delay",
        "RN Cystogram",
        "NP Swab",
        "Hemoptysis, compressive atelectasis, desiccation",
        "P4^P101^S108^I0, Gated, 0.0%",
    ],
)
def test_what_is_technical_or_medical_stays(text: str) -> None:
    assert cleaned(text, NOBODY) == text


def test_a_name_that_is_a_technical_word_goes_beside_its_own_initial_and_stays_alone() -> None:
    hand = own(Said(NAME, "HAND^KEVIN"))
    assert cleaned("AX T2 (Hand, K.)", hand) == "AX T2"
    assert cleaned("AX T2 K. Hand", hand) == "AX T2"
    assert cleaned("L HAND 3 VIEWS", hand) == "L HAND 3 VIEWS"
    assert cleaned("R. Hand", hand) == "R. Hand"


def test_a_letter_stands_for_the_characters_that_case_blind_matching_takes_for_it() -> None:
    characters = "".join(map(chr, range(0x20000)))
    for letter in "abcdefghijklmnopqrstuvwxyzаисптф":
        assert re.findall(letter, characters, re.IGNORECASE) == re.findall(any_case(letter), characters), letter


def test_alternatives_by_initial_match_what_they_match_in_a_row() -> None:
    words = ["mrn", "pid", r"pat(?:ient)?", "passport", "id", "ips"]
    row, grouped = (re.compile(f"(?:{one})", re.IGNORECASE) for one in ("|".join(words), by_initial(words)))
    for text in ["MRN", "patient", "pat", "Passport no", "IPS", "ıd", "none"]:
        assert [m.span() for m in row.finditer(text)] == [m.span() for m in grouped.finditer(text)]


@pytest.mark.parametrize("one", ["", "(?:a)", "n?o", "1a"])
def test_an_alternative_without_a_letter_of_its_own_is_refused(one: str) -> None:
    with pytest.raises(ValueError, match="begin"):
        by_initial([one])
