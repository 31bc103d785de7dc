"""Rejection notes: Key Object Selection Documents that ask an archive to give instances up (IHE RAD IOCM, RAD-66).

One note lies in the study that it is about and names every instance under its new UIDs, by series (PS3.3 A.35.4,
C.17.6; PS3.16 TID 2010, titles of CID 7010 and 7011). Nothing in it comes out of an original. It is a pure function of
what it is given: made again, it is the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydicom import Dataset
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import UID, ExplicitVRLittleEndian, KeyObjectSelectionDocumentStorage

from gateway.durable import writing
from gateway.study import IMPLEMENTATION_CLASS_UID, IMPLEMENTATION_VERSION_NAME, ClearedInstance

# Titles that a receiver of notes acts on (IHE RAD TF-3 4.66.4.1.3), with the meanings of PS3.16.
TITLES: Mapping[str, str] = {
    "113037": "Rejected for Patient Safety Reasons",
    "113038": "Incorrect Modality Worklist Entry",
    "113039": "Data Retention Policy Expired",
}
METHOD = "made by the gateway; nothing of a patient"
_IMAGES = frozenset(  # image IODs whose class does not say so in its name
    {
        "1.2.840.10008.5.1.4.1.1.66.4",  # Segmentation
        "1.2.840.10008.5.1.4.1.1.66.7",  # Label Map Segmentation
        "1.2.840.10008.5.1.4.1.1.30",  # Parametric Map
        "1.2.840.10008.5.1.4.1.1.481.1",  # RT Image
        "1.2.840.10008.5.1.4.1.1.481.2",  # RT Dose
    }
)


@dataclass(frozen=True, slots=True)
class Note:
    """What a note says. `instances` with the new UID of the series of each; `made_at` is UTC seconds."""

    pseudonym: str
    study_uid: str
    series_uid: str  # of the note itself
    instance_uid: str
    code: str
    made_at: float
    instances: Sequence[tuple[ClearedInstance, str]]


def write_note(note: Note, path: Path) -> None:
    """Write it whole, and on disk."""
    with writing(path) as file:
        _file(note).save_as(file, enforce_file_format=True)


def _file(note: Note) -> FileDataset:
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = KeyObjectSelectionDocumentStorage
    meta.MediaStorageSOPInstanceUID = UID(note.instance_uid)
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.ImplementationClassUID = UID(IMPLEMENTATION_CLASS_UID)
    meta.ImplementationVersionName = IMPLEMENTATION_VERSION_NAME
    ds = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    moment = datetime.fromtimestamp(int(note.made_at), UTC)
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.SOPClassUID, ds.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    # Type 2 attributes of the study are empty: what the receiver has of them stays.
    for keyword in ("StudyDate", "StudyTime", "AccessionNumber", "ReferringPhysicianName", "StudyID"):
        setattr(ds, keyword, "")
    ds.PatientName, ds.PatientID, ds.PatientBirthDate, ds.PatientSex = "", note.pseudonym, "", ""
    ds.PatientIdentityRemoved, ds.DeidentificationMethod = "YES", METHOD
    ds.StudyInstanceUID, ds.SeriesInstanceUID = note.study_uid, note.series_uid
    ds.Modality, ds.SeriesNumber, ds.InstanceNumber, ds.Manufacturer = "KO", 1, 1, ""
    ds.ReferencedPerformedProcedureStepSequence = []
    ds.ContentDate, ds.ContentTime = moment.strftime("%Y%m%d"), moment.strftime("%H%M%S")
    ds.TimezoneOffsetFromUTC = "+0000"
    ds.CurrentRequestedProcedureEvidenceSequence = [_evidence(note)]
    ds.ValueType, ds.ContinuityOfContent = "CONTAINER", "SEPARATE"
    ds.ConceptNameCodeSequence = [_code(note.code, TITLES[note.code])]
    template = Dataset()
    template.MappingResource, template.TemplateIdentifier = "DCMR", "2010"
    ds.ContentTemplateSequence = [template]
    ds.ContentSequence = [_content(one) for one, _ in note.instances]
    return ds


def _code(value: str, meaning: str) -> Dataset:
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = value, "DCM", meaning
    return code


def _reference(one: ClearedInstance) -> Dataset:
    reference = Dataset()
    reference.ReferencedSOPClassUID, reference.ReferencedSOPInstanceUID = one.sop_class_uid, one.sop_instance_uid
    return reference


def _evidence(note: Note) -> Dataset:
    """Hierarchical SOP Instance Reference (PS3.3 Table C.17-3)."""
    by_series: dict[str, list[Dataset]] = {}
    for one, series in note.instances:
        by_series.setdefault(series, []).append(_reference(one))
    study = Dataset()
    study.StudyInstanceUID, study.ReferencedSeriesSequence = note.study_uid, []
    for series_uid, references in by_series.items():
        item = Dataset()
        item.SeriesInstanceUID, item.ReferencedSOPSequence = series_uid, references
        study.ReferencedSeriesSequence.append(item)
    return study


def _content(one: ClearedInstance) -> Dataset:
    item = Dataset()
    item.RelationshipType, item.ValueType = "CONTAINS", _value_type(one.sop_class_uid)
    item.ReferencedSOPSequence = [_reference(one)]
    return item


def _value_type(sop_class_uid: str) -> str:
    """IMAGE, WAVEFORM or COMPOSITE (PS3.3 C.17.3.2.1)."""
    name = UID(sop_class_uid).name
    if "Image Storage" in name or sop_class_uid in _IMAGES:
        return "IMAGE"
    return "WAVEFORM" if "Waveform Storage" in name else "COMPOSITE"
