"""Which objects this stage cleans at all, and the few facts about one that it needs first.

De-identification of private SOP classes is undefined (PS3.15 E.1); a DICOMDIR is never forwarded (PS3.3 Annex F);
structured reports and documents hold their identity in contents that a header profile cleans only where the policy
says how; speech it does not clean at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydicom._uid_dict import UID_dictionary

from gateway.errors import Hold, Refuse
from gateway.header.elements import Element, Reader
from gateway.header.iod import is_listed
from gateway.header.key_objects import KEY_OBJECT_SELECTION
from gateway.header.slides import LABELLED, drop_label
from gateway.header.structured import OPTION as STRUCTURED_CONTENT
from gateway.header.text import decoded
from gateway.policy import HeaderPolicy
from gateway.pseudonyms import STRUCTURAL_ROOT

DICOMDIR = "1.2.840.10008.1.3.10"
STRUCTURED_REPORTS = "1.2.840.10008.5.1.4.1.1.88."
# Reports by content without "SR" in their class's place: Spectacle Prescription, Macular Grid Thickness.
MORE_REPORTS = frozenset({"1.2.840.10008.5.1.4.1.1.78.6", "1.2.840.10008.5.1.4.1.1.79.1"})
DOCUMENTS = "1.2.840.10008.5.1.4.1.1.104."
AUDIO = frozenset({"1.2.840.10008.5.1.4.1.1.9.4.1", "1.2.840.10008.5.1.4.1.1.9.4.2"})
NOT_INSTANCES = ("Commitment", "Directory", "Management", "Print", "Query")  # "Storage" in the name, nothing to store

CHARACTER_SET, SOP_CLASS, SOP_INSTANCE, PATIENT_ID = 0x00080005, 0x00080016, 0x00080018, 0x00100020
STUDY, SERIES = 0x0020000D, 0x0020000E
LOOKED_AT = frozenset({CHARACTER_SET, SOP_CLASS, SOP_INSTANCE, PATIENT_ID, STUDY, SERIES, *LABELLED})  # by `admit`


@dataclass(frozen=True, slots=True)
class Facts:
    """What an object says of itself. Identifying values: never in a message."""

    sop_class: str
    sop_instance: str
    patient_id: str
    character_set: bytes


def is_storage_class(uid: str) -> bool:
    """True for a storage SOP class of the standard, retired ones too."""
    entry = UID_dictionary.get(uid)
    return is_listed(uid) or (
        entry is not None
        and entry[1] == "SOP Class"
        and "Storage" in entry[0]
        and not any(word in entry[0] for word in NOT_INSTANCES)
    )


def admit_class(uid: str, policy: HeaderPolicy) -> None:
    """Raises Hold or Refuse for a SOP class that this stage does not clean under the policy."""
    if uid == DICOMDIR:
        raise Refuse("dicomdir")
    if not uid.startswith(STRUCTURAL_ROOT):
        raise Hold("private_sop_class")
    if not is_storage_class(uid):
        raise Hold("unknown_sop_class")
    if is_report(uid) and uid != KEY_OBJECT_SELECTION and STRUCTURED_CONTENT not in policy.options:
        raise Hold("structured_content")
    if uid.startswith(DOCUMENTS) and policy.encapsulated == "hold":
        raise Hold("encapsulated_document")
    if uid in AUDIO:
        raise Hold("audio_waveform")


def is_report(uid: str) -> bool:
    """True for a SOP class whose objects are trees of content items."""
    return uid.startswith(STRUCTURED_REPORTS) or uid in MORE_REPORTS


def admit(elements: Sequence[Element], reader: Reader, policy: HeaderPolicy) -> Facts:
    """The facts of an admitted object. Raises Hold, Drop or Refuse, naming the tag that is missing or at fault."""
    values = {
        element.tag: bytes(reader.buffer[element.start : element.end])
        for element in elements
        if element.tag in (CHARACTER_SET, SOP_CLASS, SOP_INSTANCE, PATIENT_ID, STUDY, SERIES) and not element.undefined
    }
    if any(element.tag >> 16 == 0x0004 for element in elements):
        raise Refuse("dicomdir")
    uids = {
        tag: values.get(tag, b"").decode("latin-1").strip(" \0") for tag in (SOP_CLASS, SOP_INSTANCE, STUDY, SERIES)
    }
    for tag, uid in uids.items():
        if not uid or "\\" in uid:
            raise Hold("unreadable_object", at=f"{tag:08X}")
    admit_class(uids[SOP_CLASS], policy)
    drop_label(uids[SOP_CLASS], elements, reader)
    character_set = values.get(CHARACTER_SET, b"")
    patient_id = decoded(values.get(PATIENT_ID, b""), character_set)
    if not patient_id:
        raise Hold("missing_patient_id", at=f"{PATIENT_ID:08X}")
    return Facts(uids[SOP_CLASS], uids[SOP_INSTANCE], patient_id, character_set)
