"""`sources:` in destinations.yaml: PACS that a back-load fetches studies from, by C-FIND and C-MOVE or C-GET.

sources:
  pacs:
    url: dicom://PACS@10.0.0.7:104
    retrieve: move                # it sends to move_to at our DICOM port, which it must know; get: over our connection
    move_to: DEID                 # ours: DEID_AE_TITLE, where left out; another one tells a back-load apart in routes
    studies_per_hour: 120
    associations: 1               # studies at a time
    hours: ["Mon-Fri 20:00-06:00", "Sat-Sun 00:00-24:00"]
    zone: Europe/Berlin
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.policy.destinations import SOURCES, TLS_KEYS, Access, access_of, ae_title, parse_url
from gateway.policy.document import Document, Faulty, close_match
from gateway.policy.hours import KEYS as HOURS_KEYS
from gateway.policy.hours import Hours, hours_of
from gateway.policy.names import name_fault

MOVE, GET = "move", "get"
KEYS = ("url", "retrieve", "move_to", "studies_per_hour", "associations", *HOURS_KEYS, *TLS_KEYS)
FORM = "write url: dicom://AET@host:port, or dicom-tls:"
ASSOCIATIONS_MAX, PER_HOUR_MAX = 16, 100_000


@dataclass(frozen=True, slots=True)
class Source:
    """A PACS. `move_to` "": our own AE title. At most `associations` studies at a time, `studies_per_hour` begun."""

    name: str
    url: str
    access: Access = field(default_factory=Access)
    retrieve: str = MOVE
    move_to: str = ""
    studies_per_hour: int = 60
    associations: int = 1
    hours: Hours = field(default_factory=Hours)


def resolve_sources(document: Document, folder: Path) -> dict[str, Source]:
    """Every source of the document that has no fault; faults are recorded in it."""
    entries = document.data.get(SOURCES, {})
    if not isinstance(entries, dict):
        document.fault((SOURCES,), "sources needs names with what belongs to each", FORM)
        return {}
    found = {}
    for name, entry in entries.items():
        at = (SOURCES, name)
        says = name_fault("the name of a source", name)
        if says:
            document.fault(at, says)
            continue
        try:
            found[name] = _source(str(name), entry, folder)
        except Faulty as error:
            document.fault(at, f"{name}: {error}", error.hint)
    return found


def _source(name: str, entry: Any, folder: Path) -> Source:
    if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
        raise Faulty("a source needs url:", FORM)
    for key in entry:
        if key not in KEYS:
            raise Faulty(f"{key} does not belong here", close_match(str(key), KEYS) or f"keys: {', '.join(KEYS)}")
    if not entry["url"].startswith(("dicom://", "dicom-tls://")):
        raise Faulty("a source is asked by DICOM", FORM)
    retrieve = entry.get("retrieve", MOVE)
    if retrieve not in (MOVE, GET):
        raise Faulty("retrieve is move or get")
    move_to = entry.get("move_to", "")
    if not isinstance(move_to, str) or (move_to and retrieve == GET):
        raise Faulty("move_to is an AE title of ours, and goes with retrieve: move")
    return Source(
        name,
        parse_url(entry["url"], folder),
        access_of({key: value for key, value in entry.items() if key in ("url", *TLS_KEYS)}, folder),
        retrieve,
        ae_title(move_to) if move_to else "",
        _count(entry, "studies_per_hour", 60, PER_HOUR_MAX),
        _count(entry, "associations", 1, ASSOCIATIONS_MAX),
        hours_of(entry),
    )


def _count(entry: Mapping[str, Any], key: str, default: int, most: int) -> int:
    value = entry.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise Faulty(f"{key} is a number from 1 to {most}")
    return value
