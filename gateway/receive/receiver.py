"""The DICOM ports, plain and TLS: accept, one thread a connection, limits, and a stop that lets a C-STORE finish."""

from __future__ import annotations

import logging
import socket
import threading
import time
from contextlib import suppress

from gateway.database import Database
from gateway.durable import make_folder
from gateway.errors import EnvironmentFault
from gateway.observe import Metrics, log, origin
from gateway.pseudonyms import Keys
from gateway.receive import peers
from gateway.receive.arrival import Arrivals
from gateway.receive.association import Association, House
from gateway.receive.commitments import Commitments
from gateway.receive.contexts import Contexts
from gateway.receive.peers import Peers, Rejection, plain_address
from gateway.settings import Settings
from gateway.spool import Spool
from gateway.tls import TlsFiles, server_context

BACKLOG = 256
WAITING_CONNECTIONS = 64  # beyond the associations: connections that have not asked for one yet, or are being refused
STOP_GRACE_S = 30.0


class Receiver:
    """A storage SCP. `start` and `stop` from one thread; `port` and `tls_port` are the bound ports once started, 0 for
    one that is not wanted.
    """

    def __init__(self, *, settings: Settings, spool: Spool, database: Database, keys: Keys, metrics: Metrics) -> None:
        self._settings = settings
        self._spool = spool
        self._metrics = metrics
        self._house = House(
            arrivals=Arrivals(settings=settings, spool=spool, database=database, keys=keys),
            commitments=Commitments(settings=settings, spool=spool, database=database, keys=keys),
            peers=Peers(settings),
            contexts=Contexts(settings.private_sop_classes, commits=settings.commitment != "off"),
            metrics=metrics,
            max_pdu_bytes=settings.max_pdu_bytes,
            network_timeout_s=settings.network_timeout_s,
            enter=self._enter,
            leave=self._leave,
        )
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, Association] = {}
        self._associations = 0
        self._stopping = False
        self._listeners: list[socket.socket] = []
        self._acceptors: list[threading.Thread] = []
        self.port = self.tls_port = 0

    def start(self) -> None:
        """Bind and accept. Raises EnvironmentFault when an address or port cannot be had, the spool not be made, or the
        TLS files not be used.
        """
        settings = self._settings
        try:
            make_folder(self._spool.incoming)
        except OSError as error:
            raise EnvironmentFault(f"the spool cannot be made: {origin(error)}") from None
        if settings.dicom_tls_port is not None:
            tls = TlsFiles(settings.dicom_tls_ca, settings.dicom_tls_certificate, settings.dicom_tls_key)
            server_context(tls)
            self.tls_port = self._listen(settings.dicom_tls_port, "DEID_DICOM_TLS_PORT", tls)
        if settings.dicom_plain:
            try:
                self.port = self._listen(settings.dicom_port, "DEID_DICOM_PORT", None)
            except EnvironmentFault:
                self.stop()
                raise

    def _listen(self, port: int, setting: str, tls: TlsFiles | None) -> int:
        """Bind one port and accept on a thread of its own; the port."""
        host = self._settings.dicom_host
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
        bound = int(listener.getsockname()[1])
        acceptor = threading.Thread(target=self._accept, args=(listener, tls), name="dicom-accept", daemon=True)
        self._listeners.append(listener)
        self._acceptors.append(acceptor)
        acceptor.start()
        log("receiver_started", host=host, port=bound)
        return bound

    @property
    def alive(self) -> bool:
        """True while connections are taken."""
        return bool(self._acceptors) and all(acceptor.is_alive() for acceptor in self._acceptors)

    def stop(self) -> None:
        """Stop accepting, end idle associations, let running C-STOREs be answered, at the longest for STOP_GRACE_S."""
        with self._lock:
            self._stopping = True
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes accept
            listener.close()
        for acceptor in self._acceptors:
            acceptor.join()
        for association in self._snapshot().values():
            association.stop()
        until = time.monotonic() + STOP_GRACE_S
        for thread in self._snapshot():
            thread.join(max(0.0, until - time.monotonic()))
        for thread, association in self._snapshot().items():
            association.cut()
            thread.join(STOP_GRACE_S)
        if self._acceptors:
            log("receiver_stopped", port=self.port or self.tls_port)
        self._acceptors, self._listeners = [], []

    def _snapshot(self) -> dict[threading.Thread, Association]:
        with self._lock:
            return dict(self._open)

    def _enter(self) -> Rejection | None:
        with self._lock:
            if self._stopping:
                return peers.STOPPING
            if self._associations >= self._settings.max_associations:
                return peers.TOO_MANY
            self._associations += 1
            return None

    def _leave(self) -> None:
        with self._lock:
            self._associations -= 1

    def _accept(self, listener: socket.socket, tls: TlsFiles | None) -> None:
        while not self._stopping:
            try:
                connection, address = listener.accept()
            except OSError as error:  # out of file descriptors, or a connection that was gone already
                if not self._stopping:
                    log("accept_failed", level=logging.WARNING, origin=origin(error))
                    time.sleep(0.1)
                continue
            self._welcome(connection, plain_address(str(address[0])), tls)

    def _welcome(self, connection: socket.socket, host: str, tls: TlsFiles | None) -> None:
        """Give the connection a thread, unless too many are open already."""
        with self._lock:
            room = len(self._open) < self._settings.max_associations + WAITING_CONNECTIONS and not self._stopping
        if not room:
            self._metrics.associations.labels(result="no_room").inc()
            connection.close()
            return
        try:
            association = Association(connection, host=host, house=self._house, tls=tls)
        except OSError:  # the peer has gone already
            connection.close()
            return
        thread = threading.Thread(target=self._serve, args=(association,), name="dicom", daemon=True)
        with self._lock:
            self._open[thread] = association
        try:
            thread.start()
        except RuntimeError as error:  # the machine gives no more threads
            log("connection_failed", level=logging.WARNING, host=host, origin=origin(error))
            with self._lock:
                del self._open[thread]
            connection.close()

    def _serve(self, association: Association) -> None:
        """The top of a connection's thread: the one place here that catches whatever nobody foresaw. By then the sender
        has been told 0x0110 and the association aborted."""
        try:
            association.run()
        except Exception as error:  # noqa: BLE001
            self._metrics.library_failures.labels(stage="receive").inc()
            log("receive_failed", level=logging.ERROR, origin=origin(error))
        finally:
            with self._lock:
                self._open.pop(threading.current_thread(), None)
