"""Storage Commitment Push Model, what is said (PS3.4 Annex J): a request's and a report's data sets.

N-ACTION (request)      Transaction UID, and which instances the sender wants to be sure of
N-EVENT-REPORT          the same, parted into what is committed and what is not, with a reason (PS3.3 C.14.1.1)
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO

from pydicom import Dataset
from pydicom.errors import InvalidDicomError
from pydicom.filebase import DicomBytesIO
from pydicom.filereader import read_dataset
from pydicom.filewriter import write_dataset
from pydicom.uid import ImplicitVRLittleEndian

from gateway.errors import GatewayError
from gateway.receive.commands import LONGEST_UID

CLASS_UID, INSTANCE_UID = "1.2.840.10008.1.20.1", "1.2.840.10008.1.20.1.1"
REQUEST = 1  # action type
COMMITTED, FAILURES_EXIST = 1, 2  # event types
PROCESSING_FAILURE, NO_SUCH_OBJECT = 0x0110, 0x0112  # failure reasons
LONGEST_BYTES, MOST_INSTANCES = 16 << 20, 50_000
# What pydicom raises over bytes that are no data set.
_FAULTS = (
    AttributeError, EOFError, InvalidDicomError, LookupError, NotImplementedError, OSError, OverflowError,
    RecursionError, TypeError, ValueError, struct.error, zlib.error,
)  # fmt: skip


class NoRequest(GatewayError):
    """The data set of an N-ACTION asks for nothing that could be answered."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its Transaction UID, and (SOP Class UID, SOP Instance UID) of each instance. As sent, not trusted."""

    transaction_uid: str
    instances: tuple[tuple[str, str], ...]


def read_asked(data: bytes, syntax: str) -> Asked:
    """Of an encoded data set. Raises NoRequest."""
    try:
        dataset = read_dataset(BytesIO(data), syntax == ImplicitVRLittleEndian, True)
        transaction = str(dataset.TransactionUID).strip(" \0")
        found = tuple(
            (str(item.ReferencedSOPClassUID).strip(" \0"), str(item.ReferencedSOPInstanceUID).strip(" \0"))
            for item in dataset.ReferencedSOPSequence
        )
    except _FAULTS:
        raise NoRequest from None
    uids = [transaction, *(uid for pair in found for uid in pair)]
    if not found or len(found) > MOST_INSTANCES or not all(0 < len(uid) <= LONGEST_UID for uid in uids):
        raise NoRequest
    return Asked(transaction, found)


def read_report(data: bytes, syntax: str) -> tuple[str, frozenset[str]]:
    """Of an N-EVENT-REPORT: its Transaction UID and the SOP Instance UIDs that it commits to. Raises NoRequest."""
    try:
        dataset = read_dataset(BytesIO(data), syntax == ImplicitVRLittleEndian, True)
        committed, failed = (
            {str(item.ReferencedSOPInstanceUID).strip(" \0") for item in dataset.get(word) or []}
            for word in ("ReferencedSOPSequence", "FailedSOPSequence")
        )
        return str(dataset.TransactionUID).strip(" \0"), frozenset(committed - failed)
    except _FAULTS:
        raise NoRequest from None


def report(asked: Asked, failures: Mapping[str, int]) -> tuple[int, Dataset]:
    """Event type and data set. `failures`: SOP Instance UID -> reason of what is not committed."""
    dataset = Dataset()
    dataset.TransactionUID = asked.transaction_uid
    committed = [pair for pair in asked.instances if pair[1] not in failures]
    failed = [pair for pair in asked.instances if pair[1] in failures]
    if committed:
        dataset.ReferencedSOPSequence = [_item(*pair) for pair in committed]
    if failed:
        dataset.FailedSOPSequence = [_item(*pair, failures[pair[1]]) for pair in failed]
    return (FAILURES_EXIST if failed else COMMITTED), dataset


def encoded(dataset: Dataset, syntax: str) -> bytes:
    """A data set as it goes over the wire."""
    out = DicomBytesIO()
    out.is_little_endian, out.is_implicit_VR = True, syntax == ImplicitVRLittleEndian
    write_dataset(out, dataset)
    return out.getvalue()


def _item(class_uid: str, instance_uid: str, reason: int | None = None) -> Dataset:
    item = Dataset()
    item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID = class_uid, instance_uid
    if reason is not None:
        item.FailureReason = reason
    return item
