"""Siemens CSA headers: emptied but for technical fields, read afterwards by an independent reader (cases.md 22)."""

from __future__ import annotations

import struct
from pathlib import Path

import pydicom
import pytest
from header_objects import IMPLICIT, SYNTAXES, ct_base, policy, scrub
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.dataset import Dataset

from gateway.header.csa import CODES, NUMBERS, PATTERNS, cleaned_csa
from gateway.policy import HeaderPolicy

SAFE = policy("retain-safe-private")
CLEAN = policy("retain-safe-private", private={"csa_headers": "clean"})
GARBAGE = b"\0ZZSYNTH LEAKTEST left over"


def csa(fields: dict[str, list[bytes]], *, tail: bytes = b"") -> bytes:
    """An SV10 header as devices write it: six items and more for each field, garbage behind every NUL."""
    out = b"SV10\x04\x03\x02\x01" + struct.pack("<II", len(fields), 77)
    for name, values in fields.items():
        items = [*values, *[b""] * (6 - len(values))]
        out += (name.encode() + GARBAGE.ljust(64))[:64]
        out += struct.pack("<i4siii", len(values), b"IS\0Z", 6, len(items), 77)
        for value in items:
            text = value + GARBAGE if value else b""
            out += struct.pack("<iiii", len(text), len(text), 77, len(text)) + text + b"L" * (-len(text) % 4)
    return out + tail


def read(data: bytes) -> dict[str, list[str]]:
    """The fields of an SV10 header, after the public description of the format; every length is believed."""
    assert data[:4] == b"SV10"
    count, check = struct.unpack_from("<II", data, 8)
    assert check == 77
    at, fields = 16, {}
    for _ in range(count):
        name, _, vr, _, items, mark = struct.unpack_from("<64si4siii", data, at)
        assert mark in (77, 205)
        assert vr[:2].isalpha()
        at += 84
        values = []
        for _ in range(items):
            length = struct.unpack_from("<iiii", data, at)[1]
            at += 16
            values.append(data[at : at + length].split(b"\0")[0].decode("latin-1").strip())
            at += (length + 3) // 4 * 4
        fields[name.split(b"\0")[0].decode()] = [value for value in values if value]
    assert at <= len(data)
    return fields


FIELDS = {
    "NumberOfImagesInMosaic": [b"36"],
    "MosaicRefAcqTimes": [b"0.00000000", b"52.50000000", b"1105.00000000"],
    "B_value": [b"1000"],
    "ICE_Dims": [b"X_1_1_1_1_1_1_48_1_1_1_1_201"],
    "ImaPATModeText": [b"for Zzsynth"],
    "DiffusionGradientDirection": [b"0.70710677", b"-0.70710677", b"1.5e-05"],
    "DiffusionDirectionality": [b"DIRECTIONAL"],
    "SliceNormalVector": [b"0.0", b"0.0", b"1.0"],
    "B_matrix": [b"ZZSYNTH"],
    "DiffusionScheme": [b"LEAKTEST"],
    "MrPhoenixProtocol": [b'### ASCCONV BEGIN ###\ntPatientName = "ZZSYNTH^LEAKTEST"\n### ASCCONV END ###'],
    "PatientName": [b"ZZSYNTH^LEAKTEST"],
    "ImaCoilString": [b"HEA;HEP"],
}
KEPT = {
    "NumberOfImagesInMosaic": ["36"],
    "MosaicRefAcqTimes": ["0.00000000", "52.50000000", "1105.00000000"],
    "B_value": ["1000"],
    "ICE_Dims": ["X_1_1_1_1_1_1_48_1_1_1_1_201"],
    "DiffusionGradientDirection": ["0.70710677", "-0.70710677", "1.5e-05"],
    "DiffusionDirectionality": ["DIRECTIONAL"],
    "SliceNormalVector": ["0.0", "0.0", "1.0"],
}


def with_csa(image: bytes, series: bytes) -> Dataset:
    ds = ct_base()
    ds.Modality = "MR"
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
    block = ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
    block.add_new(0x08, "CS", "IMAGE NUM 4")
    block.add_new(0x09, "LO", "20200131")
    block.add_new(0x10, "OB", image)
    block.add_new(0x20, "OB", series)
    return ds


def test_listed_fields_stay_everything_else_is_empty_and_every_length_is_as_it_was() -> None:
    header = csa(FIELDS, tail=b"LEAKTEST")
    out = cleaned_csa(header)
    assert out is not None
    assert len(out) == len(header)
    assert not any(word in out for word in (b"ZZSYNTH", b"LEAKTEST", b"left over", b"HEA"))
    fields = read(out)
    assert list(fields) == list(FIELDS)
    assert {name: values for name, values in fields.items() if values} == KEPT


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_case_22_a_csa_header_goes_by_default_and_is_cleaned_where_the_policy_says_so(
    tmp_path: Path, syntax: str
) -> None:
    ds = with_csa(csa(FIELDS), csa({"MrPhoenixProtocol": FIELDS["MrPhoenixProtocol"]}))
    default = scrub(tmp_path, ds, SAFE, syntax)
    assert not [e for e in default.ds if e.tag.is_private]
    out = scrub(tmp_path, ds, CLEAN, syntax)
    assert out.has_plant() == []
    block = out.ds.private_block(0x0029, "SIEMENS CSA HEADER")
    assert {name: v for name, v in read(block[0x10].value).items() if v} == KEPT
    assert read(block[0x20].value) == {"MrPhoenixProtocol": []}
    assert block[0x08].value in ("IMAGE NUM 4", b"IMAGE NUM 4")
    assert 0x09 not in block


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"SV10",
        b"ZZSYNTH^LEAKTEST" * 8,
        csa(FIELDS)[:-3] + b"",
        csa(FIELDS)[:200],
        csa(FIELDS).replace(b"SV10", b"SV11"),
        csa(FIELDS)[:8] + struct.pack("<II", 3000, 77) + csa(FIELDS)[16:],
        csa(FIELDS)[:8] + struct.pack("<II", len(FIELDS) + 1, 77) + csa(FIELDS)[16:],
        csa({"Leaktest, Zzsynth": [b"1"]}),
    ],
)
def test_what_is_not_such_a_header_from_end_to_end_goes(tmp_path: Path, broken: bytes) -> None:
    assert cleaned_csa(broken) is None
    out = scrub(tmp_path, with_csa(broken + b" " * (len(broken) % 2), b""), CLEAN, IMPLICIT)
    assert out.has_plant() == []
    assert 0x00291010 not in out.ds


@given(st.binary(max_size=300))
@settings(max_examples=200)
def test_no_bytes_break_the_cleaner(noise: bytes) -> None:
    for data in (noise, csa(FIELDS)[:16] + noise, csa(FIELDS)[:100] + noise):
        out = cleaned_csa(data)
        assert out is None or len(out) == len(data)


@given(st.sampled_from(sorted({*NUMBERS, *CODES, b"PatientName"})), st.binary(min_size=1, max_size=40))
@settings(max_examples=200)
def test_no_field_lets_text_through(name: bytes, value: bytes) -> None:
    out = cleaned_csa(csa({name.decode(): [value]}))
    assert out is not None
    (found,) = read(out).values()
    allowed = {code.decode() for codes in CODES.values() for code in codes}
    assert all(one in allowed or not set(one) - set("0123456789+-.eE ") for one in found)


@pytest.mark.shared
def test_real_headers_keep_their_technical_fields(shared_data: Path, tmp_path: Path) -> None:
    seen = 0
    for path in sorted((shared_data / "dicom" / "nibabel").glob("*.dcm")):
        ds = pydicom.dcmread(path, force=True)
        if (0x0029, 0x1010) not in ds or not ds.get("PatientID"):
            continue
        before = ds.private_block(0x0029, "SIEMENS CSA HEADER")
        out = scrub(tmp_path, path.read_bytes(), CLEAN)
        after = out.ds.private_block(0x0029, "SIEMENS CSA HEADER")
        for element in (0x10, 0x20):
            if element not in before:
                continue
            was, now = read(before[element].value), read(after[element].value)
            assert list(was) == list(now)
            assert len(before[element].value) == len(after[element].value)
            for name, values in was.items():
                listed = name.encode() in {*NUMBERS, *CODES, *PATTERNS}
                assert now[name] == (values if listed else []), name
            seen += 1
    assert seen


def test_the_cleaner_needs_the_option() -> None:
    with pytest.raises(ValueError, match="retain-safe-private"):
        HeaderPolicy.model_validate({"private": {"csa_headers": "clean"}})
