"""Kinds of identity that a held-out half of `bench/midib` once showed to be left, in other words than there."""

import re

import pytest
from planted_words import cleaned, own

from gateway.header.descriptors_initials import any_case, by_initial
from gateway.header.descriptors_masking import _remembered_masking, _remembered_reading
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
        ("Ext 40321 33. Repeat", "Ext. Repeat"),  # all of a number, not its first digits
        ("ext 4032 11 55", "ext"),
        ("Ext: 40321/22", "Ext"),
    ],
)
def test_what_identifies_by_its_form_or_its_place_goes(text: str, left: str) -> None:
    assert cleaned(text, NOBODY) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("squint, NHS No 430 389 5628. Repeat", "squint, NHS No. Repeat"),  # the end of a sentence is no decimal point
        ("prior 1.2.840.113619.2.55.3. Repeat", "prior. Repeat"),
        ("98765 43210. Repeat", "Repeat"),
        ("Mob 530-6634", "Mob"),
        ("Phone number 301-5238.", "Phone number"),
        ("c/b 256-7255", "c/b"),
        ("ring 788-3173", "ring"),
        ("h: 855-7853", "h"),
        ("knee 269/501-6281", "knee"),
        ("parked reg AB12 CDE", "parked reg"),
        ("Kennzeichen M-AB 123", ""),
        ("/ cons. Miss Sharp", "/ cons."),
        ("E-signed Zzhilde Sharp 04-Aug-2006 18:22", "E-signed"),
        ("next of kin: Hope Zzhaver", "next of kin"),
        ("came with sister Hope", "came with sister"),
        ("RT: Sharp, W", "RT"),
        ("RT: Sharp, W. Repeat", "RT. Repeat"),
        ("RT: Sharp, W\r\nRepeat", "RT\r\nRepeat"),
        ("lives 267 Zzdaw Drive, Zzlow Junction", "lives"),
        ("resident of New Zzford", "resident of"),
        ("disease @ Old Mill Road Hospital", "disease @"),
        ("transferred from North Fork Veterans Hospital", "transferred from"),
        ("from Queen Zzaide Infirmary. Hematuria, pain", "from. Hematuria, pain"),
        ("from St. Zzaide Infirmary", "from"),
        ("j.doe@host and j.doe @ mail.example.com", "and"),
        ("Biopsy, assist Hope", "Biopsy, assist"),
        ("Interpreter: Rose", "Interpreter"),
        ("scrub nurse Faith, 2 views", "scrub nurse, 2 views"),
    ],
)
def test_what_stands_behind_labels_titles_and_marks_goes(text: str, left: str) -> None:
    assert cleaned(text, NOBODY) == left


@pytest.mark.parametrize(
    "text",
    [
        "CT ENTEROGRAPHY @ 70 s",  # what stands before a spaced "@" is no mail box
        "REG T1 AX",
        "registration to MR",
        "Ring artifact at 100 120 140",
        "ring 100-1200 ms",
        "W: 350-2000",
        "near miss lesion",
        "Mother Breast cancer",
        "Ventricular Assist Device",
        "Assist Control Mode",
        "assist Pump Mark II",
        "Nurse Station",
        "Resident Head CT",
        "nurse to repeat",
        "View: Hand, L",
        "CT HEAD, W",
        "Outside Hospital CT",
        "Previous Pain Clinic",
        "Stroke Center Protocol",
        "4 Chamber View, Sagittal.",
        "Nonhealing ulcer, nonobstructive pattern",
        "septate uterus, hives, lower wharf",
        "Ankylosing spondylitis. Septate uterus",
        "Parkinsonism, secondary hyperparathyroidism",
    ],
)
def test_what_only_looks_like_that_stays(text: str) -> None:
    assert cleaned(text, NOBODY) == text


def test_a_technique_behind_a_masked_author_is_no_second_name() -> None:
    assert cleaned("Performed by Zzalski Chest", NOBODY) == "Performed Chest"
    assert cleaned("Performed by Zzalski Major", NOBODY) == "Performed"


def test_a_rare_word_counts_where_it_is_written_as_no_name_is() -> None:
    assert cleaned("AX Septate T2", NOBODY) == "AX T2"
    assert cleaned("AX SEPTATE T2", NOBODY) == "AX T2"
    assert cleaned("AX septate T2", NOBODY) == "AX septate T2"
    assert cleaned("lesion, Hives", NOBODY) == "lesion"
    assert cleaned("septate uterus", own(Said(NAME, "SEPTATE^ANNA"))) == "uterus"


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
        "Ring enhancement on 5/10/15 min",
        "RING ARTIFACT AT 100 120 140",
        "Reach to 12000 mm",
    ],
)
def test_what_is_technical_or_medical_stays(text: str) -> None:
    assert cleaned(text, NOBODY) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("lesion in Zzrison Pouch Right", "lesion in Right"),
        ("lesion in Zzrison Pouch Left", "lesion in Left"),
        ("uptake in Zzuch Node Left", "uptake in Node Left"),
        ("stop at Zzoddi Level", "stop at Level"),
    ],
)
def test_a_side_and_anatomy_behind_an_eponym_are_no_town(text: str, left: str) -> None:
    assert cleaned(text, NOBODY) == left


def test_a_long_text_is_not_remembered_as_a_short_one_is() -> None:
    """A worker's memory must not grow with the texts of strangers: 4096 of 16 kB each would be gigabytes."""
    for size, remembered in ((100, 1), (20_000, 0)):
        _remembered_reading.cache_clear()
        _remembered_masking.cache_clear()
        text = "a b " * (size // 4) + "x"
        assert cleaned(text, NOBODY) == text
        assert [one.cache_info().currsize for one in (_remembered_reading, _remembered_masking)] == [remembered] * 2
    long = Said(NAME, "ZZQUAX^ANNA")
    text = "thorax b " * 800 + "Zzquax, Anna 31.01.1950"
    assert cleaned(text, own(long)) == ("thorax b " * 800).strip()


def test_a_long_word_is_not_remembered_by_an_object() -> None:
    mine = own(Said(NAME, "ZZQUAX^ANNA"))
    for size, remembered in ((10, True), (5000, False)):
        word = "b" * size + "zzquax"
        assert mine.trait(word).strong
        assert (word in mine.traits) is remembered


def test_a_name_that_is_a_technical_word_goes_beside_its_own_initial_and_stays_alone() -> None:
    hand = own(Said(NAME, "HAND^KEVIN"))
    assert cleaned("AX T2 (Hand, K.)", hand) == "AX T2"
    assert cleaned("AX T2 K. Hand", hand) == "AX T2"
    assert cleaned("L HAND 3 VIEWS", hand) == "L HAND 3 VIEWS"
    assert cleaned("R. Hand", hand) == "R. Hand"
    assert cleaned("AX T2 K.Hand", hand) == "AX T2"
    assert cleaned("AX T2 RT: Hand, K", hand) == "AX T2 RT"
    assert cleaned("AX Hand, K. Repeat", hand) == "AX Repeat"
    assert cleaned("HAND, K WIRE", hand) == "HAND, K WIRE"
    assert cleaned("HAND, L", own(Said(NAME, "HAND^LIONEL"))) == "HAND, L"
    assert cleaned("Q.Clear", own(Said(NAME, "HAND^QUENTIN"))) == "Q.Clear"


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
