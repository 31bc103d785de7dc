"""As what a job leaves: new study and series UIDs, and the pseudonym, which lies in our tables encrypted only.

A table may have given the pseudonym, so that it is somebody else's secret. Key and nonce follow from master key, job
and pseudonym: the same shipment is the same row.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pydicom
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.database import Shipment
from gateway.errors import EnvironmentFault, Hold
from gateway.pseudonyms import derive

_READ = ["PatientID", "StudyInstanceUID", "SeriesInstanceUID"]
_NONCE_BYTES = 12


def shipment_of(job_key: str, files: Mapping[str, Path], master: bytes) -> Shipment:
    """As what these files leave, in a worker: read from the files themselves. Raises Hold."""
    series, pseudonym, study_uid = {}, "", ""
    for name, path in sorted(files.items()):
        try:
            header = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=_READ)
        except (OSError, pydicom.errors.InvalidDicomError):
            raise Hold("clearance_broken", at=f"instance {name}") from None
        pseudonym, study_uid, series[name] = (str(header.get(word) or "").strip(" \0") for word in _READ)
    return Shipment(job_key, _seal(master, job_key, pseudonym), study_uid, series)


def pseudonym_of(shipment: Shipment, master: bytes) -> str:
    """The Patient ID that a job left under. Raises EnvironmentFault for another key, or a row that was changed."""
    data = bytes.fromhex(shipment.sealed_pseudonym)
    try:
        return _cipher(master).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], shipment.job_key.encode()).decode()
    except InvalidTag:
        raise EnvironmentFault(
            "as what a job left was changed in the database, or belongs to another master key; restore both together"
        ) from None


def _seal(master: bytes, job_key: str, pseudonym: str) -> str:
    nonce = derive(master, "shipment nonce", job_key, pseudonym)[:_NONCE_BYTES]
    return (nonce + _cipher(master).encrypt(nonce, pseudonym.encode(), job_key.encode())).hex()


def _cipher(master: bytes) -> AESGCM:
    return AESGCM(derive(master, "shipments"))
