"""Objects for the gate's tests: an identified CT, a small scrubber that shares no code with the product, encoders."""

from __future__ import annotations

import copy
import struct
import zlib
from io import BytesIO
from pathlib import Path

import pydicom
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.sequence import Sequence as Items
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
)

from gateway.gate import ASPECTS, Pair, ResidualIdentifiers, judge
from gateway.policy import DatePolicy, GatePolicy, HeaderPolicy, NotAssessedEntry, Policy

SEAL = bytes(range(32))
CT_CLASS = "1.2.840.10008.5.1.4.1.1.2"
MODALITIES = (
    "CT",
    "MR",
    "US",
    "OT",
    "RTPLAN",
    "RTDOSE",
    "RTSTRUCT",
    "PT",
    "CR",
    "DX",
    "MG",
    "SC",
    "NM",
    "SM",
    "SEG",
    "SR",
)
NAME, PATIENT_ID, BIRTH = "ZZSYNTH^LEAKTEST", "LEAK0001", "19500131"
STUDY_UID = "1.2.276.0.7230010.3.1.2.8323329.1001.1580483722.1"
SERIES_UID = "1.2.276.0.7230010.3.1.3.8323329.1001.1580483722.2"
SOP_UID = "1.2.276.0.7230010.3.1.4.8323329.1001.1580483722.3"
# The only text and address elements that the small scrubber leaves in.
KEPT_TEXT = {
    "Manufacturer",
    "ManufacturerModelName",
    "SoftwareVersions",
    "CodeMeaning",
    "CodeValue",
    "CodingSchemeDesignator",
}
KEPT_TEXT |= {"SequenceName", "ConvolutionKernel", "ReceiveCoilName", "SpecificCharacterSet"}
GONE = {
    "PatientSex",
    "PatientAge",
    "PatientSize",
    "PatientWeight",
    "PregnancyStatus",
    "IconImageSequence",
    "OverlayData",
}


def policy(*, options=(), keep=None, dates=None, accept=True, checks=None, modality=MODALITIES) -> Policy:
    entry = NotAssessedEntry(
        aspects=tuple(sorted(ASPECTS - {"header"})), modality=modality, reason="no check yet", approver="DPO"
    )
    return Policy(
        name="test",
        header=HeaderPolicy(
            options=frozenset(options), keep=keep or {}, dates=DatePolicy(shift_days=dates) if dates else None
        ),
        gate=GatePolicy(
            study={"residual_identifiers": ResidualIdentifiers()} if checks is None else checks,
            not_assessed=(entry,) if accept else (),
        ),
    )


def identified_ct() -> Dataset:
    """8 x 8, 16 bits allocated, with identity in every usual place."""
    ds = Dataset()
    ds.SpecificCharacterSet = "ISO_IR 100"
    ds.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    ds.SOPClassUID, ds.SOPInstanceUID = CT_CLASS, SOP_UID
    ds.StudyDate = ds.SeriesDate = ds.AcquisitionDate = ds.ContentDate = "20200203"
    ds.StudyTime = ds.SeriesTime = "093456.120"
    ds.AccessionNumber = "ACC7654321"
    ds.Modality, ds.Manufacturer = "CT", "SIEMENS"
    ds.InstitutionName = "Kantonsspital Beispielwil"
    ds.InstitutionAddress = "Spitalweg 12, 9999 Beispielwil"
    ds.ReferringPhysicianName = "Mustermann^Ottilie^^Dr."
    ds.StationName = "CTAWP73512"
    ds.StudyDescription = "Schaedel nativ fuer Beispielwil"
    ds.SeriesDescription = "BRAIN 5.0 H30s"
    ds.PhysiciansOfRecord = "Quastenflosser^Egon"
    ds.OperatorsName = "MTRA^LI"
    ds.ManufacturerModelName = "SOMATOM Definition AS"
    ds.PatientName, ds.PatientID, ds.PatientBirthDate = NAME, PATIENT_ID, BIRTH
    ds.PatientSex, ds.PatientAge = "F", "070Y"
    ds.OtherPatientIDs = "77-1234-5"
    ds.PatientAddress = "Birkenallee 7, 9998 Hintertupfing"
    ds.PatientTelephoneNumbers = "+41 44 765 43 21"
    ds.PatientComments = "mother called, see Hintertupfing clinic letter"
    ds.BodyPartExamined = "HEAD"
    ds.KVP = "120"
    ds.DeviceSerialNumber = "73512"
    ds.SoftwareVersions = "syngo CT 2012B"
    ds.ProtocolName = "HeadRoutine"
    ds.StudyInstanceUID, ds.SeriesInstanceUID = STUDY_UID, SERIES_UID
    ds.StudyID, ds.SeriesNumber, ds.InstanceNumber = "12", "3", "1"
    ds.FrameOfReferenceUID = "1.2.276.0.7230010.3.1.4.8323329.1001.1580483722.9"
    request = Dataset()
    request.ScheduledProcedureStepID = "SPS998877"
    request.RequestedProcedureDescription = "Kopf Zzsynth"
    ds.RequestAttributesSequence = Items([request])
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
    ds.Rows = ds.Columns = 8
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 12, 11, 0
    ds.PixelData = bytes(range(128))
    return ds


def plain_scrub(source: Dataset) -> Dataset:
    """Remove what could identify, keep what is technical. A second opinion, made for tests only."""
    ds = _clean(copy.deepcopy(source))
    ds.PatientName, ds.PatientID, ds.PatientBirthDate = "", "PSEUDO-7K3Q", ""
    ds.PatientIdentityRemoved, ds.DeidentificationMethod = "YES", "test scrubber"
    return ds


def _clean(ds: Dataset) -> Dataset:
    ds.remove_private_tags()
    for element in list(ds):
        vr = str(element.VR)
        group = element.tag.group
        if vr == "UI" and element.value and not element.keyword.endswith(("ClassUID", "SyntaxUID", "SchemeUID")):
            values = [element.value] if isinstance(element.value, str) else list(element.value)
            element.value = [new_uid(value) for value in values]
        elif vr == "SQ" and element.keyword not in GONE:
            for item in element.value:
                _clean(item)
        elif element.keyword in KEPT_TEXT:
            continue
        elif vr in ("PN", "DA", "DT", "TM", "LO", "SH", "LT", "ST", "UT", "UC", "UR", "AE", "UN", "AS") or (
            element.keyword in GONE
            or 0x5000 <= group <= 0x60FF
            or element.tag.element == 0
            or group in (0xFFFC, 0x0004)
        ):
            del ds[element.tag]
    return ds


def new_uid(uid: str) -> str:
    return (
        uid if uid.startswith("1.2.840.10008.") or not uid else f"2.25.9{zlib.crc32(uid.encode()):010d}98765432101234"
    )


def encode(ds: Dataset, syntax: str = ExplicitVRLittleEndian, *, meta: dict[str, object] | None = None) -> bytes:
    """A whole file, with a fresh file meta and a zero preamble. Other than native syntaxes: pixel data as it is."""
    file = FileDataset("", copy.deepcopy(ds), preamble=bytes(128))
    file.file_meta = FileMetaDataset()
    file.file_meta.MediaStorageSOPClassUID = ds.get("SOPClassUID", "")
    file.file_meta.MediaStorageSOPInstanceUID = ds.get("SOPInstanceUID", "")
    file.file_meta.TransferSyntaxUID = syntax
    for keyword, value in (meta or {}).items():
        setattr(file.file_meta, keyword, value)
    out = BytesIO()
    pydicom.dcmwrite(out, file, enforce_file_format=True, implicit_vr=None, little_endian=None)
    return out.getvalue()


def files(folder: Path, original: bytes, candidate: bytes, name: str = "0001") -> Pair:
    pair = Pair(name, folder / f"{name}.original", folder / f"{name}.candidate")
    pair.original.write_bytes(original)
    pair.candidate.write_bytes(candidate)
    return pair


def verdict(folder: Path, original: bytes, candidate: bytes, used: Policy | None = None):
    return judge(
        [files(folder, original, candidate)], policy=used or policy(), job_key="j", destination="d", seal_key=SEAL
    )


def findings(folder: Path, original: bytes, candidate: bytes, used: Policy | None = None) -> dict[str, str]:
    """Rule by place, of the check residual_identifiers."""
    found = verdict(folder, original, candidate, used).verdicts
    return {one.where: one.rule for v in found if v.check == "residual_identifiers" for one in v.findings}


SYNTAXES = {
    "explicit": ExplicitVRLittleEndian,
    "implicit": ImplicitVRLittleEndian,
    "big endian": ExplicitVRBigEndian,
    "deflated": DeflatedExplicitVRLittleEndian,
}


def implicit_item(tag: tuple[int, int], value: bytes) -> bytes:
    """A sequence value with one item that holds one element, in implicit little endian."""
    element = struct.pack("<HHI", *tag, len(value)) + value
    return struct.pack("<HHI", 0xFFFE, 0xE000, len(element)) + element


def item(tag: int, vr: str, value: object) -> Dataset:
    """A data set of one element."""
    ds = Dataset()
    ds.add_new(tag, vr, value)
    return ds


def private(ds: Dataset, element: int, vr: str, value: object, creator: str = "ACME 1.1") -> None:
    """Put (0029,10ee) and its creator into `ds`."""
    ds.add_new(0x00290010, "LO", creator)
    ds.add_new(0x00291000 | element, vr, value)
