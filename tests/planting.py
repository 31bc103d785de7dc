"""A CT with a planted identity (cases.md), and many places to plant it in. Each place gives a whole file as bytes."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass

from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, ImplicitVRLittleEndian, generate_uid

NAME = "ZZSYNTH^LEAKTEST"
ID = "LEAK0001"
BIRTH = "19500131"
# What must not be found, in any case and in the encodings a file may hold; parts of the name on their own too.
WORDS = ("ZZSYNTH", "LEAKTEST", "LEAK0001", "19500131", "1950-01-31", "31.01.1950")


def forms(word: str) -> list[bytes]:
    """The bytes of a word as a careless writer might leave them."""
    texts = {word, word.lower(), word.capitalize()}
    return [text.encode(encoding) for text in texts for encoding in ("ascii", "utf-16-le", "utf-16-be")]


def found_in(data: bytes) -> list[str]:
    """Which words of the plant are in these bytes."""
    return [word for word in WORDS if any(form in data for form in forms(word))]


def base(*, implicit: bool = False) -> FileDataset:
    """8 x 8, 16 bits allocated, 12 stored, with the plant where every study has it."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = CTImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = ImplicitVRLittleEndian if implicit else ExplicitVRLittleEndian
    ds = FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128)
    ds.SOPClassUID, ds.SOPInstanceUID = CTImageStorage, meta.MediaStorageSOPInstanceUID
    ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.FrameOfReferenceUID = generate_uid(), generate_uid(), generate_uid()
    ds.PatientName, ds.PatientID, ds.PatientBirthDate, ds.PatientSex = NAME, ID, BIRTH, "F"
    ds.Modality, ds.StudyDate, ds.StudyTime, ds.AccessionNumber = "CT", "20200131", "101010", "ACC4711X"
    ds.StudyID, ds.SeriesNumber, ds.InstanceNumber, ds.ReferringPhysicianName = "S1", 1, 1, ""
    ds.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    ds.PositionReferenceIndicator, ds.Manufacturer, ds.KVP = "", "ACME", "120"
    ds.ImagePositionPatient, ds.ImageOrientationPatient = [0, 0, 0], [1, 0, 0, 0, 1, 0]
    ds.PixelSpacing, ds.SliceThickness, ds.RescaleIntercept, ds.RescaleSlope = [1, 1], 1, 0, 1
    ds.AcquisitionNumber = 1
    ds.Rows = ds.Columns = 8
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 12, 11, 0
    ds.PixelData = struct.pack("<64H", *range(64))
    return ds


def encoded(ds: FileDataset) -> bytes:
    buffer = io.BytesIO()
    ds.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def item(**attributes: object) -> Dataset:
    made = Dataset()
    for word, value in attributes.items():
        setattr(made, word, value)
    return made


@dataclass(frozen=True)
class Place:
    """Where the plant is put: `plant` changes the data set, `patch` the encoded file."""

    plant: Callable[[FileDataset], None] = lambda _ds: None
    patch: Callable[[bytes], bytes] = lambda data: data
    implicit: bool = False

    def file(self) -> bytes:
        ds = base(implicit=self.implicit)
        self.plant(ds)
        return self.patch(encoded(ds))


def nested(depth: int) -> Callable[[FileDataset], None]:
    def plant(ds: FileDataset) -> None:
        inner = item(RequestingPhysician=NAME, PatientComments=f"seen {NAME} {ID}")
        for _ in range(depth):
            inner = item(RequestAttributesSequence=Sequence([inner]))
        ds.RequestAttributesSequence = Sequence([inner])

    return plant


def private(vr: str, value: object) -> Callable[[FileDataset], None]:
    def plant(ds: FileDataset) -> None:
        ds.private_block(0x0099, "ACME UNKNOWN", create=True).add_new(0x01, vr, value)

    return plant


def implicit_item() -> bytes:
    """One item in implicit VR with the plant, as the bytes of an UN element (PS3.5 6.2.2)."""
    name = NAME.encode()
    element = struct.pack("<HHL", 0x0010, 0x0010, len(name)) + name
    return struct.pack("<HHL", 0xFFFE, 0xE000, len(element)) + element


def attribute(**attributes: object) -> Callable[[FileDataset], None]:
    def plant(ds: FileDataset) -> None:
        for word, value in attributes.items():
            setattr(ds, word, value)

    return plant


def element(tag: int, vr: str, value: object) -> Callable[[FileDataset], None]:
    return lambda ds: ds.add_new(tag, vr, value)


def _meta(ds: FileDataset) -> None:
    ds.file_meta.SourceApplicationEntityTitle = ID
    ds.file_meta.PrivateInformationCreatorUID = "1.2.3"
    ds.file_meta.PrivateInformation = NAME.encode()


def _overlay(ds: FileDataset) -> None:
    ds.add_new(0x60000010, "US", 8)
    ds.add_new(0x60000011, "US", 8)
    ds.add_new(0x60000022, "LO", f"roi of {NAME}")
    ds.add_new(0x60000040, "CS", "G")
    ds.add_new(0x60000050, "SS", [1, 1])
    ds.add_new(0x60000100, "US", 1)
    ds.add_new(0x60000102, "US", 0)
    ds.add_new(0x60003000, "OW", NAME.encode())
    ds.add_new(0x60004000, "LT", f"{NAME} {ID}")


def _functional_groups(ds: FileDataset) -> None:
    content = item(FrameComments=f"{NAME} born {BIRTH}", FrameReferenceDateTime="19500131235959.123456+0100")
    ds.PerFrameFunctionalGroupsSequence = Sequence([item(FrameContentSequence=Sequence([content]))])


def _wrong_vr(data: bytes) -> bytes:
    """PatientName as UN (PS3.5 6.2.2)."""
    plain = struct.pack("<HH2sH", 0x0010, 0x0010, b"PN", len(NAME)) + NAME.encode()
    assert plain in data
    wrong = struct.pack("<HH2sHL", 0x0010, 0x0010, b"UN", 0, len(NAME)) + NAME.encode()
    return data.replace(plain, wrong)


PLACES: dict[str, Place] = {
    "patient module": Place(),
    "other ids and names": Place(
        attribute(
            OtherPatientNames=[NAME, "LEAKTEST^Z"],
            OtherPatientIDsSequence=Sequence([item(PatientID=ID, IssuerOfPatientID=f"issuer of {ID}")]),
            PatientBirthName=NAME,
            PatientMotherBirthName=NAME,
        )
    ),
    "nested once": Place(nested(0)),
    "nested five deep": Place(nested(5)),
    "nested in implicit VR": Place(nested(3), implicit=True),
    "original attributes": Place(
        attribute(
            OriginalAttributesSequence=Sequence(
                [item(ModifiedAttributesSequence=Sequence([item(PatientName=NAME, PatientID=ID)]))]
            )
        )
    ),
    "private text": Place(private("LO", f"{NAME} {BIRTH}")),
    "private blob": Place(private("OB", b"\0\1head" + NAME.encode() + b"\0")),
    "private utf-16": Place(private("OB", NAME.encode("utf-16-le"))),
    "private sequence": Place(private("SQ", Sequence([item(PatientName=NAME)]))),
    "private UN sequence": Place(private("UN", implicit_item())),
    "private implicit UN sequence": Place(private("UN", implicit_item()), implicit=True),
    "file meta": Place(_meta),
    "preamble": Place(patch=lambda data: (NAME + " " + ID).encode().ljust(128, b"\0") + data[128:]),
    "trailing padding": Place(element(0xFFFCFFFC, "OB", NAME.encode())),
    "after the end": Place(patch=lambda data: data + NAME.encode() + b"\0"),
    "study description": Place(attribute(StudyDescription="T1 post Zzsynth L 31.01.1950")),
    "descriptions": Place(
        attribute(
            SeriesDescription=f"for {ID}",
            ProtocolName="Leaktest protocol",
            RequestedProcedureDescription=f"control of {ID}",
            PerformedProcedureStepDescription=ID,
        )
    ),
    "comments": Place(
        attribute(
            PatientComments=f"Leaktest Zzsynth, born 31.01.1950, {ID}",
            ImageComments=NAME,
            AdditionalPatientHistory=f"{NAME} again",
        )
    ),
    "overlay group": Place(_overlay),
    "curve group": Place(lambda ds: (ds.add_new(0x50000022, "LO", NAME), ds.add_new(0x50003000, "OW", NAME.encode()))),
    "functional groups": Place(_functional_groups),
    "staff names": Place(
        attribute(
            OperatorsName=NAME,
            PhysiciansOfRecord=NAME,
            NameOfPhysiciansReadingStudy=NAME,
            ContentCreatorName=NAME,
        )
    ),
    "unknown standard element": Place(element(0x00100FF0, "LO", NAME)),
    "group length": Place(element(0x00100000, "UL", 999)),
    "wrong VR": Place(patch=_wrong_vr),
    "icon": Place(
        attribute(IconImageSequence=Sequence([item(Rows=1, Columns=16, BitsAllocated=8, PixelData=NAME.encode())]))
    ),
    "signature": Place(
        attribute(DigitalSignaturesSequence=Sequence([item(CertificateOfSigner=NAME.encode(), MACIDNumber=1)]))
    ),
    "encrypted attributes": Place(
        attribute(EncryptedAttributesSequence=Sequence([item(EncryptedContent=NAME.encode())]))
    ),
    "urls and identifiers": Place(
        attribute(RetrieveURL=f"https://pacs.example/{ID}", HL7InstanceIdentifier=f"1.2.3^{ID}", DocumentTitle=NAME)
    ),
    "alternative calendar": Place(attribute(PatientBirthDateInAlternativeCalendar=BIRTH)),
}
