"""Facts of a study are read from headers only, from every instance, and never travel in an error or a repr."""

from __future__ import annotations

import warnings
from pathlib import Path

import pydicom
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import (
    CTImageStorage,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
)

from gateway.errors import Hold
from gateway.route import Facts, gather

PLANT = "ZZSYNTH^LEAKTEST"


def write(path: Path, syntax: str = ExplicitVRLittleEndian, **elements: object) -> Path:
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = CTImageStorage
    meta.MediaStorageSOPInstanceUID = "2.25.1"
    meta.TransferSyntaxUID = syntax
    meta.SourceApplicationEntityTitle = "PACS"
    meta.ReceivingApplicationEntityTitle = "DEID"
    dataset = Dataset()
    dataset.file_meta = meta
    dataset.SOPClassUID = CTImageStorage
    dataset.SOPInstanceUID = "2.25.1"
    dataset.PatientName = PLANT
    dataset.PatientID = "LEAK0001"
    for keyword, value in elements.items():
        setattr(dataset, keyword, value)
    dataset.save_as(path, enforce_file_format=True)
    return path


@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ImplicitVRLittleEndian, ExplicitVRBigEndian])
def test_every_attribute_of_a_predicate_is_read(tmp_path: Path, syntax: str) -> None:
    path = write(
        tmp_path / "a",
        syntax,
        Modality="CT",
        BodyPartExamined="BRAIN",
        Manufacturer="ACME Imaging ",
        StudyDescription="Head and neck",
        SeriesDescription="Scout",
        ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"],
        StudyDate="20200131",
    )
    facts = gather([path])
    assert {name: set(values) for name, values in facts.values.items()} == {
        "calling_ae": {"PACS"},
        "called_ae": {"DEID"},
        "sop_class": {"1.2.840.10008.5.1.4.1.1.2"},
        "modality": {"CT"},
        "body_part": {"BRAIN"},
        "manufacturer": {"ACME Imaging"},
        "description": {"Head and neck", "Scout"},
        "image_type": {"ORIGINAL", "PRIMARY", "LOCALIZER"},
        "patient_id": {"LEAK0001"},
        "study_date": {"20200131"},
    }


def test_values_of_all_instances_come_together(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a", Modality="CT"), write(tmp_path / "b", Modality="PT"), write(tmp_path / "c")]
    assert gather(paths).of("modality") == {"CT", "PT"}


def test_an_absent_or_empty_attribute_is_no_value(tmp_path: Path) -> None:
    facts = gather([write(tmp_path / "a", Modality="", StudyDescription="  ")])
    assert facts.of("modality") == frozenset()
    assert facts.of("description") == frozenset()
    assert gather([]).of("modality") == frozenset()


@pytest.mark.parametrize(
    ("charset", "raw", "text"),
    [
        ("ISO_IR 192", "Schädel".encode(), "Schädel"),
        ("ISO_IR 100", "Schädel".encode("latin-1"), "Schädel"),
        ("ISO_IR 144", "Голова".encode("iso8859_5"), "Голова"),
        ("ISO 2022 IR 6\\ISO 2022 IR 87", b"X \x1b$B;3ED\x1b(B", "X 山田"),
        ("GB18030", "头部".encode("gb18030"), "头部"),
        ("NONSENSE", b"plain", "plain"),
    ],
)
def test_descriptions_are_decoded_in_the_character_set_of_the_object(
    tmp_path: Path, charset: str, raw: bytes, text: str
) -> None:
    path = write(tmp_path / "a", SpecificCharacterSet="ISO_IR 6", StudyDescription="@" * 40)
    data = path.read_bytes()
    terms = charset.encode() + b" " * (len(charset) % 2)
    before = b"\x08\x00\x05\x00CS\x08\x00ISO_IR 6"
    assert before in data
    data = data.replace(before, b"\x08\x00\x05\x00CS" + len(terms).to_bytes(2, "little") + terms)
    path.write_bytes(data.replace(b"@" * 40, raw.ljust(40)))
    assert gather([path]).of("description") == {text}


def test_reading_odd_values_neither_warns_nor_quotes_them(tmp_path: Path) -> None:
    path = write(tmp_path / "a", Modality="CT", StudyDate="20200131")
    data = path.read_bytes().replace(b"20200131", b"31/01/20").replace(b"LEAK0001", b"LEAK\\001")
    data = data.replace(b"1.2.840.10008.5.1.4.1.1.2\0", b"no uid at all............\0")
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        facts = gather([path])
    assert facts.of("study_date") == {"31/01/20"}
    assert facts.of("patient_id") == {"LEAK", "001"}


def test_facts_do_not_show_what_they_hold(tmp_path: Path) -> None:
    facts = gather([write(tmp_path / "a")])
    assert "LEAK0001" not in repr(facts)
    assert repr(facts) == "Facts()"


def test_pixels_are_not_read(tmp_path: Path) -> None:
    source = Path(str(get_testdata_file("CT_small.dcm")))
    data = source.read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(data[: data.index(b"\xe0\x7f\x10\x00") + 12])
    assert gather([cut]).of("modality") == {"CT"}


@pytest.mark.parametrize(
    "name", ["CT_small.dcm", "MR_small.dcm", "rtplan.dcm", "JPEG2000.dcm", "image_dfl.dcm", "reportsi.dcm"]
)
def test_facts_agree_with_pydicom_on_its_own_files(name: str) -> None:
    path = Path(str(get_testdata_file(name)))
    dataset = pydicom.dcmread(path)
    facts = gather([path])
    assert facts.of("sop_class") == {str(dataset.SOPClassUID)}
    assert facts.of("modality") == {dataset.Modality}
    assert facts.of("image_type") == frozenset(dataset.get("ImageType", ()))


def facts_or_hold(path: Path) -> Facts | Hold:
    try:
        return gather([path])
    except Hold as hold:
        return hold


def test_the_hold_of_an_unreadable_object_carries_no_other_error(tmp_path: Path) -> None:
    path = tmp_path / "000001.part"
    data = write(tmp_path / "a", DeflatedExplicitVRLittleEndian).read_bytes()
    path.write_bytes(data[:-40] + b"\xff" * 40)
    outcome = facts_or_hold(path)
    assert isinstance(outcome, Hold)
    assert outcome.at == "000001.part"
    assert outcome.__cause__ is None
    assert outcome.__suppress_context__


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(st.data())
def test_no_bytes_make_it_raise_anything_but_a_hold_without_values(tmp_path: Path, data: st.DataObject) -> None:
    whole = write(tmp_path / "whole", Modality="CT", StudyDescription=PLANT).read_bytes()
    at = data.draw(st.integers(100, len(whole)))
    put = data.draw(st.binary(max_size=12))
    keep = data.draw(st.sampled_from([len(whole), at + 40]))
    path = tmp_path / "000001.part"
    path.write_bytes((whole[:at] + put + whole[at + len(put) :])[:keep])
    text = repr(facts_or_hold(path))
    assert "ZZSYNTH" not in text
    assert "LEAK" not in text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(st.binary(max_size=200), st.booleans())
def test_garbage_is_held_or_has_no_facts(tmp_path: Path, garbage: bytes, headed: bool) -> None:
    path = tmp_path / "garbage"
    path.write_bytes(b"\0" * 128 * headed + b"DICM" * headed + garbage)
    outcome = facts_or_hold(path)
    if isinstance(outcome, Hold):
        assert (outcome.reason, outcome.at) == ("unreadable_object", "garbage")
    else:
        assert set(outcome.values) >= {"modality", "patient_id"}
