"""What a header profile cannot clean is held or refused; key objects keep references (cases.md 14-16)."""

from pathlib import Path

import pytest
from header_objects import (
    CT,
    KOS,
    NAME,
    PSEUDONYMS,
    SR,
    ct_base,
    one,
    scrub,
)
from pydicom.dataset import Dataset

from gateway.errors import Hold, Refuse


def test_case_14_a_dicomdir_is_refused(tmp_path: Path) -> None:
    ds = one(SOPClassUID="1.2.840.10008.1.3.10", SOPInstanceUID="1.2.3")
    ds.DirectoryRecordSequence = [one(DirectoryRecordType="PATIENT", PatientName=NAME)]
    with pytest.raises(Refuse) as refused:
        scrub(tmp_path, ds)
    assert refused.value.reason == "dicomdir"
    disguised = ct_base()  # the records alone give it away
    disguised.DirectoryRecordSequence = ds.DirectoryRecordSequence
    with pytest.raises(Refuse):
        scrub(tmp_path, disguised)


@pytest.mark.parametrize(
    ("sop_class", "reason"),
    [
        (SR, "structured_content"),  # case 15
        ("1.2.840.10008.5.1.4.1.1.88.67", "structured_content"),
        ("1.2.840.10008.5.1.4.1.1.104.1", "encapsulated_document"),  # case 16
        ("1.2.840.10008.5.1.4.1.1.9.4.1", "audio_waveform"),
        ("1.3.12.2.1107.5.9.1", "private_sop_class"),
        ("1.2.840.10008.1.1", "unknown_sop_class"),
        ("1.2.840.10008.5.1.4.1.1.999", "unknown_sop_class"),
    ],
)
def test_cases_15_and_16_what_a_header_profile_cannot_clean_is_held(
    tmp_path: Path, sop_class: str, reason: str
) -> None:
    ds = ct_base()
    ds.SOPClassUID = sop_class
    with pytest.raises(Hold) as held:
        scrub(tmp_path, ds)
    assert held.value.reason == reason
    assert not any(word in str(held.value) for word in ("LEAK", "ZZSYNTH"))


@pytest.mark.parametrize(
    ("keyword", "value", "reason"),
    [
        ("ContentSequence", [one(ValueType="TEXT", TextValue="seen with Leaktest Zzsynth")], "structured_content"),
        ("EncapsulatedDocument", b"%PDF LEAKTEST   ", "encapsulated_document"),
    ],
)
def test_contents_are_held_in_any_class_and_at_any_depth(
    tmp_path: Path, keyword: str, value: object, reason: str
) -> None:
    for nested in (False, True):
        ds = ct_base()
        ds.PerformedProtocolCodeSequence = [inner := Dataset()]
        setattr(inner if nested else ds, keyword, value)
        with pytest.raises(Hold) as held:
            scrub(tmp_path, ds)
        assert held.value.reason == reason


def test_a_key_object_keeps_its_references_and_nothing_else(tmp_path: Path) -> None:
    ds = ct_base()
    ds.SOPClassUID = KOS
    del ds.PixelData
    reference = one(ReferencedSOPClassUID=CT, ReferencedSOPInstanceUID="1.2.3.55")
    ds.ContentSequence = [
        one(RelationshipType="HAS OBS CONTEXT", ValueType="PNAME", PersonName=NAME),
        one(RelationshipType="CONTAINS", ValueType="TEXT", TextValue="LEAKTEST, born 31 Jan 1950"),
        one(RelationshipType="CONTAINS", ValueType="IMAGE", ReferencedSOPSequence=[reference]),
    ]
    out = scrub(tmp_path, ds)
    assert out.has_plant() == []
    (kept,) = out.ds.ContentSequence
    assert kept.ValueType == "IMAGE"
    assert kept.ReferencedSOPSequence[0].ReferencedSOPInstanceUID == PSEUDONYMS.uid("1.2.3.55")
    del ds.ContentSequence[2]
    with pytest.raises(Hold):  # a selection of nothing
        scrub(tmp_path, ds)


def test_content_inside_the_content_of_a_key_object_is_held(tmp_path: Path) -> None:
    ds = ct_base()
    ds.SOPClassUID = KOS
    del ds.PixelData
    text = one(ValueType="IMAGE", RelationshipType="CONTAINS", TextValue="LEAKTEST")
    reference = one(ReferencedSOPClassUID=CT, ReferencedSOPInstanceUID="1.2.3.55")
    ds.ContentSequence = [one(ValueType="IMAGE", ReferencedSOPSequence=[reference], ContentSequence=[text])]
    with pytest.raises(Hold) as held:
        scrub(tmp_path, ds)
    assert held.value.reason == "structured_content"


@pytest.mark.parametrize(("bit", "held"), [(12, True), (0, False)])
def test_an_overlay_in_unused_bits_of_the_pixel_data_is_held(tmp_path: Path, bit: int, held: bool) -> None:
    """PS3.3 C.9.2 (retired form): removing group 60xx would leave its bits in Pixel Data."""
    ds = ct_base()
    for group in (0x6000, 0x601E):
        ds.add_new((group, 0x0010), "US", 8)
        ds.add_new((group, 0x0011), "US", 8)
        ds.add_new((group, 0x0102), "US", bit if group == 0x601E else 0)
    if not held:
        scrub(tmp_path, ds)
        return
    with pytest.raises(Hold) as caught:
        scrub(tmp_path, ds)
    assert (caught.value.reason, caught.value.at) == ("overlay_in_pixels", "601E0102")
