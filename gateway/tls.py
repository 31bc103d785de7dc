"""TLS for DICOM, DICOMweb and pages: BCP 195 as PS3.15 B.12 profiles it (RFC 8996, RFC 9325).

TLS 1.2 with forward secrecy and authenticated ciphers, or 1.3; nothing older, no fall-back. A context is made again
once one of its files has changed, so certificates are renewed without a restart: who makes a connection asks anew.
"""

from __future__ import annotations

import hashlib
import ssl
import stat
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from gateway.errors import EnvironmentFault

# RFC 9325 4.2; those of TLS 1.3 are all of this kind.
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
OPEN_TO_OTHERS = 0o037  # as for the master key: Kubernetes mounts secrets 0440 to the pod's group


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: whom we believe, who we are, and the key to that. None: the machine's authorities, nobody."""

    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None

    def _state(self) -> tuple[tuple[int, int, int], ...]:
        """What changes when a file, or who may read it, does. Raises OSError."""
        paths = [path for field in fields(self) if (path := getattr(self, field.name)) is not None]
        states = [path.stat() for path in paths]
        return tuple((state.st_ctime_ns, state.st_size, state.st_ino) for state in states)


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """For connections that we make: the peer's certificate and name are checked. Raises EnvironmentFault."""
    return _context(files, _state_of(files), server=False)


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """For connections that we take; with `ca_file` the peer must show a certificate. Raises EnvironmentFault."""
    return _context(files, _state_of(files), server=True)


def fingerprint(certificate: bytes | None) -> str:
    """SHA-256 of a certificate in DER, in hex; "" for none."""
    return hashlib.sha256(certificate).hexdigest() if certificate else ""


def _state_of(files: TlsFiles) -> tuple[tuple[int, int, int], ...]:
    try:
        return files._state()  # noqa: SLF001
    except OSError as error:
        raise EnvironmentFault(f"TLS: {error.filename} cannot be read ({error.strerror})") from None


@lru_cache(maxsize=64)
def _context(files: TlsFiles, _state: object, *, server: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    # An end without a farewell is one, not a fault after which nothing could be written: PDUs and parts have lengths.
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    _believe(context, files.ca_file, server=server)
    if files.certificate_file is not None:
        _become(context, files.certificate_file, files.key_file or files.certificate_file)
    return context


def _believe(context: ssl.SSLContext, ca_file: Path | None, *, server: bool) -> None:
    if ca_file is None:
        if not server:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return
    try:
        context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise EnvironmentFault(f"TLS: {ca_file} holds no certificates in PEM") from None
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a device's own certificate may be listed by itself


def _become(context: ssl.SSLContext, certificate_file: Path, key_file: Path) -> None:
    try:
        mode = stat.S_IMODE(key_file.stat().st_mode)
        if mode & OPEN_TO_OTHERS:
            raise EnvironmentFault(f"TLS: {key_file} is open to others (mode {mode:04o}); run chmod 600 on it")
        context.load_cert_chain(certificate_file, key_file, password=_no_password)
    except (OSError, ssl.SSLError, ValueError):
        raise EnvironmentFault(
            f"TLS: {certificate_file} and {key_file} are no certificate with its key in PEM, without a password"
        ) from None


def _no_password() -> str:
    """Asked for an encrypted key; without this OpenSSL would ask on the terminal."""
    raise ValueError
