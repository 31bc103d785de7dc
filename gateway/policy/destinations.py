"""`destinations.yaml`: the name of an archive -> where it is.

research-archive: dicom://ARCHIVE@10.0.0.8:11112
local-folder: folder:/srv/research
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.policy.document import Document, Faulty
from gateway.policy.names import name_fault

FORMS = "write dicom://AET@host:port or folder:/path"
_HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*\.?")


@dataclass(frozen=True, slots=True)
class Destination:
    """An archive: `dicom://AET@host:port` or `folder:/absolute/path` (a relative one is resolved when loading)."""

    name: str
    url: str


def ae_title(value: str) -> str:
    """A valid AE title: 1 to 16 characters without control characters and backslash (PS3.5 6.2 AE). Raises Faulty."""
    title = value.strip(" ")
    if not re.fullmatch(r"[\x20-\x5b\x5d-\x7e]{1,16}", title):
        raise Faulty("an AE title has 1 to 16 ASCII characters, no backslash", "check it at the peer")
    return title


def parse_url(url: str, folder: Path) -> str:
    """A destination's URL in its final form; relative folders start at `folder`. Raises Faulty."""
    if url.startswith("dicom://"):
        return _dicom(url)
    if url.startswith("folder:"):
        path = url.removeprefix("folder:")
        if not path or path.startswith(("~", "//")):
            raise Faulty("a folder destination needs a path", "write folder:/path, or folder:path from this folder on")
        return f"folder:{(folder / path).resolve()}"
    raise Faulty("unknown kind of destination", FORMS)


def _dicom(url: str) -> str:
    title, at, place = url.removeprefix("dicom://").rpartition("@")
    host, colon, port = place.rpartition(":")
    if not at or not colon or not host:
        raise Faulty("an archive needs AE title, host and port", FORMS)
    title = ae_title(title)
    if not re.fullmatch(r"[1-9][0-9]{0,4}", port) or int(port) > 65535:
        raise Faulty("the port must be a number from 1 to 65535", FORMS)
    if host.startswith("[") and host.endswith("]"):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise Faulty("the address in brackets is not IPv6", FORMS) from None
    elif not _HOST.fullmatch(host) or len(host) > 253:
        raise Faulty("the host must be a name, an IPv4 address, or an IPv6 address in brackets", FORMS)
    return f"dicom://{title}@{host}:{port}"


def resolve_destinations(document: Document, folder: Path) -> Mapping[str, Destination]:
    """Every destination of the document that has no fault; faults are recorded in it."""
    found = {}
    for name, url in document.data.items():
        says = name_fault("the name of a destination", name)
        if says:
            document.fault((name,), says)
        elif not isinstance(url, str):
            document.fault((name,), f"{name} needs text", FORMS)
        else:
            try:
                found[name] = Destination(name, parse_url(url, folder))
            except Faulty as error:
                document.fault((name,), f"{name}: {error}", error.hint)
    if not document.data and not document.faults:
        document.fault((), "no destination is named", FORMS)
    return found
