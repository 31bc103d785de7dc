"""Rejection notes: conformant in dciodvfy's eyes, taken by real archives, the same bytes whenever they are made."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pydicom
import pytest
from pydicom.sr.codedict import codes

from gateway.errors import Hold
from gateway.forward import TransportOptions, forward, open_transport
from gateway.forward.rejection_note import TITLES, Note, write_note
from gateway.gate.rejection_note import MEANINGS, clear_note
from gateway.study import Clearance, ClearedInstance, Receipt
from tests import peers

KEY = b"k" * 32
CT, SEG, ECG, DOSE_REPORT = (
    *("1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.66.4"),
    *("1.2.840.10008.5.1.4.1.1.9.1.1", "1.2.840.10008.5.1.4.1.1.88.67"),
)


def cleared(name: str, sop_class: str) -> ClearedInstance:
    return ClearedInstance(name, sop_class, f"2.25.10{name}", "1.2.840.10008.1.2.1", "a" * 64, "b" * 64, 10)


SENT = (cleared("1", CT), cleared("2", CT), cleared("3", SEG), cleared("4", ECG), cleared("5", DOSE_REPORT))
ABOUT = Clearance("job", "d" * 64, "archive", "gate", (), (), SENT).sealed(KEY)
SERIES = {"1": "2.25.61", "2": "2.25.61", "3": "2.25.62", "4": "2.25.63", "5": "2.25.64"}


def note(code: str = "113039", **changes: object) -> Note:
    facts = {
        "pseudonym": "BT-0123456789ABCDEF",
        "study_uid": "2.25.5",
        "series_uid": "2.25.77",
        "instance_uid": "2.25.78",
        "code": code,
        "made_at": 1793558530.7,
        "instances": [(one, SERIES[one.name]) for one in SENT],
        **changes,
    }
    return Note(**facts)  # type: ignore[arg-type]


def judged(path: Path, **changes: object) -> Clearance:
    facts = {
        "name": "note",
        "about": ABOUT,
        "delivered": [one.name for one in SENT],
        "pseudonym": "BT-0123456789ABCDEF",
        "study_uid": "2.25.5",
        "series_uids": frozenset(SERIES.values()),
        "seal_key": KEY,
        **changes,
    }
    return clear_note(path, **facts)  # type: ignore[arg-type]


@pytest.mark.peer
@pytest.mark.parametrize("code", sorted(TITLES))
def test_a_note_is_a_conformant_key_object_selection_with_the_title_of_its_reason(code: str, tmp_path: Path) -> None:
    path = tmp_path / "note.dcm"
    write_note(note(code), path)
    ds = pydicom.dcmread(path)
    (title,) = ds.ConceptNameCodeSequence
    words = {str(one.value): str(one.meaning) for one in (getattr(codes.DCM, name) for name in codes.DCM.dir("Re"))}
    words |= {
        str(one.value): str(one.meaning) for one in (getattr(codes.DCM, name) for name in codes.DCM.dir("Policy"))
    }
    words |= {
        str(one.value): str(one.meaning) for one in (getattr(codes.DCM, name) for name in codes.DCM.dir("Worklist"))
    }
    assert (title.CodeValue, title.CodingSchemeDesignator, title.CodeMeaning) == (code, "DCM", words[code])
    assert [item.ValueType for item in ds.ContentSequence] == ["IMAGE", "IMAGE", "IMAGE", "WAVEFORM", "COMPOSITE"]
    (study,) = ds.CurrentRequestedProcedureEvidenceSequence
    assert [(s.SeriesInstanceUID, len(s.ReferencedSOPSequence)) for s in study.ReferencedSeriesSequence] == [
        ("2.25.61", 2),
        ("2.25.62", 1),
        ("2.25.63", 1),
        ("2.25.64", 1),
    ]
    if shutil.which("dciodvfy") is None:
        pytest.skip("dciodvfy is not installed: apt-get install dicom3tools")
    said = subprocess.run(["dciodvfy", str(path)], capture_output=True, text=True, check=False).stderr
    assert "KeyObjectSelectionDocument" in said
    assert [line for line in said.splitlines() if line.startswith("Error")] == []


def test_a_note_made_again_is_the_same_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / "one.dcm", tmp_path / "two.dcm"]
    for path in paths:
        write_note(note(), path)
    assert len({hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}) == 1


def test_writer_and_gate_know_the_same_titles() -> None:
    assert dict(TITLES) == dict(MEANINGS)


@pytest.mark.peer
def test_storescp_and_orthanc_take_a_note_that_the_gate_cleared(tmp_path: Path) -> None:
    path = tmp_path / "note.dcm"
    write_note(note(), path)
    clearance = judged(path)
    assert (clearance.destination, clearance.verdicts) == ("archive", ("rejection_note=pass",))
    with peers.storescp(tmp_path / "got", "+B") as scp, peers.Orthanc(tmp_path) as orthanc:
        for url in (scp.url, orthanc.dicom.url):
            answers: list[Receipt] = []
            transport = open_transport(url, TransportOptions())
            name = clearance.instances[0].name
            forward(
                clearance,
                {name: path},
                seal_key=KEY,
                transport=transport,
                done=frozenset(),
                on_receipt=answers.append,
            )
            assert [one.kind for one in answers] == ["success"]
        assert set(orthanc.files_by_sop_uid()) == {"2.25.78"}
    (got,) = (tmp_path / "got").iterdir()
    assert pydicom.dcmread(got, force=True).Modality == "KO"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"PatientName": "Leak^Jane"}, "(0010,0010)"),
        ({"PatientID": "LEAK0001"}, "(0010,0020)"),
        ({"AccessionNumber": "A1"}, "(0008,0050)"),
        ({"StudyInstanceUID": "1.2.840.99.1"}, "(0020,000D)"),
        ({"StudyDescription": "words"}, "(0008,1030)"),
        ({"ContentDate": "20200101\\20200102"}, "(0008,0023)"),
    ],
)
def test_anything_that_a_note_does_not_have_holds(change: dict[str, str], where: str, tmp_path: Path) -> None:
    path = tmp_path / "note.dcm"
    write_note(note(), path)
    ds = pydicom.dcmread(path)
    for word, value in change.items():
        setattr(ds, word, value)
    ds.save_as(path, enforce_file_format=True)
    with pytest.raises(Hold) as held:
        judged(path)
    assert (held.value.reason, held.value.at.upper()) == ("output_invalid", f"note {where}".upper())


def test_a_word_in_a_nested_item_holds_too(tmp_path: Path) -> None:
    path = tmp_path / "note.dcm"
    write_note(note(), path)
    ds = pydicom.dcmread(path)
    ds.CurrentRequestedProcedureEvidenceSequence[0].ReferencedSeriesSequence[0].RetrieveAETitle = "PACS"
    ds.save_as(path, enforce_file_format=True)
    with pytest.raises(Hold, match="output_invalid"):
        judged(path)


@pytest.mark.parametrize(
    "change",
    [{"instances": [(SENT[0], "2.25.61")]}, {"instances": [(one, "2.25.9") for one in SENT]}],
    ids=["not all that was sent", "a series that was not sent"],
)
def test_a_note_names_exactly_what_the_receiver_has(change: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "note.dcm"
    write_note(note(**change), path)
    with pytest.raises(Hold, match="output_invalid"):
        judged(path)


def test_what_was_not_sent_is_not_named_and_another_seal_is_none(tmp_path: Path) -> None:
    path = tmp_path / "note.dcm"
    write_note(note(), path)
    with pytest.raises(Hold, match="output_invalid"):
        judged(path, delivered=["1", "2"])
    with pytest.raises(Hold, match="clearance_broken"):
        judged(path, about=ABOUT.sealed(b"x" * 32))
    assert len(judged(path).instances) == 1
