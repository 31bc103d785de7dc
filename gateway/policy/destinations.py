"""`destinations.yaml`: the name of an archive -> where it is, and what it takes to be let in.

research-archive: dicom://ARCHIVE@10.0.0.8:11112
local-folder: folder:/srv/research
web-archive: {url: "https://archive.example/dicom-web", token_file: /run/secrets/archive-token}
vna: {url: dicom://VNA@10.0.0.9:11112, rejection_notes: true}      # a recall sends it IOCM rejection notes
bucket: {url: "s3://research/ct", endpoint: "https://s3.example", access_key_id: GATEWAY, secret_key_file: s3.secret}
night: {url: dicom://NIGHT@10.0.0.10:104, hours: "20:00-06:00", zone: Europe/Berlin}     # sent to in these hours only
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gateway.policy.document import Document, Faulty, close_match
from gateway.policy.hours import KEYS as HOURS_KEYS
from gateway.policy.hours import Hours, hours_of
from gateway.policy.names import name_fault
from gateway.tls import TlsFiles

FORMS = (
    "write dicom://AET@host:port, dicom-tls://AET@host:port, https://host/dicom-web, s3://bucket/prefix or folder:/path"
)
TLS_KEYS = ("ca_file", "certificate_file", "key_file", "server_name")
WEB_KEYS = ("token_file", "user", "password_file")
S3_KEYS = ("endpoint", "region", "access_key_id", "secret_key_file", "encryption", "kms_key_id")
NOTES = "rejection_notes"
SOURCES = "sources"  # what studies are fetched from: sources.py
_KEYS = {
    "dicom": (),
    "dicom-tls": TLS_KEYS,
    "https": TLS_KEYS[:3] + WEB_KEYS,
    "http": WEB_KEYS,
    "s3": TLS_KEYS[:3] + S3_KEYS,
    "folder": (),
}
_TOGETHER = (
    ("certificate_file", "key_file"),
    ("user", "password_file"),
    ("access_key_id", "secret_key_file"),
)
_HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*\.?")


@dataclass(frozen=True, slots=True)
class Store:
    """Where an S3 bucket is, and how its objects are encrypted there: AES256, aws:kms, "" for the bucket's own way."""

    endpoint: str = ""  # "" = that of AWS in the region
    region: str = "us-east-1"
    encryption: str = ""
    kms_key_id: str = ""

    @property
    def url(self) -> str:
        """What `/bucket` is put behind."""
        return self.endpoint or f"https://s3.{self.region}.amazonaws.com"


@dataclass(frozen=True, slots=True)
class Access:
    """What it takes to be let in, as files: nothing secret is in YAML. `server_name`: the name in the archive's
    certificate, "" for its host. `user` and `password_file`: of a bucket, its access key. `store`: only of a bucket.
    """

    tls: TlsFiles = field(default_factory=TlsFiles)
    server_name: str = ""
    token_file: Path | None = None
    user: str = ""
    password_file: Path | None = None
    store: Store = field(default_factory=Store)


@dataclass(frozen=True, slots=True)
class Destination:
    """An archive, by its URL (FORMS); a relative folder is resolved when loading. `rejection_notes`: it acts on those
    of IHE IOCM, and gets them when something is recalled. `hours`: when studies are sent there.
    """

    name: str
    url: str
    access: Access = field(default_factory=Access)
    rejection_notes: bool = False
    hours: Hours = field(default_factory=Hours)


def ae_title(value: str) -> str:
    """A valid AE title: 1 to 16 characters without control characters and backslash (PS3.5 6.2 AE). Raises Faulty."""
    title = value.strip(" ")
    if not re.fullmatch(r"[\x20-\x5b\x5d-\x7e]{1,16}", title):
        raise Faulty("an AE title has 1 to 16 ASCII characters, no backslash", "check it at the peer")
    return title


def parse_url(url: str, folder: Path) -> str:
    """A destination's URL in its final form; relative folders start at `folder`. Raises Faulty."""
    scheme, mark, rest = url.partition("://")
    if mark and scheme in ("dicom", "dicom-tls"):
        return _dicom(scheme, rest)
    if mark and scheme in ("https", "http"):
        return _web(scheme, rest)
    if mark and scheme == "s3":
        return _s3(rest)
    if url.startswith("folder:"):
        path = url.removeprefix("folder:")
        if not path or path.startswith(("~", "//")):
            raise Faulty("a folder destination needs a path", "write folder:/path, or folder:path from this folder on")
        return f"folder:{(folder / path).resolve()}"
    raise Faulty("unknown kind of destination", FORMS)


def _dicom(scheme: str, rest: str) -> str:
    title, at, place = rest.rpartition("@")
    host, colon, port = place.rpartition(":")
    if not at or not colon or not host:
        raise Faulty("an archive needs AE title, host and port", FORMS)
    title = ae_title(title)
    _check_place(host, port)
    return f"{scheme}://{title}@{host}:{port}"


def _web(scheme: str, rest: str) -> str:
    """The base of a DICOMweb service (PS3.18 8.3): what `/studies` is put behind."""
    place, _, path = rest.partition("/")
    if "@" in place:
        raise Faulty("a URL holds no user and no password", "write user: and password_file:, or token_file:")
    host, port = place, "443"
    if not place.endswith("]") and ":" in place:
        host, _, port = place.rpartition(":")
    _check_place(host, port)
    if not re.fullmatch(r"[A-Za-z0-9._~/-]*", path):
        raise Faulty("the path holds other signs than letters, digits and . _ ~ / -", FORMS)
    if scheme == "http" and host not in ("127.0.0.1", "localhost", "[::1]"):
        raise Faulty("http:// is for this machine only", "write https://")
    return f"{scheme}://{place}/{path}".rstrip("/")


def _s3(rest: str) -> str:
    """A bucket's name by the rules that hold in every S3, and the prefix of its objects."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._~-]+)*/?", rest) or ".." in rest:
        raise Faulty("a bucket has 3 to 63 small letters, digits, dots and dashes", "write s3://bucket/prefix")
    return f"s3://{rest.rstrip('/')}"


def _check_place(host: str, port: str) -> None:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", port) or int(port) > 65535:
        raise Faulty("the port must be a number from 1 to 65535", FORMS)
    if host.startswith("[") and host.endswith("]"):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise Faulty("the address in brackets is not IPv6", FORMS) from None
    elif not _HOST.fullmatch(host) or len(host) > 253:
        raise Faulty("the host must be a name, an IPv4 address, or an IPv6 address in brackets", FORMS)


def access_of(entry: Mapping[str, Any], folder: Path) -> Access:
    """What stands beside the URL. Raises Faulty."""
    known = _KEYS.get(str(entry.get("url", "")).partition(":")[0], ())
    for key, value in entry.items():
        if key != "url" and key not in known:
            hint = close_match(key, known) or (f"beside this url there may be {', '.join(known)}" if known else "")
            raise Faulty(f"{key} does not belong here", hint)
        if not isinstance(value, str) or not value or not value.isprintable():
            raise Faulty(f"{key} needs text", "")
    for one, other in _TOGETHER:
        if (one in entry) != (other in entry):
            raise Faulty(f"{one} and {other} go together", "")
    if "token_file" in entry and "user" in entry:
        raise Faulty("a token or a user, not both", "")
    if ":" in entry.get("user", ""):
        raise Faulty("a user has no colon (RFC 7617)", "")
    files = {key: folder / value for key, value in entry.items() if key.endswith("_file")}
    tls = TlsFiles(files.get("ca_file"), files.get("certificate_file"), files.get("key_file"))
    user = entry.get("user", entry.get("access_key_id", ""))
    secret = files.get("password_file", files.get("secret_key_file"))
    return Access(tls, entry.get("server_name", ""), files.get("token_file"), user, secret, _store(entry))


def _store(entry: Mapping[str, Any]) -> Store:
    """Where a bucket is. Raises Faulty."""
    store = Store(**{key: entry[key] for key in ("endpoint", "region", "encryption", "kms_key_id") if key in entry})
    scheme, mark, rest = store.endpoint.partition("://")
    if store.endpoint and (scheme not in ("https", "http") or not mark or "/" in rest.rstrip("/")):
        raise Faulty("endpoint is no URL of a store", "write https://host:port, without the bucket")
    if store.endpoint:
        store = replace(store, endpoint=_web(scheme, rest.rstrip("/")))
    if not re.fullmatch(r"[a-z0-9-]{1,40}", store.region):
        raise Faulty("region has small letters, digits and dashes", "us-east-1, where the store has none")
    if store.encryption not in ("", "AES256", "aws:kms"):
        raise Faulty("encryption is AES256 or aws:kms", "leave it out for what the bucket does by itself")
    if store.kms_key_id and store.encryption != "aws:kms":
        raise Faulty("kms_key_id goes with encryption: aws:kms", "")
    return store


def _takes_notes(entry: Mapping[str, Any]) -> bool:
    value = entry.get(NOTES, False)
    if not isinstance(value, bool):
        raise Faulty(f"{NOTES} is true or false", "true for an archive that acts on them (IHE IOCM)")
    return value


def resolve_destinations(document: Document, folder: Path) -> Mapping[str, Destination]:
    """Every destination of the document that has no fault; faults are recorded in it."""
    found = {}
    entries = {name: value for name, value in document.data.items() if name != SOURCES}
    for name, value in entries.items():
        entry = value if isinstance(value, dict) else {"url": value}
        says = name_fault("the name of a destination", name)
        if says:
            document.fault((name,), says)
        elif not isinstance(entry.get("url"), str):
            document.fault((name,), f"{name} needs text, or url: with what it takes to be let in", FORMS)
        else:
            try:
                url, notes, hours = parse_url(entry["url"], folder), _takes_notes(entry), hours_of(entry)
                rest = {key: one for key, one in entry.items() if key not in (NOTES, *HOURS_KEYS)}
                found[name] = Destination(name, url, access_of(rest, folder), notes, hours)
            except Faulty as error:
                document.fault((name,), f"{name}: {error}", error.hint)
    if not entries and not document.faults:
        document.fault((), "no destination is named", FORMS)
    return found
