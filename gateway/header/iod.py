"""The Type of an attribute at its place in an IOD (PS3.3), for the compound codes of PS3.15 Table E.1-1a.

Types 1C and 2C count as 1 and 2: the attribute is there, so its condition is taken as met (PS3.15 E.1.1: keeping the
IOD valid is the de-identifier's duty). A place is the tag of the enclosing sequence, 0 at top level.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from gateway.errors import EnvironmentFault
from gateway.header.dictionary import tags_by_keyword
from gateway.settings import SHIPPED_POLICIES

TYPES_FILE = SHIPPED_POLICIES / "standard" / "ps3_3_types_2026b.json"
TOP = 0
ANY_IOD = ""  # no SOP class: every place has the strictest Type of all IODs

Place = tuple[int, int]  # (tag of the enclosing sequence or TOP, tag)


@dataclass(frozen=True, slots=True)
class _Tables:
    sop_classes: Mapping[str, frozenset[int]]  # modules by SOP class
    places: Mapping[Place, Mapping[str, frozenset[int]]]  # modules by place and Type


@cache
def _tables() -> _Tables:
    try:
        raw = json.loads(TYPES_FILE.read_text("ascii"))
    except OSError as error:
        raise EnvironmentFault(f"{TYPES_FILE} cannot be read: the installation is incomplete") from error
    tags = tags_by_keyword()
    places = {}
    for place, kinds in raw["types"].items():
        parent, _, keyword = place.partition("/")
        if keyword in tags and (not parent or parent in tags):
            key = (tags[parent] if parent else TOP, tags[keyword])
            places[key] = {kind: frozenset(modules) for kind, modules in kinds.items()}
    return _Tables({uid: frozenset(modules) for uid, modules in raw["sop_classes"].items()}, places)


def is_listed(sop_class: str) -> bool:
    """True when the IOD of this SOP class is in the tables."""
    return sop_class in _tables().sop_classes


@lru_cache(maxsize=256)
def types_of(sop_class: str) -> Mapping[Place, str]:
    """Types "1" and "2" by place, for one SOP class; a place that is not listed is Type 3 or not in the IOD.

    For a SOP class without tables (retired ones), the strictest Type that the place has in any IOD.
    """
    tables = _tables()
    modules = tables.sop_classes.get(sop_class)
    found = {}
    for place, kinds in tables.places.items():
        for kind in ("1", "2"):
            if kind in kinds and (modules is None or kinds[kind] & modules):
                found[place] = kind
                break
    return found


@cache
def _places_by_tag() -> Mapping[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for parent, tag in types_of(ANY_IOD):
        found[tag] = (*found.get(tag, ()), parent)
    return found


def places_of(tag: int) -> tuple[int, ...]:
    """The enclosing sequences (TOP for none) in which some IOD has the attribute as Type 1 or 2."""
    return _places_by_tag().get(tag, ())
