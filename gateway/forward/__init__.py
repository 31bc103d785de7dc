"""Forward: cleared bytes to an archive, and nothing else (DESIGN.md invariant 2).

A new transport is one module with a `Transport` and one line in TRANSPORTS; tests/contracts/test_transport.py
picks it up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.errors import Hold, UsageError
from gateway.forward.dicom import DicomTransport
from gateway.forward.folder import FolderTransport
from gateway.forward.s3 import S3Transport
from gateway.forward.stow import StowTransport
from gateway.forward.transport import Outgoing, Transport, TransportOptions
from gateway.forward.verified import open_verified
from gateway.study import Clearance, Receipt

__all__ = ["TRANSPORTS", "Outgoing", "Transport", "TransportOptions", "forward", "open_transport", "rehearse"]

TRANSPORTS: dict[str, Callable[[str, TransportOptions], Transport]] = {
    "dicom": DicomTransport.at,
    "dicom-tls": DicomTransport.at,
    "folder": FolderTransport.at,
    "http": StowTransport.at,
    "https": StowTransport.at,
    "s3": S3Transport.at,
}


def open_transport(url: str, options: TransportOptions) -> Transport:
    """The transport of a destination's URL, by its scheme. Connects to nothing. Raises UsageError."""
    scheme = url.partition(":")[0]
    if scheme not in TRANSPORTS:
        raise UsageError(f"no transport for {scheme}: URLs; there are {', '.join(sorted(TRANSPORTS))}")
    return TRANSPORTS[scheme](url, options)


def forward(
    clearance: Clearance,
    files: Mapping[str, Path],
    *,
    seal_key: bytes,
    transport: Transport,
    done: frozenset[str],
    on_receipt: Callable[[Receipt], None],
) -> None:
    """Send the files of a clearance, by instance name, that are not in `done`.

    Every instance that was offered is reported. What the archive stored, with a warning or without, has the kind
    "success" or "warning" and belongs in `done` the next time: sending again is harmless, the bytes are the same.

    Raises Hold clearance_broken when the seal is not ours, a file is missing or too many, or bytes are not as cleared
    (nothing of that file leaves); Retry or Hold of the transport after all that could be sent was sent.
    """
    waiting = _waiting(clearance, files, seal_key, done)
    if waiting:
        transport.send(waiting, on_receipt)


def rehearse(clearance: Clearance, files: Mapping[str, Path], *, seal_key: bytes) -> None:
    """All of `forward` but the sending: every byte is read and compared. Raises Hold clearance_broken."""
    for item in _waiting(clearance, files, seal_key, frozenset()):
        with open_verified(item) as file:
            for _ in file.everything():
                pass


def _waiting(clearance: Clearance, files: Mapping[str, Path], seal_key: bytes, done: frozenset[str]) -> list[Outgoing]:
    names = [instance.name for instance in clearance.instances]
    if not clearance.is_sealed_by(seal_key):
        raise Hold("clearance_broken", at="its seal")
    waiting = [instance for instance in clearance.instances if instance.name not in done]
    if len(set(names)) != len(names) or not files.keys() <= set(names):
        raise Hold("clearance_broken", at="a file that was not cleared")
    if any(instance.name not in files for instance in waiting):
        raise Hold("clearance_broken", at="a file that is missing")
    return [Outgoing(instance, files[instance.name]) for instance in waiting]
