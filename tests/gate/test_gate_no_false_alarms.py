"""The gate does not cry wolf where technical values coincide with identity, and does not go blind for it."""

from __future__ import annotations

import warnings
from pathlib import Path

import pydicom
import pytest
from gate_cases import encode, findings, identified_ct, item, plain_scrub
from pydicom.sequence import Sequence as Items

from gateway.gate.bytescan import scan_bytes


def study(**values: object) -> pydicom.Dataset:
    ds = identified_ct()
    for keyword, value in values.items():
        setattr(ds, keyword, value)
    return ds


COINCIDENCES = [
    # original values, technical values in original and candidate
    ({"PatientName": "HEAD^MARJORIE"}, {"BodyPartExamined": "HEAD"}),
    ({"PatientName": "Head"}, {"ReceiveCoilName": "Head 32"}),
    ({"PatientName": "BRAIN^T"}, {"BodyPartExamined": "BRAIN", "SequenceName": "brain_se"}),
    ({"PatientName": "Philips^Andrew"}, {"Manufacturer": "Philips Medical Systems"}),
    ({"PatientName": "Miller^Philip"}, {"Manufacturer": "PHILIPS"}),
    ({"PatientName": "Siemens^Wernher"}, {"Manufacturer": "SIEMENS Healthineers"}),
    ({"PatientName": "DIXON^MARY"}, {"ScanOptions": "DIXON", "SequenceName": "fl3d_dixon"}),
    ({"PatientName": "White^Ann"}, {"PhotometricInterpretation": "MONOCHROME2", "ImageType": ["DERIVED", "WHITE"]}),
    ({"PatientName": "Lee^Bo"}, {"SoftwareVersions": "LEE 1.0 BO"}),
    ({"PatientName": "M"}, {"PatientPosition": "HFS"}),
    ({"PatientName": "CT"}, {"Modality": "CT"}),
    ({"PatientName": "Long^Axel"}, {"ImageType": ["ORIGINAL", "PRIMARY", "LONG AXIS"]}),
    ({"PatientName": "Phantom^Test"}, {"ManufacturerModelName": "Test Phantom 4"}),
    ({"PatientName": "ANONYMOUS", "PatientID": "ANON"}, {"ManufacturerModelName": "ANON anonymous"}),
    ({"PatientID": "12"}, {"InstanceNumber": "12", "SeriesNumber": "12"}),
    ({"PatientID": "512"}, {"Rows": 8, "ReconstructionDiameter": "512"}),
    ({"PatientID": "10008"}, {}),  # a component of every SOP class UID
    ({"PatientID": "12345"}, {"ExposureTime": "12345"}),
    ({"PatientID": "987650"}, {"TriggerTime": "987650", "SpacingBetweenSlices": "0.987650"}),
    ({"PatientID": "CT"}, {"Modality": "CT"}),
    ({"PatientID": "HEAD"}, {"BodyPartExamined": "HEAD"}),
    ({"PatientID": "CT3"}, {"ManufacturerModelName": "CT3"}),
    ({"PatientID": "00000000"}, {"SoftwareVersions": "00000000"}),
    ({"StationName": "CT1"}, {"ManufacturerModelName": "CT1 classic"}),
    ({"StationName": "ALLEGRA"}, {"ManufacturerModelName": "Allegra", "SoftwareVersions": "ALLEGRA VA25"}),
    ({"StationName": "MAGNETOMX"}, {"CodeMeaning": "x", "ScanOptions": "MAGNETOMX"}),
    ({"InstitutionName": "SIEMENS"}, {"Manufacturer": "SIEMENS"}),
    ({"InstitutionName": "Acme Imagotron"}, {"Manufacturer": "Acme Imagotron"}),
    ({"StudyDescription": "BRAIN"}, {"BodyPartExamined": "BRAIN"}),
    ({"SeriesDescription": "t1_mprage_sag"}, {"SequenceName": "t1_mprage_sag"}),
    ({"ProtocolName": "CHEST"}, {"BodyPartExamined": "CHEST", "ViewPosition": "PA"}),
    ({"DateOfLastCalibration": "20150103"}, {"SoftwareVersions": "VB10 20150103"}),
    ({"DeviceSerialNumber": "4343"}, {"ManufacturerModelName": "Pixium 4343"}),
    ({"DetectorID": "PX4343RC"}, {"DetectorManufacturerModelName": "PX4343RC"}),
    ({"PatientSex": "O"}, {}),
    ({"PatientBirthDate": "19000101", "StudyDate": "19000101"}, {"SoftwareVersions": "19000101"}),
    ({"OperatorsName": "HEAD"}, {"BodyPartExamined": "HEAD"}),
    ({"ReferringPhysicianName": "^^^Dr."}, {"ScanOptions": "DR"}),
    ({"AccessionNumber": "1"}, {"InstanceNumber": "1"}),
    ({"StudyID": "BRAIN"}, {"BodyPartExamined": "BRAIN"}),
]


@pytest.mark.parametrize(
    ("identity", "technical"), COINCIDENCES, ids=lambda values: " ".join(map(str, values.values()))
)
def test_technical_values_that_coincide_are_no_findings(tmp_path, identity, technical):
    original = study(**{**technical, **identity})
    clean = plain_scrub(original)
    for keyword, value in technical.items():
        setattr(clean, keyword, value)
    assert findings(tmp_path, encode(original), encode(clean)) == {}


NOT_BLIND = [
    ({"PatientName": "HEAD^MARJORIE"}, "Head Marjorie, brain"),
    ({"PatientName": "HEAD^MARJORIE"}, "Marjorie's scan"),
    ({"PatientName": "Philips^Andrew"}, "Andrew Philips"),
    ({"PatientName": "Miller^Philip"}, "Miller, Philip"),
    ({"PatientName": "White^Oswald"}, "white, oswald"),
    ({"PatientID": "54321"}, "case 54321"),
    ({"PatientID": "LEAK01"}, "LEAK01/2"),
    ({"StationName": "ALLEGRA7"}, "on ALLEGRA7"),
    ({"InstitutionName": "Inselspital"}, "Inselspital Nord"),
    ({"DateOfLastCalibration": "20150103"}, "calibrated 2015-01-03"),
]


@pytest.mark.parametrize(("identity", "text"), NOT_BLIND, ids=[text for _, text in NOT_BLIND])
def test_the_same_people_and_places_are_found_in_free_text(tmp_path, identity, text):
    original = study(**identity)
    leaking = plain_scrub(original)
    leaking.ImageComments = text
    assert findings(tmp_path, encode(original), encode(leaking)).keys() == {"(0020,4000)"}


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("PatientName", "LI"),
        ("PatientName", "HEAD"),
        ("PatientID", "12"),
        ("PatientID", "CT"),
        ("PatientID", "12345"),
        ("AccessionNumber", "1"),
        ("PatientSex", "M"),
        ("PatientAge", "093Y"),
        ("StudyDescription", "BRAIN"),
        ("StationName", "CT1"),
        ("StudyTime", "101112"),
        ("PatientBirthDate", "19500101"),
        ("PatientWeight", "71.5"),
        ("OverlayDate", "20110212"),
    ],
)
def test_short_and_common_values_count_where_they_stood(tmp_path, keyword, value):
    original = study(**{keyword: value})
    leaking = plain_scrub(original)
    setattr(leaking, keyword, value)
    tag = pydicom.datadict.tag_for_keyword(keyword)
    assert findings(tmp_path, encode(original), encode(leaking)).keys() == {f"({tag >> 16:04x},{tag & 0xFFFF:04x})"}


def test_a_short_name_counts_in_every_name_element(tmp_path):
    original = study(PatientName="LI")
    leaking = plain_scrub(original)
    leaking.ContentSequence = Items([item(0x0040A123, "PN", "Li")])
    assert findings(tmp_path, encode(original), encode(leaking)).keys() == {"(0040,a730)[0].(0040,a123)"}


def test_short_uids_count_as_whole_values_of_uid_elements_only(tmp_path):
    original = study(StudyInstanceUID="1.2.3")
    clean = plain_scrub(original)
    clean.SoftwareVersions = "1.2.3"
    clean.ImagePositionPatient = ["1", "2", "3"]
    assert findings(tmp_path, encode(original), encode(clean)) == {}
    clean.ReferencedFrameOfReferenceUID = "1.2.3"
    assert findings(tmp_path, encode(original), encode(clean)).keys() == {"(3006,0024)"}


def test_uids_that_dicom_defines_are_no_identity(tmp_path):
    original = study(FrameOfReferenceUID="1.2.840.10008.1.4.1.1")  # Talairach brain atlas
    clean = plain_scrub(original)
    assert clean.FrameOfReferenceUID == "1.2.840.10008.1.4.1.1"
    assert findings(tmp_path, encode(original), encode(clean)) == {}


def test_classes_and_vocabularies_are_no_identity(tmp_path):
    original = study()
    code = item(0x0008010C, "UI", "2.16.840.1.113883.6.96")
    code.CodeMeaning, code.ContextUID = "Brain", "1.2.840.10008.6.1.2"
    original.AnatomicRegionSequence = Items([code])
    private_class = item(0x00081150, "UI", "1.2.276.0.7230010.3.1.0.1.99")
    private_class.ReferencedSOPInstanceUID = "1.2.276.0.7230010.3.1.4.8323329.77"
    original.ReferencedImageSequence = Items([private_class])
    assert findings(tmp_path, encode(original), encode(plain_scrub(original))) == {}


@pytest.fixture(scope="module")
def readable(pydicom_files: list[Path]) -> list[tuple[str, bytes, pydicom.Dataset]]:
    """pydicom's own files that this test can write again, with their bytes."""
    found = []
    for path in pydicom_files:
        data = path.read_bytes()
        scan = scan_bytes(data, original=True)
        if (scan.malformed and not scan.ends_before_tail) or not scan.text(0x00080018) or path.name == "DICOMDIR":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append((path.name, data, pydicom.dcmread(path)))
    assert len(found) > 120
    return found


def test_real_files_scrubbed_by_another_hand_raise_no_alarm(tmp_path, readable):
    alarms = {}
    for name, data, ds in readable:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clean = encode(plain_scrub(ds), ds.file_meta.TransferSyntaxUID)
        found = findings(tmp_path, data, clean)
        if found:
            alarms[name] = found
    assert alarms == {}


def test_real_files_that_were_not_scrubbed_raise_one_for_each_identifying_attribute(tmp_path, readable):
    missed = set()
    for _, data, ds in readable:
        found = findings(tmp_path, data, data)
        for keyword in ("PatientID", "PatientName", "StudyInstanceUID", "SOPInstanceUID", "StudyDate"):
            value, tag = str(ds.get(keyword, "")), pydicom.datadict.tag_for_keyword(keyword)
            if value and f"({tag >> 16:04x},{tag & 0xFFFF:04x})" not in found:
                missed.add(value)
    palettes = {f"1.2.840.10008.1.5.{number}" for number in range(1, 9)}  # PS3.6 A: well-known instances
    assert missed == {"Anonymized", "Anonymous", "^^^^"} | palettes
