"""Cleared files for tests: built with pydicom, described and sealed here, independently of the gate."""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

from gateway.forward import Outgoing
from gateway.study import Clearance, ClearedInstance

SEAL = b"s" * 32
STUDY_UID = "2.25.1000"


@dataclass(frozen=True)
class Consignment:
    """A sealed clearance and its files by name."""

    clearance: Clearance
    files: dict[str, Path]

    @property
    def items(self) -> list[Outgoing]:
        return [Outgoing(one, self.files[one.name]) for one in self.clearance.instances]

    @property
    def sent_hashes(self) -> dict[str, str]:
        """What an archive must hold: sha256 of the data set by SOP Instance UID."""
        return {one.sop_instance_uid: one.sha256_dataset for one in self.clearance.instances}

    def resealed(self, instances: Sequence[ClearedInstance]) -> Consignment:
        return Consignment(replace(self.clearance, instances=tuple(instances)).sealed(SEAL), self.files)


def data_set_bytes(file: bytes) -> bytes:
    """What comes after the file meta, found by its group length (PS3.10 7.1): not how the transport finds it."""
    assert file[128:132] == b"DICM"
    assert file[132:140] == b"\x02\x00\x00\x00UL\x04\x00"
    return file[144 + struct.unpack_from("<I", file, 140)[0] :]


def described(name: str, path: Path) -> ClearedInstance:
    """The clearance entry of a file as it lies there."""
    file = path.read_bytes()
    meta = pydicom.dcmread(path, stop_before_pixels=True, force=True).file_meta
    return ClearedInstance(
        name=name,
        sop_class_uid=str(meta.MediaStorageSOPClassUID),
        sop_instance_uid=str(meta.MediaStorageSOPInstanceUID),
        transfer_syntax_uid=str(meta.TransferSyntaxUID),
        sha256_dataset=hashlib.sha256(data_set_bytes(file)).hexdigest(),
        sha256_file=hashlib.sha256(file).hexdigest(),
        size_bytes=len(file),
    )


def instance(
    path: Path,
    *,
    sop_class: str = CTImageStorage,
    syntax: str = ExplicitVRLittleEndian,
    payload: bytes = b"\0" * 128,
    study_uid: str = STUDY_UID,
) -> None:
    """A small DICOM file. `payload` stands for the pixels; under a compressed syntax it is one fragment."""
    data = Dataset()
    data.SOPClassUID, data.SOPInstanceUID = sop_class, generate_uid(prefix="2.25.")
    data.StudyInstanceUID = study_uid
    data.PatientID = "RESEARCH0001"
    data.PixelData = payload
    data["PixelData"].VR = "OB"
    if pydicom.uid.UID(syntax).is_encapsulated:
        data.PixelData = pydicom.encaps.encapsulate([payload])
        data["PixelData"].is_undefined_length = True
    data.file_meta = FileMetaDataset()
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID
    data.file_meta.TransferSyntaxUID = syntax
    out = io.BytesIO()
    pydicom.dcmwrite(out, data, enforce_file_format=True)
    path.write_bytes(out.getvalue())


def consign(paths: Sequence[Path]) -> Consignment:
    """Seal the files as they are now."""
    files = {f"{index:04d}": path for index, path in enumerate(paths, 1)}
    clearance = Clearance(
        job_key="j" * 24,
        policy_digest="0" * 64,
        destination="archive",
        issuer="gate",
        verdicts=("residual_identifiers=pass",),
        not_assessed=(),
        instances=tuple(described(name, path) for name, path in files.items()),
    )
    return Consignment(clearance.sealed(SEAL), files)


def consignment(folder: Path, count: int, **options: object) -> Consignment:
    """`count` small instances, each with pixels of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{index:04d}.dcm" for index in range(count)]
    for index, path in enumerate(paths):
        instance(path, **{"payload": bytes([index % 256]) * (200 + 2 * index), **options})  # type: ignore[arg-type]
    return consign(paths)
