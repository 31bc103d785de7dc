"""Receiving in one process: accept, one thread a connection, limits, and a stop that lets a C-STORE finish."""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from contextlib import nullcontext

from gateway.database import Database
from gateway.observe import log, origin
from gateway.observe.metrics import Metrics
from gateway.pseudonyms import Keys
from gateway.receive import peers
from gateway.receive.arrival import Arrivals
from gateway.receive.association import Association, House
from gateway.receive.commitments import Commitments
from gateway.receive.contexts import Contexts
from gateway.receive.listening import Listeners, listen, tls_files
from gateway.receive.peers import Peers, Rejection, plain_address
from gateway.receive.places import Place, Places
from gateway.settings import Settings
from gateway.spool import Spool
from gateway.tls import TlsFiles

WAITING_CONNECTIONS = 64  # beyond the associations: connections that have not asked for one yet, or are being refused
STOP_GRACE_S = 30.0


class Receiver:
    """A storage SCP in this process. `start` and `stop` from one thread; `port` and `tls_port` are the bound ports once
    started, 0 for one that is not wanted. Without `places` it shares none.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        spool: Spool,
        database: Database,
        keys: Keys,
        metrics: Metrics,
        places: Places | None = None,
    ) -> None:
        self._settings = settings
        self._spool = spool
        self._metrics = metrics
        self._places = places or Places(settings)
        shares_sqlite = places is not None and not settings.clustered
        turn = self._places.turn if shares_sqlite else nullcontext
        self._house = House(
            arrivals=Arrivals(settings=settings, spool=spool, database=database, keys=keys, turn=turn),
            commitments=Commitments(settings=settings, spool=spool, database=database, keys=keys),
            peers=Peers(settings),
            contexts=Contexts(settings.private_sop_classes, commits=settings.commitment != "off"),
            metrics=metrics,
            max_pdu_bytes=settings.max_pdu_bytes,
            network_timeout_s=settings.network_timeout_s,
            hold_back=self._places.hold_back,
            enter=self._enter,
            leave=self._places.give_back,
        )
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, Association] = {}
        self._stopping = False
        self._listeners = Listeners(None, None)
        self._acceptors: list[threading.Thread] = []
        self.port = self.tls_port = 0

    def start(self) -> None:
        """Bind and accept. Raises EnvironmentFault when an address or port cannot be had, the spool not be made, or the
        TLS files not be used.
        """
        self.accept_from(listen(self._settings, self._spool))

    def accept_from(self, listeners: Listeners) -> None:
        """Accept, on a thread for each port. Other processes may accept from the same ones."""
        self._listeners = listeners
        self.port, self.tls_port = listeners.port, listeners.tls_port
        self._metrics.receivers.set(1)
        for listener, tls in ((listeners.plain, None), (listeners.tls, tls_files(self._settings))):
            if listener is not None:
                acceptor = threading.Thread(target=self._accept, args=(listener, tls), name="dicom-accept", daemon=True)
                self._acceptors.append(acceptor)
                acceptor.start()

    @property
    def alive(self) -> bool:
        """True while connections are taken."""
        return bool(self._acceptors) and all(acceptor.is_alive() for acceptor in self._acceptors)

    @property
    def ready(self) -> bool:
        """The same: there is but one process."""
        return self.alive

    def stop(self) -> None:
        """Stop accepting, end idle associations, let running C-STOREs be answered, at the longest for STOP_GRACE_S.

        Nobody accepts from these ports any more, in other processes neither.
        """
        with self._lock:
            self._stopping = True
        self._listeners.shut()
        self._listeners.close()
        self._metrics.receivers.set(0)
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
        self._acceptors, self._listeners = [], Listeners(None, None)

    def _snapshot(self) -> dict[threading.Thread, Association]:
        with self._lock:
            return dict(self._open)

    def _enter(self, calling: str) -> Place | Rejection:
        return peers.STOPPING if self._stopping else self._places.take(calling)

    def _accept(self, listener: socket.socket, tls: TlsFiles | None) -> None:
        while not self._stopping:
            try:
                connection, address = listener.accept()
            except OSError as error:  # out of file descriptors, or a connection that was gone already
                if error.errno == errno.EINVAL:  # shut, here or in another process: the gateway stops
                    return
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
