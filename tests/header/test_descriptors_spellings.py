"""Names, initials and numbers of the object in other writings, labels of orders, and other forms of dates and hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from header_objects import ct_base, encoded, policy
from planted_words import WORDS, cleaned, own
from test_structured_gate import findings

from gateway.header import scrub_file
from gateway.header.descriptors_masking import masked
from gateway.header.descriptors_own import DATE, LABEL, NAME, NUMBER, OwnWords, Said
from gateway.pseudonyms import Pseudonyms

NOBODY = own()


def said_by(name: str = "", number: str = "") -> OwnWords:
    given = [Said(NAME, name)] if name else []
    return own(*given, Said(DATE, "19500131"), *([Said(NUMBER, number)] if number else []))


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("ZZMCDONNEL^RON", "Zzmc Donnel knee", "knee"),
        ("ZZONEILL^ADA", "CT Zzo'Neill, A.", "CT"),
        ("ZZGROSSMANN^JOERG", "Zzgroß mann MRT", "MRT"),
        ("ZZSYNTH^LEAKTEST", "Z Z S Y N T H thorax", "thorax"),
        ("ZZSYNTH^LEAKTEST", "Leak-test thorax", "thorax"),
        ("ZZSYNTH^LEAKTEST", "Z.Z.S.Y.N.T.H. thorax", "thorax"),
        ("Zzde La Zzcruz^Juan", "ZZDELAZZCRUZ J. CT", "CT"),
    ],
)
def test_a_name_written_apart_or_together_is_the_same_name(name: str, text: str, left: str) -> None:
    assert masked(text, said_by(name)).text == left


def test_words_that_only_begin_like_a_name_stay() -> None:
    assert masked("Head long axis, thorax", said_by("HEADLEY^ANN")).text == "Head long axis, thorax"
    assert masked("arm strong enough", said_by("ARMSTEAD^ANN")).text == "arm strong enough"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("JS 31/1/1950 thorax", "thorax"),
        ("SJ geb. 31.1.50 thorax", "geb. thorax"),
        ("thorax 1950-01-31 (J S)", "thorax"),
        ("thorax LEAK0001_JS", "thorax"),
        ("js, 31.01.1950", ""),
        ("JS thorax", "JS thorax"),  # two letters alone say nothing
        ("CT 31.01.1950", "CT"),  # an abbreviation that the list knows
        ("XQ 31.01.1950", "XQ"),  # nobody's
    ],
)
def test_own_initials_go_where_they_stand_beside_a_date_or_number(text: str, left: str) -> None:
    assert masked(text, said_by("ZZSYNTH^JOHN^SIMON", "LEAK0001")).text == left


@pytest.mark.parametrize(
    ("number", "text", "left"),
    [
        ("COOKIE-47", "CT COOKIE-47 thorax", "CT thorax"),
        ("COOKIE-47", "cookie 47, thorax", "thorax"),
        ("COOKIE-47", "cookie47_T2", "T2"),
        ("COOKIE-47", "a cookie study", "a study"),  # a word of a number may be its owner's name
        ("BRAIN-12", "BRAIN-12 T2", "T2"),
        ("BRAIN-12", "brain T2", "brain T2"),
        ("BRAIN-12", "brain 5 mm 12", "brain 5 mm 12"),
    ],
)
def test_a_number_of_a_word_and_few_digits_goes_whole(number: str, text: str, left: str) -> None:
    assert masked(text, said_by(number=number)).text == left


def test_a_label_of_a_word_and_few_digits_is_no_number_of_a_person() -> None:
    scanner = OwnWords.of([Said(LABEL, "BRAIN-12")], WORDS)
    assert masked("BRAIN-12 T2", scanner).text == "BRAIN-12 T2"


@pytest.mark.parametrize("patient_id", ["COOKIE-47", "WHISPER_3", "Sunrise 12", "PAT-07"])
def test_the_gate_finds_nothing_of_such_a_number_in_what_was_cleaned(tmp_path: Path, patient_id: str) -> None:
    header = policy("clean-descriptors")
    ds = ct_base()
    ds.PatientID, ds.SeriesDescription = patient_id, f"T2 {patient_id.lower()} axial"
    source, target = tmp_path / "in.dcm", tmp_path / "out.dcm"
    source.write_bytes(encoded(ds))
    scrub_file(source, target, policy=header, pseudonyms=Pseudonyms(bytes(range(32))))
    assert findings(source, target, header) == []
    assert patient_id.lower().encode() not in target.read_bytes().lower()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("REQ-20-00451 MR Knee", "REQ MR Knee"),
        ("ORD-4711 head", "ORD head"),
        ("Order 12345 head", "Order head"),
        ("Placer 4711 Filler 4712", "Placer Filler"),
        ("Requisition no. 4711", "Requisition no."),
        ("Anf.-Nr. 4711 Thorax", "Anf.-Nr. Thorax"),
        ("Untersuchungsnummer 47112", ""),
        ("Patient 4711 thorax", "Patient thorax"),
        ("patient #12", "patient #"),
        ("Subject ID P012", "Subject ID"),
        ("Tel.: 4711", "Tel."),
        ("{3F2504E0-4F89-11D3-9A0C-0305E82C3301} T2", "T2"),
        ("ftp.zz.ch/pub thorax", "thorax"),
        ("fe80::1ff:fe23:4567:890a thorax", "thorax"),
        ("Jan 31st '50", ""),
        ("31 I 1950 thorax", "thorax"),
        ("1950/31/01 thorax", "thorax"),
        ("31-01-1950T10:15 thorax", "thorax"),
    ],
)
def test_orders_hosts_and_dates_go_in_these_forms_too(text: str, left: str) -> None:
    assert cleaned(text, NOBODY) == left


@pytest.mark.parametrize(
    "text",
    [
        "order of phases 1000 ms",
        "second order 2 shim",
        "patient 1500 ml water",
        "Patient supine 5 mm",
        "request 3 phases",
        "T2 I 512",
        "10:15:20 delay",
        "a::b ratio",
        "Ruptur M. supraspinatus",
        "m. iliopsoas",
        "M. Crohn",
        "M.quadriceps",
    ],
)
def test_what_only_looks_like_these_stays(text: str) -> None:
    assert cleaned(text, NOBODY) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Zzsynth M. hip", "hip"),
        ("Zzsynth, M. Knie", "Knie"),
        ("M. White thorax", "thorax"),
        ("vu avec M. Zzdupont", "vu avec"),
    ],
)
def test_an_initial_behind_a_name_is_no_title_of_the_next_word(text: str, left: str) -> None:
    assert cleaned(text, NOBODY) == left
