"""Which private attributes somebody vouches for: PS3.15 Table E.3.10-1 and TCIA's dispositions, as shipped data.

A private attribute is named by its creator, group and element within the creator's block, whatever number the block has
in an object (PS3.5 7.8.1). Creators are compared without case and padding: devices write the same one in both forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pydicom._private_dict import private_dictionaries

from gateway.policy.frozen import FrozenMap
from gateway.policy.standard import DEFAULT_EDITION, FOLDER, SAFE_TABLE, dated_file, read_dated

PrivateKey = tuple[str, int, int]  # creator as `creator_key` writes it, group, element 00-FF
KEEP, UID, DATE, EPOCH, REMOVE = "keep", "uid", "date", "epoch", "remove"
MAX_CREATOR = 64  # LO


@dataclass(frozen=True, slots=True)
class SafePrivate:
    """One row of Table E.3.10-1. `vrs` are its choices, () where the table names none."""

    creator: str
    vrs: tuple[str, ...]
    meaning: str


def creator_key(creator: str) -> str:
    """The form in which creators are compared."""
    return creator.strip(" \0").casefold()


@cache
def load_safe_private(edition: str = DEFAULT_EDITION) -> Mapping[PrivateKey, SafePrivate]:
    """Table E.3.10-1: what PS3.15 calls a sample list of safe private attributes."""
    _, rows = read_dated(dated_file(SAFE_TABLE, edition))
    return FrozenMap(
        {
            (creator_key(row["creator"]), int(row["group"], 16), int(row["element"], 16)): SafePrivate(
                row["creator"], tuple(row["vr"].split("/")) if row["vr"] else (), row["meaning"]
            )
            for row in rows
        }
    )


@cache
def load_tcia() -> Mapping[PrivateKey, Mapping[str, str]]:
    """TCIA's dispositions: VR as its curators met it -> keep, uid, date, epoch or remove."""
    _, rows = read_dated(FOLDER / "tcia_private_2024.csv")
    found: dict[PrivateKey, dict[str, str]] = {}
    for row in rows:
        for word in row["elements"].split():
            element, _, vr = word.partition(":")
            key = (creator_key(row["creator"]), int(row["group"], 16), int(element, 16))
            known = found.setdefault(key, {})
            known[vr] = row["action"] if known.get(vr, row["action"]) == row["action"] else REMOVE
    return FrozenMap({key: FrozenMap(actions) for key, actions in found.items()})


@cache
def _dictionary() -> Mapping[PrivateKey, str]:
    """VR by pydicom's private dictionary, for creators and elements that it has whole (no repeating groups)."""
    found = {}
    for creator, entries in private_dictionaries.items():
        for form, (vr, *_) in entries.items():
            group, element = form[:4], form[6:8]
            if "x" not in group + element and vr != "UN":
                found[creator_key(creator), int(group, 16), int(element, 16)] = str(vr)
    return FrozenMap(found)


def vr_of(key: PrivateKey, edition: str = DEFAULT_EDITION) -> str:
    """The VR of a private attribute where some list or dictionary knows it, else ""."""
    safe = load_safe_private(edition).get(key)
    if safe is not None and len(safe.vrs) == 1:
        return safe.vrs[0]
    known = _dictionary().get(key)
    if known is not None:
        return known
    met = {vr for vr in load_tcia().get(key, ()) if vr not in ("OB", "UN")}
    return met.pop() if len(met) == 1 else ""
