"""Intake and header read one Patient ID alike, whatever its character set: else a study would be held or torn apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from planting import base

from gateway.app.intake import examine
from gateway.header.admission import admit
from gateway.header.source import open_source, top_level
from gateway.policy import HeaderPolicy
from gateway.pseudonyms import Keys

MASTER = bytes(range(32))
KEYS = Keys(MASTER)


@pytest.mark.parametrize(
    ("terms", "patient"),
    [
        ([], "LEAK0001 "),
        (["ISO_IR 100"], "L\u00e4k\u00f6 1"),
        (["ISO_IR 192"], "\u5c71\u7530-1"),
        (["ISO_IR 144"], "\u041b\u044e\u043a-1"),
        (["GB18030"], "\u5f20-1"),
        (["", "ISO 2022 IR 87"], "\u5c71\u7530-1"),
        (["ISO 2022 IR 13", "ISO 2022 IR 87"], "\u5c71\u7530-1"),
        (["", "ISO 2022 IR 149"], "\uae40-1"),
        (["ISO 2022 IR 6", "ISO 2022 IR 100"], "L\u00e4k-1"),
        (["ISO_IR 999"], "LEAK0001"),
    ],
)
@pytest.mark.parametrize("implicit", [False, True])
def test_both_name_the_same_person(tmp_path: Path, terms: list[str], patient: str, implicit: bool) -> None:
    ds = base(implicit=implicit)
    if terms:
        ds.SpecificCharacterSet = terms if terms != ["ISO_IR 999"] else "ISO_IR 100"
    ds.PatientID = patient
    path = tmp_path / "one.dcm"
    ds.save_as(path, enforce_file_format=True)
    if terms == ["ISO_IR 999"]:
        path.write_bytes(path.read_bytes().replace(b"ISO_IR 100", b"ISO_IR 999"))
    found = examine(path, "one", MASTER)
    reader, elements, _ = top_level(open_source(path))
    facts = admit(elements, reader, HeaderPolicy())
    assert found.fault == ""
    assert found.patient_key == KEYS.person(facts.patient_id)


def test_a_person_is_the_same_in_two_character_sets(tmp_path: Path) -> None:
    keys = set()
    for number, terms in enumerate((["ISO_IR 192"], ["", "ISO 2022 IR 87"], ["GB18030"])):
        ds = base()
        ds.SpecificCharacterSet, ds.PatientID = terms, "\u5c71-1"
        path = tmp_path / f"{number}.dcm"
        ds.save_as(path, enforce_file_format=True)
        keys.add(examine(path, "one", MASTER).patient_key)
    assert keys == {KEYS.person("\u5c71-1")}


@pytest.mark.parametrize("raw", [b"\xff\xfe\xfd ", b"A\\B ", b"\x1b$B;3 ", b"\x00\x00"])
def test_bytes_that_mean_nothing_are_read_alike_too(tmp_path: Path, raw: bytes) -> None:
    ds = base()
    ds.PatientID = "PLACE---"
    path = tmp_path / "one.dcm"
    ds.save_as(path, enforce_file_format=True)
    path.write_bytes(path.read_bytes().replace(b"PLACE---", raw.ljust(8)))
    found = examine(path, "one", MASTER)
    if not raw.strip(b" \0"):
        assert found.fault == "missing_patient_id"
        return
    reader, elements, _ = top_level(open_source(path))
    assert found.patient_key == KEYS.person(admit(elements, reader, HeaderPolicy()).patient_id)
