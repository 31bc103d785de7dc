"""Small objects for the header tests, built and encoded with pydicom, and a way to scrub them.

The plant is the planted identity of cases.md: it must not survive anywhere in the bytes that come out.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pydicom
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import UID

from gateway.header import scrub_file
from gateway.policy import HeaderPolicy
from gateway.pseudonyms import Pseudonyms
from gateway.study import Step

KEY = bytes(range(32))
PSEUDONYMS = Pseudonyms(KEY)
CT, KOS, SR = "1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.88.59", "1.2.840.10008.5.1.4.1.1.88.33"
IMPLICIT, EXPLICIT = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1"
DEFLATED, BIG_ENDIAN = "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.2"
SYNTAXES = (IMPLICIT, EXPLICIT, DEFLATED, BIG_ENDIAN)

NAME, PATIENT, BORN = "ZZSYNTH^LEAKTEST", "LEAK0001", "19500131"
PLANT = (b"ZZSYNTH", b"LEAKTEST", b"LEAK0001", b"19500131")

MODIFIED = HeaderPolicy(options=frozenset({"retain-longitudinal-modified-dates"}))
BASIC = HeaderPolicy()


def policy(*options: str, **more: object) -> HeaderPolicy:
    """A header policy with options."""
    return HeaderPolicy.model_validate({"options": frozenset(options), **more})


def one(**values: object) -> Dataset:
    """A data set with these attributes."""
    ds = Dataset()
    for keyword, value in values.items():
        setattr(ds, keyword, value)
    return ds


def ct_base() -> Dataset:
    """ "CT base" of cases.md: 8x8, 16 bits allocated, 12 stored, MONOCHROME2, with the plant in its patient."""
    ds = Dataset()
    ds.SpecificCharacterSet = "ISO_IR 100"
    ds.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    ds.SOPClassUID = CT
    ds.SOPInstanceUID = "1.2.826.0.1.3680043.8.498.1"
    ds.StudyDate, ds.StudyTime = "20200131", "101500"
    ds.AccessionNumber = "LEAK0001A"
    ds.Modality = "CT"
    ds.ReferringPhysicianName = "Ref^Leaktest"
    ds.PatientName, ds.PatientID, ds.PatientBirthDate, ds.PatientSex = NAME, PATIENT, BORN, "F"
    ds.SliceThickness, ds.KVP = "2.50", "120"
    ds.StudyInstanceUID = "1.2.826.0.1.3680043.8.498.2"
    ds.SeriesInstanceUID = "1.2.826.0.1.3680043.8.498.3"
    ds.StudyID, ds.SeriesNumber, ds.InstanceNumber = "LEAK", "3", "7"
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
    ds.Rows = ds.Columns = 8
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 12, 11, 0
    ds.PixelData = bytes(range(128))
    ds["PixelData"].VR = "OW"
    return ds


def encoded(ds: Dataset, syntax: str = EXPLICIT) -> bytes:
    """The PS3.10 file of a data set, as another implementation would have written it."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = ds.get("SOPClassUID", CT)
    meta.MediaStorageSOPInstanceUID = ds.get("SOPInstanceUID", "1.2.3")
    meta.TransferSyntaxUID = UID(syntax)
    meta.ImplementationClassUID = "1.2.3.4.5"
    buffer = io.BytesIO()
    file = FileDataset("", ds, file_meta=meta, preamble=b"\0" * 128)
    pydicom.dcmwrite(buffer, file, enforce_file_format=True)
    return buffer.getvalue()


@dataclass(frozen=True)
class Scrubbed:
    """What came out: the file's bytes, the data set that pydicom reads from them, and the step."""

    bytes: bytes
    ds: FileDataset
    step: Step

    def has_plant(self) -> list[bytes]:
        return [word for word in PLANT if word in self.bytes]


def scrub(tmp_path: Path, file: bytes | Dataset, header: HeaderPolicy = MODIFIED, syntax: str = EXPLICIT) -> Scrubbed:
    """Scrub a file's bytes, or a data set encoded in `syntax`."""
    source, target = tmp_path / "in.dcm", tmp_path / "out.dcm"
    source.write_bytes(file if isinstance(file, bytes) else encoded(file, syntax))
    step = scrub_file(source, target, policy=header, pseudonyms=PSEUDONYMS)
    out = target.read_bytes()
    return Scrubbed(out, pydicom.dcmread(io.BytesIO(out)), step)


def explicit(tag: int, vr: str, value: bytes) -> bytes:
    """One element in explicit VR little endian, written out by hand (PS3.5 7.1.2)."""
    head = (tag >> 16).to_bytes(2, "little") + (tag & 0xFFFF).to_bytes(2, "little") + vr.encode()
    if vr in ("OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"):
        return head + b"\0\0" + len(value).to_bytes(4, "little") + value
    return head + len(value).to_bytes(2, "little") + value


def implicit(tag: int, value: bytes) -> bytes:
    """One element in implicit VR little endian (PS3.5 7.1.3)."""
    head = (tag >> 16).to_bytes(2, "little") + (tag & 0xFFFF).to_bytes(2, "little")
    return head + len(value).to_bytes(4, "little") + value


def item(value: bytes) -> bytes:
    """One item of defined length."""
    return b"\xfe\xff\x00\xe0" + len(value).to_bytes(4, "little") + value


def with_element(file: bytes, element: bytes, tag: int) -> bytes:
    """The explicit little endian file with one more element before the first with a higher tag."""
    meta = pydicom.dcmread(io.BytesIO(file), stop_before_pixels=True)
    position = 144 + meta.file_meta[0x00020000].value
    while position < len(file):
        here = int.from_bytes(file[position : position + 2], "little") << 16
        here |= int.from_bytes(file[position + 2 : position + 4], "little")
        if here > tag:
            break
        vr = file[position + 4 : position + 6].decode()
        if vr in ("OB", "OW", "SQ", "UN", "UT", "UC", "UR"):
            position += 12 + int.from_bytes(file[position + 8 : position + 12], "little")
        else:
            position += 8 + int.from_bytes(file[position + 6 : position + 8], "little")
    return file[:position] + element + file[position:]
