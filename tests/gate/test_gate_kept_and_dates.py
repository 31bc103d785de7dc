"""What a policy keeps on purpose is no finding; dates are compared so that shifts by chance raise no alarm."""

from __future__ import annotations

import copy

import pytest
from gate_cases import BIRTH, STUDY_UID, encode, findings, identified_ct, item, plain_scrub, policy
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence as Items

MODIFIED = "retain-longitudinal-modified-dates"
FULL = "retain-longitudinal-full-dates"
BASE = identified_ct()


def leaving(**values: object) -> Dataset:
    ds = plain_scrub(BASE)
    for keyword, value in values.items():
        setattr(ds, keyword, value)
    return ds


def found(tmp_path, candidate: Dataset, *, original: Dataset = BASE, **how: object) -> set[str]:
    return set(findings(tmp_path, encode(original), encode(candidate), policy(**how)))


@pytest.mark.parametrize(
    ("option", "keyword", "where"),
    [
        ("retain-institution-identity", "InstitutionName", "(0008,0080)"),
        ("retain-institution-identity", "InstitutionAddress", "(0008,0081)"),
        ("retain-device-identity", "StationName", "(0008,1010)"),
        ("retain-device-identity", "DeviceSerialNumber", "(0018,1000)"),
        ("retain-patient-characteristics", "PatientSex", "(0010,0040)"),
        ("retain-patient-characteristics", "PatientAge", "(0010,1010)"),
        ("retain-uids", "StudyInstanceUID", "(0020,000d)"),
        ("retain-uids", "FrameOfReferenceUID", "(0020,0052)"),
        (FULL, "StudyDate", "(0008,0020)"),
        (FULL, "StudyTime", "(0008,0030)"),
        (MODIFIED, "StudyTime", "(0008,0030)"),
    ],
)
def test_an_option_keeps_its_attributes_and_without_it_they_are_findings(tmp_path, option, keyword, where):
    candidate = leaving(**{keyword: BASE[keyword].value})
    assert found(tmp_path, candidate, options=[option]) == set()
    assert found(tmp_path, candidate) == {where}


def test_a_kept_attribute_is_no_finding_where_it_stands(tmp_path):
    keep = {"StudyDescription": "needed to select protocols, DPO-7"}
    candidate = leaving(StudyDescription=BASE.StudyDescription)
    assert found(tmp_path, candidate, keep=keep) == set()


def test_a_kept_attribute_elsewhere_is_no_finding_either(tmp_path):
    candidate = leaving(ImageComments="scanned at Kantonsspital Beispielwil")
    assert found(tmp_path, candidate, options=["retain-institution-identity"]) == set()
    assert found(tmp_path, candidate) == {"(0020,4000)"}


def test_the_patient_in_a_kept_description_is_still_a_finding(tmp_path):
    original = copy.deepcopy(BASE)
    original.StudyDescription = "CT for Zzsynth"
    candidate = leaving(StudyDescription="CT for Zzsynth")
    keep = {"StudyDescription": "needed to select protocols, DPO-7"}
    assert found(tmp_path, candidate, original=original, keep=keep) == {"(0008,1030)"}


def test_retained_uids_are_searched_for_nothing(tmp_path):
    original = copy.deepcopy(BASE)
    original.SeriesInstanceUID = "1.2.276.0.7654321.20200203.7"  # built by its maker from an id and a date
    original.AccessionNumber = "7654321"
    candidate = leaving(SeriesInstanceUID=original.SeriesInstanceUID)
    assert found(tmp_path, candidate, original=original, options=["retain-uids"]) == set()
    assert found(tmp_path, candidate, original=original) == {"(0020,000e)"}


@pytest.mark.parametrize("value", ["20200203", "20200203093456.120", "2020.02.03", "20200203-20200204"])
def test_without_a_date_option_a_date_of_the_study_is_a_finding_in_any_date(tmp_path, value):
    candidate = leaving(FrameReferenceDateTime=value)
    assert found(tmp_path, candidate) == {"(0018,9151)"}


def test_shifted_dates_are_no_findings_even_when_they_fall_on_another_date_of_the_study(tmp_path):
    original = copy.deepcopy(BASE)
    original.StudyDate, original.AcquisitionDate = "20200203", "20200204"  # over midnight
    original.DateOfLastCalibration = "20200129"
    candidate = leaving(StudyDate="20200204", AcquisitionDate="20200205", DateOfLastCalibration="20200130")
    assert found(tmp_path, candidate, original=original, options=[MODIFIED]) == set()
    back = leaving(StudyDate="20200129", AcquisitionDate="20200130", DateOfLastCalibration="20200124")
    assert found(tmp_path, back, original=original, options=[MODIFIED]) == set()


def test_a_date_that_was_not_shifted_is_a_finding_at_any_depth(tmp_path):
    def framed(value: str) -> Items:
        return Items([item(0x00209111, "SQ", Items([item(0x00189151, "DT", value)]))])

    original = copy.deepcopy(BASE)
    original.PerFrameFunctionalGroupsSequence = framed("20200131235959.123456+0100")
    moved = leaving(StudyDate="20190708", PerFrameFunctionalGroupsSequence=framed("20190705235959.123456+0100"))
    assert found(tmp_path, moved, original=original, options=[MODIFIED]) == set()
    stays = leaving(StudyDate="20190708", PerFrameFunctionalGroupsSequence=framed("20200131235959.123456+0100"))
    assert found(tmp_path, stays, original=original, options=[MODIFIED]) == {
        "(5200,9230)[0].(0020,9111)[0].(0018,9151)"
    }


@pytest.mark.parametrize("value", ["2020", "202002"])
def test_a_date_without_a_day_may_look_the_same_after_a_shift(tmp_path, value):
    original = copy.deepcopy(BASE)
    original.FrameReferenceDateTime = value
    assert found(tmp_path, leaving(FrameReferenceDateTime=value), original=original, options=[MODIFIED]) == set()


@pytest.mark.parametrize("value", ["2020-31-01", "unknown since Feb"])
def test_what_is_no_date_must_not_stay_in_a_date(tmp_path, value):
    original = copy.deepcopy(BASE)
    original.add_new(0x00080022, "DA", value)
    candidate = leaving()
    candidate.add_new(0x00080022, "DA", value)
    assert found(tmp_path, candidate, original=original, options=[MODIFIED]) == {"(0008,0022)"}


def test_an_infants_dates_may_be_shifted_onto_the_birth_date(tmp_path):
    original = copy.deepcopy(BASE)
    original.PatientBirthDate = "20200131"
    shifted = leaving(StudyDate="20200131")  # by -3 days
    assert found(tmp_path, shifted, original=original, options=[MODIFIED]) == set()
    assert found(tmp_path, shifted, original=original, options=[MODIFIED], dates=(-2, 2)) == {"(0008,0020)"}


@pytest.mark.parametrize("options", [[], [MODIFIED], [FULL]], ids=str)
@pytest.mark.parametrize("keyword", ["StudyDate", "PatientBirthDate", "DateOfSecondaryCapture"])
def test_the_birth_date_of_an_adult_is_a_finding_in_any_date(tmp_path, options, keyword):
    assert len(found(tmp_path, leaving(**{keyword: BIRTH}), options=options)) == 1


@pytest.mark.parametrize("options", [[], [MODIFIED], [FULL]], ids=str)
def test_the_birth_date_in_text_is_a_finding_under_every_option(tmp_path, options):
    assert found(tmp_path, leaving(ImageComments="*1950-01-31"), options=options) == {"(0020,4000)"}


def test_full_dates_may_coincide_with_the_birth_date_of_a_newborn(tmp_path):
    original = copy.deepcopy(BASE)
    original.PatientBirthDate = original.StudyDate
    candidate = leaving(StudyDate=original.StudyDate)
    assert found(tmp_path, candidate, original=original, options=[FULL]) == set()
    candidate.ImageComments = f"born {original.StudyDate}"
    assert found(tmp_path, candidate, original=original, options=[FULL]) == {"(0020,4000)"}


def test_a_study_date_in_text_is_a_finding_unless_full_dates_are_kept(tmp_path):
    candidate = leaving(ImageComments="compared with 3.2.2020")
    assert found(tmp_path, candidate) == {"(0020,4000)"}
    assert found(tmp_path, candidate, options=[MODIFIED]) == {"(0020,4000)"}
    assert found(tmp_path, candidate, options=[FULL]) == set()


def test_dummy_dates_and_times_of_scrubbers_are_no_findings(tmp_path):
    original = copy.deepcopy(BASE)
    original.StudyDate, original.StudyTime, original.FrameReferenceDateTime = "20000101", "120000", "20000101120000"
    candidate = leaving(StudyDate="20000101", StudyTime="120000", FrameReferenceDateTime="20000101120000")
    assert found(tmp_path, candidate, original=original) == set()


def test_a_study_uid_is_found_in_text_when_uids_are_not_kept(tmp_path):
    candidate = leaving(ImageComments=STUDY_UID.replace(".", "_"))
    assert found(tmp_path, candidate) == {"(0020,4000)"}
    assert found(tmp_path, candidate, options=["retain-uids"]) == set()
