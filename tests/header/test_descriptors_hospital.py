"""Free text as hospitals write it, in a dozen languages, with the right answer written down before it was tried.

Nobody's own words are known here: what goes, goes by its form, by what stands beside it, or because no list knows it.
All of it is synthetic.
"""

from __future__ import annotations

import pytest
from planted_words import NOBODY, cleaned, corpus, own

from gateway.header.descriptors_own import NAME, Said

HOSPITAL = [(row["text"], row["expected"]) for row in corpus("descriptors_hospital.csv")]
PROTOCOLS = [row["text"] for row in corpus("descriptors_protocols.csv")]


@pytest.mark.parametrize(("text", "expected"), HOSPITAL)
def test_a_note_loses_the_person_and_nothing_else(text: str, expected: str) -> None:
    assert cleaned(text, NOBODY) == expected
    assert cleaned(expected, NOBODY) == expected


@pytest.mark.parametrize("text", PROTOCOLS)
def test_a_protocol_a_kernel_an_agent_or_a_request_stays_whole(text: str) -> None:
    assert cleaned(text, NOBODY) == text


_TELEPHONES = """
300-624-5152 800-555-1234 1-300-624-5152 +1-300-624-5152 +1.300.624.5152 (800)555-1234 300.624.5152
+49(0)89/1234567 0049-89-123456 030/1234567 +41-44-123-45-67 +33(0)1.23.45.67.89 +44-20-7946-0958 03-1234-5678
+81-3-1234-5678 090-1234-5678 010-1234-5678 8-800-555-35-35 600-123-456 +55(11)91234-5678 +91-98765-43210
1300-123-456 138-0013-8000 2006245152
"""
TELEPHONES = _TELEPHONES.split()
SPACED = (
    *("01 23 45 67 89", "020 7946 0958", "07700 900123", "+33 1 23 45 67 89", "044 123 45 67", "(0)44 123 45 67"),
    *("+41 44 123 45 67", "089 / 12 34 56-0", "98765 43210", "138 0013 8000", "(11) 91234-5678", "0412 345 678"),
    *("(512) 256-1024", "(212) 555-0100 x12", "212-555-0100 ext. 443", "555 0100 0200"),
)
CALLED = ("call", "Tel.", "Tel:", "fax", "phone", "ph", "mobile", "cell", "callback", "TEL")


@pytest.mark.parametrize("called", CALLED)
@pytest.mark.parametrize("number", [*TELEPHONES, *SPACED])
def test_a_telephone_number_goes_whatever_its_country_and_however_round_it_is(number: str, called: str) -> None:
    assert not any(map(str.isdecimal, cleaned(f"{called} {number}", NOBODY)))
    assert cleaned(f"AX FS {called} {number}\nCOR", NOBODY).split() == ["AX", "FS", called, "COR"]


@pytest.mark.parametrize("number", [one for one in TELEPHONES if not one.startswith("0049")])
def test_a_telephone_number_goes_without_a_word_before_it(number: str) -> None:
    assert cleaned(f"AX FS {number}", NOBODY) == "AX FS"


@pytest.mark.parametrize(
    "text", ["DWI b 0-500-1000", "b=100-500-1000", "256 256 1024", "512-512-1024", "TE 10/20/30", "0/500/1000"]
)
def test_sizes_and_b_values_are_no_telephone_numbers(text: str) -> None:
    assert cleaned(text, NOBODY) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CHEST W/O Oberon", "CHEST W/O"),
        ("3D LAVA-FLEX C+ Oberon", "3D LAVA-FLEX C+"),
        ("MIP C- Oberon, Cyril", "MIP C-"),
        ("+C Oberon T1", "+C T1"),
        ("Q.Clear Oberon", "Q.Clear"),
        ("Abdomen a.p. Oberon", "Abdomen a.p."),
        ("Oberon. C+", "C+"),
        ("Oberon C.", ""),
        ("O. Cyril", ""),
    ],
)
def test_a_sign_or_a_letter_of_a_technical_word_is_no_initial(text: str, expected: str) -> None:
    assert cleaned(text, own(Said(NAME, "OBERON^CYRIL^QUINN^AP"))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seen at Lakeshore Bayside Hospital", "seen at"),  # known words, and yet a house
        ("12 Lighthouse Street", ""),
        ("Pain Clinic referral", "Pain Clinic referral"),
        ("Breast Center protocol", "Breast Center protocol"),
        ("Stroke Unit CT", "Stroke Unit CT"),
    ],
)
def test_everyday_words_stay_unless_they_name_a_house_or_a_street(text: str, expected: str) -> None:
    assert cleaned(text, NOBODY) == expected
