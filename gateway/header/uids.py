"""UI value fields: every UID mapped by key, what DICOM itself defines left alone (PS3.15 E.3.9)."""

from __future__ import annotations

import re
from functools import lru_cache

from pydicom._uid_dict import UID_dictionary

from gateway.pseudonyms import STRUCTURAL_ROOT, Pseudonyms

_UID = re.compile(r"[0-9.]{1,64}")


def is_uid(value: str) -> bool:
    """True for what could be a UID by its characters and length (PS3.5 9.1); no path, no text."""
    return _UID.fullmatch(value) is not None


@lru_cache(maxsize=1 << 12)
def new_uid(original: str, pseudonyms: Pseudonyms) -> str:
    """The replacement of one UID, stripped of padding. Remembered: the objects of a study name the same ones.

    A UID under DICOM's root that DICOM never registered names an instance of somebody who borrowed the root: mapped.
    """
    return pseudonyms.uid(mapped_as(original))


def mapped_as(original: str) -> str:
    """What stands for a UID when it is mapped."""
    value = original.strip(" \0")
    borrowed = value.startswith(STRUCTURAL_ROOT) and value not in UID_dictionary
    return f"unregistered {value}" if borrowed else value


def new_uids(value: bytes, pseudonyms: Pseudonyms) -> bytes:
    """A whole UI value field, one or several values, unpadded."""
    return "\\".join(new_uid(one, pseudonyms) for one in value.decode("latin-1").split("\\")).encode("latin-1")
