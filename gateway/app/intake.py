"""Intake: what arrived, what is a duplicate, what contradicts itself. The same for `serve` and `scrub`.

Runs before routing, on the spooled originals. Hashing is here and not in the receive path (performance.md).
"""

from __future__ import annotations

import errno
import hashlib
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pydicom
from pydicom.multival import MultiValue
from pydicom.tag import BaseTag, Tag

from gateway.errors import Hold, Refuse
from gateway.header.text import decoded
from gateway.pseudonyms import Keys

PREAMBLE_BYTES = 132
CHUNK_BYTES = 1 << 20
DICOMDIR = "1.2.840.10008.1.3.10"
_LONG_VRS = frozenset({b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR", b"UT", b"UV"})
_CHARACTER_SET, _PATIENT_ID, _ISSUER = Tag(0x0008, 0x0005), Tag(0x0010, 0x0020), Tag(0x0010, 0x0021)
_OTHER_IDS, _OTHER_IDS_SEQUENCE = Tag(0x0010, 0x1000), Tag(0x0010, 0x1002)
MOST_OTHER_IDS = 64
_UIDS = [Tag(0x0008, 0x0016), Tag(0x0008, 0x0018), Tag(0x0020, 0x000D), Tag(0x0020, 0x000E)]
_READ = [*_UIDS, _CHARACTER_SET, _PATIENT_ID, _ISSUER, _OTHER_IDS, _OTHER_IDS_SEQUENCE]
# What pydicom raises for bytes that are not what they claim to be; none of these texts may travel (they quote values).
_PARSE_ERRORS = (
    AttributeError, EOFError, IndexError, KeyError, LookupError, NotImplementedError, OverflowError, RecursionError,
    TypeError, ValueError, struct.error, zlib.error,
    pydicom.errors.InvalidDicomError, pydicom.errors.BytesLengthException,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Examined:
    """One object as intake sees it; keys are keyed hashes. `fault` is "" or a reason code. `others`: further Patient
    IDs that it tells, each with its issuer.
    """

    name: str  # ours, never the sender's
    sha256: str  # of the data set, hex
    study_key: str = ""
    sop_key: str = ""
    patient_key: str = ""
    fault: str = ""
    issuer_key: str = ""
    others: tuple[tuple[str, str], ...] = ()

    @property
    def persons(self) -> tuple[tuple[str, str], ...]:
        """Every (person, issuer) that it names."""
        own = ((self.patient_key, self.issuer_key),) if self.patient_key else ()
        return (*own, *self.others)


def dataset_offset(file: BinaryIO) -> int:
    """Where the data set begins: after preamble and group 0002 (PS3.10 7.1), or 0 for a bare data set."""
    file.seek(0)
    head = file.read(PREAMBLE_BYTES)
    if len(head) < PREAMBLE_BYTES or head[128:] != b"DICM":
        return 0
    offset = PREAMBLE_BYTES
    while True:
        file.seek(offset)
        element = file.read(12)
        if len(element) < 8 or element[:2] != b"\x02\x00":
            return offset
        if element[4:6] in _LONG_VRS:
            if len(element) < 12:
                return offset
            offset += 12 + int.from_bytes(element[8:12], "little")
        else:
            offset += 8 + int.from_bytes(element[6:8], "little")


def looks_like_dicom(path: Path) -> bool:
    """True for the DICM prefix, or a first element of group 0002 or 0008 without one (old bare data sets)."""
    with open(path, "rb") as file:
        head = file.read(PREAMBLE_BYTES)
    return head[128:] == b"DICM" or head[:2] in {b"\x02\x00", b"\x08\x00", b"\x00\x08"}


def examine(path: Path, name: str, master: bytes) -> Examined:
    """Hash one object and read whose it is. Never raises for its contents; OSError passes."""
    keys = Keys(master)
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        file.seek(dataset_offset(file))
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    sha256 = digest.hexdigest()
    try:
        dataset = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=_READ, force=True)
        patient = text_of(dataset, _PATIENT_ID)
        others = _other_ids(dataset, keys)
        sop_class, sop, study, series = (_text(dataset, tag) for tag in _UIDS)
        media_class = str(dataset.file_meta.get("MediaStorageSOPClassUID", ""))  # a DICOMDIR says it only there
    except _PARSE_ERRORS:
        return Examined(name, sha256, fault="unreadable_object")
    except OSError as error:  # pydicom's own, and a length that leads before the beginning; the file was just read
        if error.errno not in (None, errno.EINVAL):
            raise
        return Examined(name, sha256, fault="unreadable_object")
    if DICOMDIR in (sop_class, media_class):
        return Examined(name, sha256, fault="dicomdir")
    if not (sop and study and series):
        return Examined(name, sha256, fault="unreadable_object")
    return Examined(
        name,
        sha256,
        study_key=keys.opaque("study", study),
        sop_key=keys.opaque("sop", sop),
        patient_key=keys.person(patient) if patient else "",
        fault="" if patient else "missing_patient_id",
        issuer_key=keys.issuer(text_of(dataset, _ISSUER)),
        others=others,
    )


def _other_ids(dataset: pydicom.Dataset, keys: Keys) -> tuple[tuple[str, str], ...]:
    """Other Patient IDs (0010,1000) and those of (0010,1002), with their issuers, as keyed names."""
    found = [(one, "") for one in text_of(dataset, _OTHER_IDS).split("\\")]
    items = dataset[_OTHER_IDS_SEQUENCE].value if _OTHER_IDS_SEQUENCE in dataset else None
    for item in list(items or ())[:MOST_OTHER_IDS]:
        if _CHARACTER_SET not in item and _CHARACTER_SET in dataset:
            item[_CHARACTER_SET] = dataset[_CHARACTER_SET]
        found.append((text_of(item, _PATIENT_ID), text_of(item, _ISSUER)))
    return tuple(dict.fromkeys((keys.person(one), keys.issuer(issuer)) for one, issuer in found if one.strip(" \0")))


def _text(dataset: pydicom.Dataset, tag: BaseTag) -> str:
    value = dataset[tag].value if tag in dataset else None
    return "" if value is None else str(value).strip(" \0")


def text_of(dataset: pydicom.Dataset, tag: BaseTag) -> str:
    """A text value as the header stage reads it, so that both mean the same person: raw bytes, decoded our way."""
    value, terms = (_raw(dataset, one) for one in (tag, _CHARACTER_SET))
    return decoded(value, terms)


def _raw(dataset: pydicom.Dataset, tag: BaseTag) -> bytes:
    element = dataset.get_item(tag)
    value = element.value if element is not None else None
    if isinstance(value, bytes):
        return value
    # pydicom has read the character set for itself already.
    parts = value if isinstance(value, MultiValue) else [value]
    return "\\".join("" if part is None else str(part) for part in parts).encode()


@dataclass(frozen=True, slots=True)
class Known:
    """An instance that an earlier generation of the study brought."""

    sop_key: str
    sha256: str
    patient_key: str
    generation: int


def sort_out(examined: Sequence[Examined], known: Iterable[Known] = ()) -> list[str]:
    """What to do with each object, in order of arrival: use, duplicate, or conflict (same UID, other bytes).

    The one that arrived first stands; a conflict never overwrites (cases.md 39).
    """
    seen = {entry.sop_key: entry.sha256 for entry in known if entry.sop_key}
    uses = []
    for entry in examined:
        if not entry.sop_key:
            uses.append("use")  # a fault holds the study; nothing is dropped before somebody looked
        elif entry.sop_key not in seen:
            seen[entry.sop_key] = entry.sha256
            uses.append("use")
        else:
            uses.append("duplicate" if seen[entry.sop_key] == entry.sha256 else "conflict")
    return uses


def require_sound(examined: Sequence[Examined], uses: Sequence[str]) -> None:
    """Raise Hold when one of the objects cannot be processed. `at` names our file."""
    for entry, use in zip(examined, uses, strict=True):
        if entry.fault == "dicomdir":
            raise Refuse("dicomdir", at=entry.name)
        if entry.fault:
            raise Hold(entry.fault, at=entry.name)
        if use == "conflict":
            raise Hold("conflicting_instance", at=entry.name)


def persons_of(examined: Sequence[Examined], known: Iterable[Known] = ()) -> frozenset[str]:
    """The keyed names of all Patient IDs in a study; more than one are one person only where a merge table says so."""
    of_known = {entry.patient_key for entry in known if entry.patient_key}
    return frozenset({entry.patient_key for entry in examined} | of_known)
