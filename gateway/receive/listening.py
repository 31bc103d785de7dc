"""The DICOM ports: bound once, and accepted from by one process or by several."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from gateway.durable import make_folder
from gateway.errors import EnvironmentFault
from gateway.observe import log, origin
from gateway.settings import Settings
from gateway.spool import Spool
from gateway.tls import TlsFiles, server_context

BACKLOG = 256


@dataclass(frozen=True, slots=True)
class Listeners:
    """Listening sockets, None for one that is not wanted."""

    plain: socket.socket | None
    tls: socket.socket | None

    def __iter__(self) -> Iterator[socket.socket]:
        return (one for one in (self.tls, self.plain) if one is not None)

    @property
    def port(self) -> int:
        """0 when there is none."""
        return _port(self.plain)

    @property
    def tls_port(self) -> int:
        return _port(self.tls)

    def shut(self) -> None:
        """Wake whoever accepts, in whatever process, and take nobody any more."""
        for listener in self:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for listener in self:
            listener.close()


def tls_files(settings: Settings) -> TlsFiles:
    return TlsFiles(settings.dicom_tls_ca, settings.dicom_tls_certificate, settings.dicom_tls_key)


def listen(settings: Settings, spool: Spool) -> Listeners:
    """Bind. Raises EnvironmentFault when an address or port cannot be had, the spool not be made, or the TLS files not
    be used.
    """
    try:
        make_folder(spool.incoming)
    except OSError as error:
        raise EnvironmentFault(f"the spool cannot be made: {origin(error)}") from None
    secure = None
    if settings.dicom_tls_port is not None:
        server_context(tls_files(settings))
        secure = _bound(settings.dicom_host, settings.dicom_tls_port, "DEID_DICOM_TLS_PORT")
    try:
        plain = _bound(settings.dicom_host, settings.dicom_port, "DEID_DICOM_PORT") if settings.dicom_plain else None
    except EnvironmentFault:
        if secure is not None:
            secure.close()
        raise
    listeners = Listeners(plain, secure)
    for listener in listeners:
        log("receiver_started", host=settings.dicom_host, port=_port(listener))
    return listeners


def _port(listener: socket.socket | None) -> int:
    return int(listener.getsockname()[1]) if listener is not None else 0


def _bound(host: str, port: int, setting: str) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise EnvironmentFault(
            f"the DICOM port {port} on {host} cannot be bound ({error.strerror}); "
            f"set DEID_DICOM_HOST and {setting}, or stop what holds it"
        ) from None
    return listener
