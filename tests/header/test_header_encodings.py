"""cases.md S3 and S5 for headers: encodings, technical contents and what the object says of itself."""

import io
from pathlib import Path

import pydicom
import pytest
from header_objects import (
    BASIC,
    BIG_ENDIAN,
    BORN,
    DEFLATED,
    EXPLICIT,
    IMPLICIT,
    PSEUDONYMS,
    SYNTAXES,
    ct_base,
    encoded,
    explicit,
    policy,
    scrub,
    with_element,
)
from pydicom.dataset import Dataset

from gateway.errors import Hold


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_case_59_the_transfer_syntax_stays_and_stamps_are_in_its_byte_order(tmp_path: Path, syntax: str) -> None:
    out = scrub(tmp_path, ct_base(), syntax=syntax)
    assert out.ds.file_meta.TransferSyntaxUID == syntax
    assert out.ds.PixelData == ct_base().PixelData
    assert [code.CodeValue for code in out.ds.DeidentificationMethodCodeSequence] == ["113100", "113107"]
    tags = [int(tag) for tag in out.ds._dict]
    assert tags == sorted(tags)


def test_case_60_text_in_other_character_sets_is_neither_read_nor_changed(tmp_path: Path) -> None:
    ds = ct_base()
    ds.SpecificCharacterSet = ["ISO 2022 IR 6", "ISO 2022 IR 87"]
    ds.Manufacturer = "ACME"
    raw = b"\x1b$B;3ED\x1b(B"  # Yamada in JIS X 0208
    file = encoded(ds).replace(explicit(0x00080070, "LO", b"ACME"), explicit(0x00080070, "LO", raw))
    out = scrub(tmp_path, file)
    assert explicit(0x00080070, "LO", raw) in out.bytes
    assert out.ds.SpecificCharacterSet == ds.SpecificCharacterSet


def test_case_62_and_63_technical_sequences_stay_and_type_1_is_never_empty(tmp_path: Path) -> None:
    ds = ct_base()
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4.1"
    measures = Dataset()
    measures.SliceThickness, measures.PixelSpacing = "1.5", ["0.9", "0.9"]
    shared = Dataset()
    shared.PixelMeasuresSequence = [measures]
    ds.SharedFunctionalGroupsSequence = [shared]
    ds.DeviceSerialNumber, ds.ManufacturerModelName, ds.SoftwareVersions = "LEAK0001", "Vision", "VB17"
    ds.ContentDate, ds.ContentTime = "20200131", "101500"
    out = scrub(tmp_path, ds, BASIC).ds
    assert out.SharedFunctionalGroupsSequence == ds.SharedFunctionalGroupsSequence
    assert (out.ManufacturerModelName, out.SoftwareVersions) == ("Vision", "VB17")
    assert out.DeviceSerialNumber.startswith("ANON-")
    assert out.ContentDate
    again = scrub(tmp_path, ds, BASIC).ds
    assert again.DeviceSerialNumber == out.DeviceSerialNumber


def test_case_82_earlier_codes_stay_earlier_free_text_goes(tmp_path: Path) -> None:
    ds = ct_base()
    ds.PatientIdentityRemoved, ds.DeidentificationMethod = "NO", "cleaned at St LEAKTEST"
    items = []
    for value, scheme in (("113101", "DCM"), ("113106", "DCM"), ("113100", "DCM"), ("LEAK0001", "99X")):
        items.append(item := Dataset())
        item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = value, scheme, "LEAKTEST"
    ds.DeidentificationMethodCodeSequence = items
    out = scrub(tmp_path, ds)
    assert out.ds.PatientIdentityRemoved == "YES"
    codes = [item.CodeValue for item in out.ds.DeidentificationMethodCodeSequence]
    assert codes == ["113101", "113100", "113107"]  # 113106 contradicts the shift
    assert out.has_plant() == []


@pytest.mark.parametrize(
    ("options", "temporal", "codes"),
    [
        ((), "REMOVED", ["113100"]),
        (("retain-longitudinal-full-dates",), "UNMODIFIED", ["113100", "113106"]),
        (("retain-longitudinal-modified-dates",), "MODIFIED", ["113100", "113107"]),
        (
            ("retain-uids", "retain-device-identity", "retain-institution-identity", "retain-patient-characteristics"),
            "REMOVED",
            ["113100", "113108", "113109", "113110", "113112"],
        ),
    ],
)
def test_case_81_the_object_says_what_was_done_to_it(
    tmp_path: Path, options: tuple[str, ...], temporal: str, codes: list[str]
) -> None:
    ds = ct_base()
    ds.BurnedInAnnotation = "YES"
    out = scrub(tmp_path, ds, policy(*options)).ds
    assert out.PatientIdentityRemoved == "YES"
    assert out.LongitudinalTemporalInformationModified == temporal
    assert [item.CodeValue for item in out.DeidentificationMethodCodeSequence] == codes
    assert {item.CodingSchemeDesignator for item in out.DeidentificationMethodCodeSequence} == {"DCM"}
    assert out.DeidentificationMethod.startswith("DEID_GW_0.1 PS3.15-2026d 100")
    assert out.BurnedInAnnotation == "YES"  # not ours to say


def test_case_83_group_lengths_are_not_written(tmp_path: Path) -> None:
    file = with_element(encoded(ct_base()), explicit(0x00100000, "UL", b"\xe7\x03\0\0"), 0x00100000)
    out = scrub(tmp_path, file)
    assert out.step.counts["group_length"] == 1
    assert explicit(0x00100000, "UL", b"\xe7\x03\0\0") not in out.bytes


@pytest.mark.parametrize("syntax", [IMPLICIT, EXPLICIT, BIG_ENDIAN])
def test_a_file_without_file_meta_is_read_where_its_encoding_is_evident(tmp_path: Path, syntax: str) -> None:
    file = encoded(ct_base(), syntax)
    start = 144 + pydicom.dcmread(io.BytesIO(file)).file_meta[0x00020000].value
    out = scrub(tmp_path, file[start:])
    assert out.ds.file_meta.TransferSyntaxUID == syntax
    assert out.has_plant() == []
    assert out.ds.PatientID == PSEUDONYMS.patient_id("LEAK0001")


@pytest.mark.parametrize(
    ("said", "real"), [(IMPLICIT, EXPLICIT), (EXPLICIT, IMPLICIT), (BIG_ENDIAN, EXPLICIT), (DEFLATED, EXPLICIT)]
)
def test_a_data_set_in_another_encoding_than_said_is_held(tmp_path: Path, said: str, real: str) -> None:
    meta = encoded(ct_base(), said)
    meta = meta[: 144 + int.from_bytes(meta[140:144], "little")]
    data = encoded(ct_base(), real)
    data = data[144 + int.from_bytes(data[140:144], "little") :]
    with pytest.raises(Hold) as held:
        scrub(tmp_path, meta + data)
    assert held.value.reason == "unreadable_object"


def test_an_unknown_or_unusable_transfer_syntax_is_held(tmp_path: Path) -> None:
    for uid in (b"1.2.840.10008.1.2.4.94", b"1.2.840.113619.5.2", b"1.2.840.10008.1.2.999"):
        file = encoded(ct_base())
        meta_end = 144 + int.from_bytes(file[140:144], "little")
        new = uid + b"\0" * (len(uid) % 2)
        meta = file[144:meta_end].replace(
            explicit(0x00020010, "UI", b"1.2.840.10008.1.2.1\0"), explicit(0x00020010, "UI", new)
        )
        with pytest.raises(Hold) as held:
            scrub(tmp_path, file[:140] + len(meta).to_bytes(4, "little") + meta + file[meta_end:])
        assert held.value.reason == "unsupported_transfer_syntax"


def test_elements_out_of_order_are_sorted_and_doubled_ones_held(tmp_path: Path) -> None:
    file = encoded(ct_base())
    late = file + explicit(0x00104000, "LT", b"LEAKTEST")  # behind Pixel Data
    out = scrub(tmp_path, late)
    assert out.has_plant() == []
    doubled = with_element(file, explicit(0x00100020, "LO", b"OTHER001"), 0x00100020)
    with pytest.raises(Hold) as held:
        scrub(tmp_path, doubled)
    assert held.value.reason == "unreadable_object"


def test_the_birth_date_never_comes_out_shifted_or_not(tmp_path: Path) -> None:
    for options in ((), ("retain-longitudinal-full-dates",), ("retain-longitudinal-modified-dates",)):
        out = scrub(tmp_path, ct_base(), policy(*options))
        assert out.ds.PatientBirthDate == ""
        assert BORN.encode() not in out.bytes
