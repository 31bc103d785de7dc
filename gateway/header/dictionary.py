"""What PS3.6 says of a tag: VR and keyword. pydicom's dictionary plus the attributes that it does not know yet.

Repeating groups are not looked up: overlays and curves are even groups 6000-601E and 5000-501E only (PS3.5 7.6),
pydicom's own repeater dictionary matches 60FE and more.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from pydicom._dicom_dict import DicomDictionary

from gateway.policy.standard import load_missing_dictionary


class Entry(NamedTuple):
    """One attribute of PS3.6. `vr` may be a choice such as "US or SS"."""

    vr: str
    keyword: str
    retired: bool


@cache
def dictionary() -> dict[int, Entry]:
    """Every standard attribute by tag. Read only."""
    entries = {
        int(tag): Entry(vr, keyword, bool(retired))
        for tag, (vr, _, _, retired, keyword) in DicomDictionary.items()
        if vr != "NONE"
    }
    for tag, missing in load_missing_dictionary().items():
        entries.setdefault(int(tag, 16), Entry(missing.vr, missing.keyword, retired=False))
    return entries


@cache
def tags_by_keyword() -> dict[str, int]:
    """Inverse of `dictionary` for attributes that have a keyword."""
    return {entry.keyword: tag for tag, entry in dictionary().items() if entry.keyword}


def is_private(tag: int) -> bool:
    """Odd group number (PS3.5 7.8)."""
    return bool(tag & 0x00010000)


def repeating_form(tag: int) -> str:
    """The table's name of a repeating group ("50xx", "60xx"), or "" (PS3.5 7.6)."""
    group = tag >> 16
    if group & 1:
        return ""
    if 0x5000 <= group <= 0x501E:
        return "50xx"
    return "60xx" if 0x6000 <= group <= 0x601E else ""


def place_of(tag: int) -> str:
    """How a tag is named in errors and notes: eight digits when PS3.6 knows it, else the kind.

    A tag read at a wrong offset is four bytes of somebody's text, so an unknown one is never printed.
    """
    if tag in dictionary():
        return f"{tag:08X}"
    return "a private element" if is_private(tag) else "an unknown element"
