"""Studies without end for `bench.soak`: one is made, and its number is written into the bytes of all that follow."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pydicom
from pydicom.filereader import read_file_meta_info
from pydicom.uid import ExplicitVRLittleEndian, MRImageStorage

from bench.serving.gateway import PACS
from tests.head_series import head_volume, write_series
from tests.receive.raw_peer import RawPeer, p_data, pdv, store_command

INSTANCES = 8
MARK = 99_999_999  # stands for the number: eight digits, in every identifier
ROOT = "1.2.826.0.1.3680043.10.999.7"
PIECE = 131_000


class Refused(Exception):
    """The gateway takes no association now."""


def template() -> list[tuple[str, bytes]]:
    """SOP Instance UID and encoded data set of each slice, with MARK for the study's number."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_series(head_volume(), Path(folder), series="soak")[10 : 10 + INSTANCES]
        return [_slice(path, number) for number, path in enumerate(paths)]


def _slice(path: Path, number: int) -> tuple[str, bytes]:
    image = pydicom.dcmread(path)
    image.StudyInstanceUID, image.SeriesInstanceUID = f"{ROOT}.{MARK}.1", f"{ROOT}.{MARK}.2"
    image.FrameOfReferenceUID, image.SOPInstanceUID = f"{ROOT}.{MARK}.3", f"{ROOT}.{MARK}.4.{number + 1}"
    image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    image.PatientName, image.PatientID = f"ZZSYNTH^S{MARK}", f"S{MARK}"
    image.PatientBirthDate, image.PatientSex, image.StudyDate, image.StudyTime = "19600101", "O", "20200131", "1010"
    image.AccessionNumber, image.StudyID, image.SeriesNumber, image.Manufacturer = f"A{MARK}", "1", 1, "ACME"
    image.NumberOfStudyRelatedInstances = INSTANCES
    image.save_as(path, enforce_file_format=True)
    begin = 144 + read_file_meta_info(path).FileMetaInformationGroupLength
    return str(image.SOPInstanceUID), path.read_bytes()[begin:]


def send_study(port: int, study: list[tuple[str, bytes]], number: int) -> None:
    """One association. Raises Refused when there is none to be had, AssertionError when a slice was not taken."""
    with RawPeer(port) as peer:
        try:
            peer.associate([(MRImageStorage, [ExplicitVRLittleEndian])], calling=PACS)
        except AssertionError:
            raise Refused from None
        for marked, data in study:
            sop = marked.replace(str(MARK), f"{number:08d}")
            own = data.replace(str(MARK).encode(), b"%08d" % number)
            command = p_data(pdv(1, store_command(sop, sop_class=MRImageStorage), command=True))
            pieces = range(0, len(own), PIECE)
            peer.send(
                command + b"".join(p_data(pdv(1, own[at : at + PIECE], last=at + PIECE >= len(own))) for at in pieces)
            )
            assert peer.status() == 0, "a slice was not taken"
        peer.release()
