"""`route echo`: is every destination there, and does it know us? C-ECHO to archives, QIDO-RS to web archives, a look at
buckets and folders; sends nothing.

The question goes over the transport that would send, as one association of its own with our AE title, so that the
answer holds for sending too. What it raises is told in words: the rejections of PS3.8 Table 9-21, and why a host was
not reached.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.errors import EnvironmentFault, PolicyError, Retry, UsageError
from gateway.forward import Transport, TransportOptions, open_transport
from gateway.forward.dicom import DicomTransport
from gateway.forward.folder import FolderTransport
from gateway.forward.s3 import S3Transport
from gateway.policy import Destination
from gateway.policy.destinations import resolve_destinations
from gateway.policy.document import close_match, read_document
from gateway.policy.folder import DESTINATIONS
from gateway.settings import Settings

_REJECTION = re.compile(r"\(result (\d+), source (\d+), reason (\d+)\)")
_CALLING, _CALLED = (1, 3), (1, 7)  # (source, reason): calling, called AE title not recognised (PS3.8 Table 9-21)
_NO_TLS = {"archive_untrusted": "untrusted", "archive_access": "no-access"}
_REASONS = {
    (1, 1): "it gives no reason",
    (1, 2): "it does not support the application context",
    (2, 1): "it gives no reason",
    (2, 2): "it does not support this protocol version",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a destination answered. `state` is one of: answers, writable, refused, unreachable, silent, rejected,
    wrong-ae, unknown-ae, busy, lost, untrusted, no-access, not-writable.
    """

    name: str
    url: str
    state: str
    says: str
    seconds: float

    @property
    def ok(self) -> bool:
        return self.state in {"answers", "writable"}


def destinations_of(folder: Path) -> Mapping[str, Destination]:
    """Those of a policies folder, whatever is wrong with its policies. Raises PolicyError."""
    document = read_document(folder / DESTINATIONS)
    found = resolve_destinations(document, folder) if document.data or not document.faults else {}
    if document.faults:
        raise PolicyError(document.faults)
    return found


def named(known: Mapping[str, Destination], names: Sequence[str]) -> list[Destination]:
    """Those of these names, in their order; all when none is named. Raises UsageError for an unknown one."""
    for name in names:
        if name not in known:
            hint = close_match(name, known) or f"there is: {', '.join(sorted(known))}"
            raise UsageError(f"no destination {name}; {hint}")
    return [known[name] for name in dict.fromkeys(names or known)]


def echo(destinations: Sequence[Destination], settings: Settings, *, timeout_s: float) -> list[Answer]:
    """Ask one after the other, each at most about `timeout_s` seconds for connecting and for every answer."""
    options = TransportOptions(ae_title=settings.ae_title, timeout_s=timeout_s, base=settings.policies)
    answers = []
    for destination in destinations:
        began = time.monotonic()
        transport = open_transport(destination.url, replace(options, access=destination.access))
        if isinstance(transport, DicomTransport):
            state, says = _archive(transport)
        elif isinstance(transport, FolderTransport):
            state, says = _folder(transport)
        else:
            state, says = _web(transport)
        answers.append(Answer(destination.name, destination.url, state, says, round(time.monotonic() - began, 3)))
    return answers


def _archive(transport: DicomTransport) -> tuple[str, str]:
    peer, ours = transport.peer, transport.options.ae_title
    try:
        transport.probe()
    except Retry as error:
        rejection = _REJECTION.search(error.at)
        if rejection is not None:
            _, source, reason = map(int, rejection.groups())
            return _rejected((source, reason), peer.ae_title, ours)
        if error.reason in _NO_TLS:
            return _NO_TLS[error.reason], error.at
        if error.reason == "archive_unreachable":
            return _unreached(transport)
        if error.reason == "archive_rejects_us":
            return "rejected", f"it takes the association but not C-ECHO {error.at[error.at.rfind('(') :]}"
        return "lost", f"the connection was lost {error.at[error.at.rfind('(') :]}; is this a DICOM port?"
    return "answers", f"C-ECHO answered with success to {ours}"


def _web(transport: Transport) -> tuple[str, str]:
    try:
        transport.probe()
    except Retry as error:
        why = error.at[error.at.rfind("(") + 1 :].rstrip(")")
        if error.reason in _NO_TLS:
            return _NO_TLS[error.reason], error.at
        if error.reason == "archive_rejects_us":
            keys = "access_key_id and the bucket" if isinstance(transport, S3Transport) else "token_file or user"
            return "rejected", f"it does not let us in ({why}): see {keys}, and the path of its URL"
        if error.reason == "archive_busy":
            return "busy", f"it is there, but not well ({why})"
        return "unreachable", f"it does not answer ({why}): is it up, and does it speak TLS here?"
    return "answers", "the bucket answered" if isinstance(transport, S3Transport) else "DICOMweb answered"


def _rejected(code: tuple[int, int], theirs: str, ours: str) -> tuple[str, str]:
    """PS3.8 Table 9-21 in words, for the one who can mend it."""
    source, reason = code
    if code == _CALLED:
        return "wrong-ae", f"it is not called {theirs}: correct the AE title in {DESTINATIONS}"
    if code == _CALLING:
        return "unknown-ae", f"it does not know {ours}: register our AE title and address there"
    if source == 3:
        return "busy", "it takes no further association now; try again"
    return "rejected", f"it rejects the association: {_REASONS.get(code, f'source {source}, reason {reason}')}"


def _unreached(transport: DicomTransport) -> tuple[str, str]:
    """The transport says that there was no answer; a connection without a word more says why."""
    peer = transport.peer
    timeout_s = transport.options.timeout_s
    try:
        socket.create_connection((peer.host, peer.port), timeout=timeout_s).close()
    except socket.gaierror:
        return "unreachable", f"the name {peer.host} is not known here: correct it, or look at DNS"
    except ConnectionRefusedError:
        return "refused", f"nothing listens on port {peer.port} of {peer.host}: start the archive, or correct the port"
    except TimeoutError:
        return "unreachable", f"{peer.host} did not answer in {timeout_s:g} s: a firewall between, or the wrong address"
    except OSError as error:
        return (
            "unreachable",
            f"{peer.host} is not reached ({error.strerror or errno.errorcode.get(error.errno or 0, '?')})",
        )
    return "silent", f"the port is open, but nobody answered in {timeout_s:g} s: is this a DICOM port?"


def _folder(transport: FolderTransport) -> tuple[str, str]:
    """Whether this user could write there. A folder that does not exist is not made for the question."""
    root = transport.root
    if root.exists():
        try:
            transport.probe()
        except EnvironmentFault as error:
            return "not-writable", str(error)
        return "writable", f"takes files of user id {os.geteuid()}"
    around = next(parent for parent in root.parents if parent.exists())
    if around.is_dir() and os.access(around, os.W_OK | os.X_OK):
        return "writable", f"does not exist yet; it would be made below {around}"
    return "not-writable", f"does not exist, and user id {os.geteuid()} may not make it below {around}"
