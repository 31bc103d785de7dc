"""cases.md S1 for headers: identity that leaves silently. One test a case, numbered as there."""

from pathlib import Path

import pydicom
import pytest
from header_objects import (
    BIG_ENDIAN,
    BORN,
    CT,
    EXPLICIT,
    IMPLICIT,
    MODIFIED,
    NAME,
    PATIENT,
    PSEUDONYMS,
    SYNTAXES,
    ct_base,
    encoded,
    explicit,
    one,
    policy,
    scrub,
)

from gateway.study import IMPLEMENTATION_CLASS_UID, IMPLEMENTATION_VERSION_NAME


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_case_1_nested_uids_and_names_meet_the_rules_of_the_top_level(tmp_path: Path, syntax: str) -> None:
    ds = ct_base()
    study = one(ReferencedSOPClassUID="1.2.840.10008.3.1.2.3.1", ReferencedSOPInstanceUID=ds.StudyInstanceUID)
    inner = one(RequestingPhysician=NAME, ReferencedStudySequence=[study], ReferencedSOPInstanceUID=ds.StudyInstanceUID)
    ds.PerformedProtocolCodeSequence = [inner]
    out = scrub(tmp_path, ds, syntax=syntax)
    assert out.has_plant() == []
    kept = out.ds.PerformedProtocolCodeSequence[0]
    assert "RequestingPhysician" not in kept
    assert kept.ReferencedSOPInstanceUID == out.ds.StudyInstanceUID == PSEUDONYMS.uid(ds.StudyInstanceUID)


def test_case_2_original_attributes_sequence_goes_whole(tmp_path: Path) -> None:
    ds = ct_base()
    modified = one(PatientName=NAME, PatientID=PATIENT, ReferencedImageSequence=[one(ReferencedSOPInstanceUID="1.2.9")])
    ds.OriginalAttributesSequence = [one(ModifiedAttributesSequence=[modified], SourceOfPreviousValues="LEAKTEST")]
    out = scrub(tmp_path, ds)
    assert "OriginalAttributesSequence" not in out.ds
    assert out.has_plant() == []


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_case_3_rules_reach_the_bottom_of_an_rtstruct(tmp_path: Path, syntax: str) -> None:
    ds = ct_base()
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.481.3"
    del ds.PixelData
    image = one(ReferencedSOPClassUID=CT, ReferencedSOPInstanceUID=ds.SOPInstanceUID, PerformingPhysicianName=NAME)
    series = one(ContourImageSequence=[image], SeriesInstanceUID=ds.SeriesInstanceUID)
    study = one(RTReferencedSeriesSequence=[series], ReferencedSOPInstanceUID=ds.StudyInstanceUID)
    ds.ReferencedFrameOfReferenceSequence = [one(RTReferencedStudySequence=[study], FrameOfReferenceUID="1.2.77")]
    out = scrub(tmp_path, ds, syntax=syntax)
    assert out.has_plant() == []
    frame = out.ds.ReferencedFrameOfReferenceSequence[0]
    study_out = frame.RTReferencedStudySequence[0]
    image_out = study_out.RTReferencedSeriesSequence[0].ContourImageSequence[0]
    assert study_out.ReferencedSOPInstanceUID == out.ds.StudyInstanceUID
    assert image_out.ReferencedSOPInstanceUID == out.ds.SOPInstanceUID
    assert image_out.ReferencedSOPClassUID == CT
    assert frame.FrameOfReferenceUID == PSEUDONYMS.uid("1.2.77")


def test_case_10_icon_image_sequence_goes(tmp_path: Path) -> None:
    ds = ct_base()
    ds.IconImageSequence = [one(Rows=8, Columns=8, PixelData=b"LEAKTEST" * 8)]
    ds.IconImageSequence[0]["PixelData"].VR = "OB"
    assert "IconImageSequence" not in scrub(tmp_path, ds).ds


def test_case_11_dates_in_functional_groups_move_with_their_zone(tmp_path: Path) -> None:
    ds = ct_base()
    content = one(FrameReferenceDateTime="20200131235959.123456+0100")
    ds.PerFrameFunctionalGroupsSequence = [one(FrameContentSequence=[content])]
    out = scrub(tmp_path, ds)
    moved = out.ds.PerFrameFunctionalGroupsSequence[0].FrameContentSequence[0].FrameReferenceDateTime
    assert str(moved)[8:] == "235959.123456+0100"
    assert str(moved)[:8] == out.ds.StudyDate != "20200131"


def test_case_12_private_copies_of_a_date_go(tmp_path: Path) -> None:
    ds = ct_base()
    block = ds.private_block(0x0029, "SIEMENS MEDCOM HEADER", create=True)
    block.add_new(0x19, "LO", "20200131")
    out = scrub(tmp_path, ds)
    assert b"20200131" not in out.bytes
    assert b"SIEMENS MEDCOM HEADER" not in out.bytes


def test_case_13_file_meta_and_preamble_are_written_anew(tmp_path: Path) -> None:
    file = bytearray(encoded(ct_base()))
    file[:16] = b"II*\0" + b"LEAK0001" + bytes(4)  # a TIFF header, dual personality
    extra = explicit(0x00020016, "AE", b"LEAKTEST") + explicit(0x00020100, "UI", b"1.2.3.4\0")
    extra += explicit(0x00020102, "OB", b"ZZSYNTH^LEAKTEST")
    end = 144 + int.from_bytes(file[140:144], "little")
    file[140:144] = (end - 144 + len(extra)).to_bytes(4, "little")
    file[end:end] = extra
    file += explicit(0xFFFCFFFC, "OB", b"LEAK0001") + b"LEAKTEST behind the end"
    out = scrub(tmp_path, bytes(file))
    assert out.has_plant() == []
    assert out.bytes[:132] == bytes(128) + b"DICM"
    meta = out.ds.file_meta
    assert meta.MediaStorageSOPInstanceUID == out.ds.SOPInstanceUID == PSEUDONYMS.uid("1.2.826.0.1.3680043.8.498.1")
    assert meta.MediaStorageSOPClassUID == CT
    assert meta.TransferSyntaxUID == EXPLICIT
    assert meta.ImplementationClassUID == IMPLEMENTATION_CLASS_UID
    assert meta.ImplementationVersionName == IMPLEMENTATION_VERSION_NAME
    assert [element.tag.element for element in meta] == [0, 1, 2, 3, 0x10, 0x12, 0x13]
    assert out.step.notes == ("trailing_bytes",)
    assert out.bytes.endswith(bytes(range(128)))


def test_case_17_instance_creation_goes_or_moves(tmp_path: Path) -> None:
    ds = ct_base()
    ds.InstanceCreationDate, ds.InstanceCreationTime = "20200131", "101500"
    basic = scrub(tmp_path, ds, policy()).ds
    assert "InstanceCreationDate" not in basic
    assert "InstanceCreationTime" not in basic
    moved = scrub(tmp_path, ds, MODIFIED).ds
    assert moved.InstanceCreationDate == moved.StudyDate != "20200131"
    assert moved.InstanceCreationTime == "101500"


def test_case_18_institutional_department_type_code_sequence_goes(tmp_path: Path) -> None:
    ds = ct_base()
    ds.InstitutionalDepartmentTypeCodeSequence = [one(CodeValue="1", CodingSchemeDesignator="L", CodeMeaning="Ward 7")]
    assert "InstitutionalDepartmentTypeCodeSequence" not in scrub(tmp_path, ds).ds


def test_case_19_retain_uids_keeps_the_shell_of_referenced_patient_sequence_and_cleans_its_items(
    tmp_path: Path,
) -> None:
    ds = ct_base()
    ds.ReferencedPatientSequence = [one(ReferencedSOPInstanceUID="1.2.3", PatientID=PATIENT, PatientName=NAME)]
    assert "ReferencedPatientSequence" not in scrub(tmp_path, ds).ds
    out = scrub(tmp_path, ds, policy("retain-uids"))
    assert out.ds.ReferencedPatientSequence[0].ReferencedSOPInstanceUID == "1.2.3"
    assert out.has_plant() == []


def test_case_20_names_of_staff_go(tmp_path: Path) -> None:
    ds = ct_base()
    ds.OperatorsName = ds.PhysiciansOfRecord = ds.NameOfPhysiciansReadingStudy = NAME
    assert scrub(tmp_path, ds).has_plant() == []


def test_case_22_a_siemens_csa_blob_goes(tmp_path: Path) -> None:
    ds = ct_base()
    block = ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
    block.add_new(0x20, "OB", b"SV10" + bytes(60) + b"ZZSYNTH^LEAKTEST")
    assert scrub(tmp_path, ds).has_plant() == []


def test_case_23_descriptions_go_with_what_operators_typed_into_them(tmp_path: Path) -> None:
    ds = ct_base()
    ds.SeriesDescription, ds.PerformedProcedureStepDescription = "T1 post ZZSYNTH L 31.01.1950", "id LEAK0001"
    ds.ImageComments, ds.ProtocolName = "LEAKTEST", "ZZSYNTH"
    assert scrub(tmp_path, ds).has_plant() == []


def test_case_26_every_instance_level_uid_changes_unless_asked_for(tmp_path: Path) -> None:
    ds = ct_base()
    changed = scrub(tmp_path, ds).ds
    for keyword in ("SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID"):
        assert changed[keyword].value == PSEUDONYMS.uid(ds[keyword].value) != ds[keyword].value
    kept = scrub(tmp_path, ds, policy("retain-uids")).ds
    assert kept.SOPInstanceUID == kept.file_meta.MediaStorageSOPInstanceUID == ds.SOPInstanceUID
    assert "113110" in [code.CodeValue for code in kept.DeidentificationMethodCodeSequence]


def test_case_27_a_uid_that_is_a_path_becomes_a_uid(tmp_path: Path) -> None:
    file = encoded(ct_base()).replace(b"1.2.826.0.1.3680043.8.498.1\0", b"../../../../../etc/LEAKTEST\0")
    for options in ((), ("retain-uids",)):
        out = scrub(tmp_path, file, policy(*options))
        assert b"LEAK" not in out.bytes
        assert pydicom.uid.UID(out.ds.SOPInstanceUID).is_valid


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_overlays_curves_group_lengths_signatures_and_unknown_attributes_go(tmp_path: Path, syntax: str) -> None:
    ds = ct_base()
    ds.add_new(0x60000010, "US", 8)
    ds.add_new(0x60003000, "OW", b"LEAKTEST")
    ds.add_new(0x60004000, "LT", "LEAKTEST")
    ds.add_new(0x601E0022, "LO", "LEAKTEST")
    ds.add_new(0x60FE0022, "LO", "LEAKTEST")  # no overlay group, so unknown
    ds.add_new(0x50003000, "OW", b"LEAKTEST")
    ds.add_new(0x00080001, "UL", 99)
    ds.add_new(0x0008F123, "LO", "LEAKTEST")
    ds.DigitalSignaturesSequence = [one(CertificateOfSigner=b"LEAKTEST", MACIDNumber=1)]
    ds.MACParametersSequence = [one(MACIDNumber=1, MACAlgorithm="SHA256")]
    ds.EncryptedAttributesSequence = [one(EncryptedContent=b"LEAKTEST")]
    out = scrub(tmp_path, ds, syntax=syntax)
    assert out.has_plant() == []
    groups = {element.tag.group for element in out.ds}
    assert groups == {0x0008, 0x0010, 0x0012, 0x0018, 0x0020, 0x0028, 0x7FE0}
    assert out.step.counts["overlay_curve"] == 5


@pytest.mark.parametrize("syntax", [IMPLICIT, BIG_ENDIAN])
def test_beyond_the_table_names_text_addresses_and_calendars_have_defaults(tmp_path: Path, syntax: str) -> None:
    ds = ct_base()
    ds.add_new(0x00100033, "LO", f"{BORN} LEAKTEST")  # Birth Date in Alternative Calendar
    ds.DoseComment, ds.BeamName, ds.RetrieveURL = "LEAKTEST", "ZZSYNTH", "https://archive/LEAK0001"
    ds.EvaluatorName = NAME  # PN without a row
    ds.ContentDescription = "ZZSYNTH"
    out = scrub(tmp_path, ds, syntax=syntax)
    assert out.has_plant() == []
    assert out.ds.EvaluatorName == ""
