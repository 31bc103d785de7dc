"""What `bench.fuzz_header` mutates: small files of pydicom and generated objects, with a planted synthetic identity."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import pydicom
import pydicom.data
from pydicom.datadict import dictionary_has_tag, dictionary_VR
from pydicom.dataset import Dataset
from pydicom.errors import InvalidDicomError
from pydicom.uid import ExplicitVRLittleEndian

from bench.midib_corpus.corpus import Recipe, make

MAX_BYTES = 60_000
PLANTS = (b"QQZXPLANTER", b"QQ4711ZX0815", b"19370321")
# Bulk data, sequences (their elements are looked at), and numbers: eight digits are a number before they are a day.
NOT_JUDGED = frozenset({"OB", "OD", "OF", "OL", "OV", "OW", "UN", "SQ", "DS", "IS"})


def seeds() -> list[bytes]:
    """Files as bytes."""
    found = []
    folder = Path(pydicom.data.__file__).parent
    for path in sorted(folder.rglob("*.dcm")):
        if path.stat().st_size > MAX_BYTES:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(_planted(pydicom.dcmread(path)))
        except (InvalidDicomError, AttributeError, ValueError, TypeError, KeyError, OSError, NotImplementedError):
            found.append(path.read_bytes())
    for number, made in enumerate(make(Recipe(patients=12, half="development", instances=(1, 1)))):
        if number % 3 == 0:
            if "PixelData" in made.dirty:
                made.dirty.PixelData = bytes(128)
            found.append(_planted(made.dirty))
    return found


def _planted(ds: Dataset) -> bytes:
    name, number, day = (plant.decode() for plant in PLANTS)
    ds.PatientName, ds.PatientID, ds.PatientBirthDate = f"{name}^{name}", number, day
    ds.OtherPatientNames, ds.MedicalRecordLocator, ds.PatientAddress = name, number, f"{name} 1"
    ds.ReferringPhysicianName, ds.AccessionNumber = name, number
    ds.StudyDescription, ds.ImageComments = f"CT thorax {name}", f"{number} seen {day}"
    request = Dataset()
    request.RequestedProcedureDescription, request.PatientName = f"for {name}", name
    request.ScheduledProcedureStepID = number
    ds.RequestAttributesSequence = [request]
    block = ds.private_block(0x0021, "QQ CREATOR", create=True)
    block.add_new(0x01, "LO", f"{name} {number}")
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "TransferSyntaxUID" not in ds.file_meta:
            ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        ds.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def planted_outside_bulk(output: bytes) -> str:
    """Where a plant is in an output, "" for nowhere; what bulk data and a mutated byte order hide does not count."""
    if not any(plant in output for plant in PLANTS):
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ds = pydicom.dcmread(io.BytesIO(output))
            for element in ds.iterall():
                raw = str(element.value).encode("utf-8", "replace")
                known = dictionary_VR(element.tag) if dictionary_has_tag(element.tag) else element.VR
                if not {element.VR, known} & NOT_JUDGED and any(plant in raw for plant in PLANTS):
                    return f"plant in {element.tag} {element.VR}"
    except Exception as error:  # noqa: BLE001 - an output that pydicom cannot read is a finding by itself
        return f"plant in an output that pydicom cannot read: {type(error).__name__}"
    return ""
