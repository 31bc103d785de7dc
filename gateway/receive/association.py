"""One association, acceptor's side of PS3.8 9.2: from A-ASSOCIATE-RQ to release, abort, silence or loss.

One thread an association, blocking reads: an idle association costs nothing.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from gateway.errors import EnvironmentFault
from gateway.observe import log
from gateway.observe.metrics import Metrics
from gateway.receive import pdus, peers
from gateway.receive.arrival import Arrivals
from gateway.receive.commitments import Commitments
from gateway.receive.contexts import ACCEPTED, Contexts
from gateway.receive.messages import Messages, Terms
from gateway.receive.pdus import AbortReason, Caller, PduType, ProtocolFault
from gateway.receive.peers import Peers, Rejection
from gateway.receive.places import Place
from gateway.receive.wire import PeerLost, PeerSilent, Wire
from gateway.tls import TlsFiles, server_context

FIRST_PDU_S = 30.0  # the ARTIM timer of PS3.8 9.1.5: a connection must ask for an association within this


@dataclass(frozen=True, slots=True)
class House:
    """What all associations share. `enter` takes a place for a calling AE title, or says why not; `leave` gives it
    back. `hold_back` waits while such a sender is too fast, and says how many seconds it waited.
    """

    arrivals: Arrivals
    commitments: Commitments
    peers: Peers
    contexts: Contexts
    metrics: Metrics
    max_pdu_bytes: int
    network_timeout_s: float
    hold_back: Callable[[str], float]
    enter: Callable[[str], Place | Rejection]
    leave: Callable[[Place], None]


class Association:
    """One connection from accept to close. `run` is called once, in the connection's own thread. With `tls` it begins
    with a handshake.
    """

    def __init__(self, connection: socket.socket, *, host: str, house: House, tls: TlsFiles | None = None) -> None:
        self._tls = tls
        self._certificate = ""
        self._wire = Wire(connection, timeout_s=min(FIRST_PDU_S, house.network_timeout_s))
        self._host = host
        self._house = house
        self._calling = ""
        self._messages: Messages | None = None  # None until the association is accepted
        self._place: Place = ()
        self._lock = threading.Lock()
        self._stopping = False

    def run(self) -> None:
        """Serve until the end, and count what became of it. Raises only what nobody foresaw."""
        began = time.monotonic()
        result = "failed"
        try:
            result = self._serve() if self._tls is None or self._shake_hands(self._tls) else "no_tls"
        except ProtocolFault as fault:
            result = "aborted_protocol"
            self._abort(fault.reason)
        except PeerSilent:
            result = "timed_out"
            self._abort(AbortReason.NOT_SPECIFIED)
        except PeerLost:
            if self._stopping:
                result = "stopped"
                self._abort(AbortReason.NOT_SPECIFIED)
            else:
                result = "no_request" if self._messages is None else "lost"
        finally:
            if result == "failed":
                self._fail()
            self._end(result, seconds=time.monotonic() - began)

    def stop(self) -> None:
        """From another thread: end after the request that is being received, at once when there is none."""
        with self._lock:
            self._stopping = True
            if self._messages is None or not self._messages.busy:
                self._wire.stop_reading()

    def cut(self) -> None:
        """From another thread: end now, whatever is being received."""
        self._stopping = True
        self._wire.cut()

    def _shake_hands(self, tls: TlsFiles) -> bool:
        """False when there is no TLS to be had: the peer's fault, or files of ours that are wrong, which is logged."""
        try:
            self._certificate = self._wire.secure(server_context(tls))
        except EnvironmentFault as fault:
            log("tls_files_wrong", level=logging.ERROR, at=str(fault))
            return False
        except PeerLost:
            return False
        return True

    def _serve(self) -> str:
        refusal = self._open()
        if refusal is not None:
            self._wire.send(pdus.reject(refusal))
            return refusal.label
        messages = self._messages
        while messages is not None:
            if self._stopping and not messages.busy:
                raise PeerLost("the gateway stops")
            kind, length = self._wire.header()
            if kind == PduType.P_DATA_TF:
                messages.p_data(length)
                continue
            if kind not in PduType.__members__.values():
                raise ProtocolFault(AbortReason.UNRECOGNIZED_PDU)
            if kind not in (PduType.RELEASE_RQ, PduType.ABORT):
                raise ProtocolFault(AbortReason.UNEXPECTED_PDU)
            if length != 4:
                raise ProtocolFault(AbortReason.INVALID_PARAMETER_VALUE)
            self._wire.exactly(length)
            if kind == PduType.RELEASE_RQ:
                self._wire.send(pdus.release_reply())
                return "released"
            break
        return "aborted"

    def _open(self) -> Rejection | None:
        """Read and answer the A-ASSOCIATE-RQ. Strangers are turned away before their request is parsed."""
        kind, length = self._wire.header()
        if kind == PduType.ABORT:
            raise PeerLost("aborted before it began")
        if kind != PduType.ASSOCIATE_RQ or length > pdus.LONGEST_REQUEST_BYTES:
            raise ProtocolFault(AbortReason.UNEXPECTED_PDU)
        body = self._wire.exactly(length)
        caller = pdus.read_caller(body)
        self._calling = caller.calling
        if not caller.speaks_version_1:
            return peers.PROTOCOL_VERSION
        refusal = self._house.peers.reject(
            calling=caller.calling, called=caller.called, host=self._host, certificate=self._certificate
        )
        if refusal is not None:
            return refusal
        request = pdus.read_request(body)
        if request.application_context != pdus.APPLICATION_CONTEXT_NAME:
            return peers.APPLICATION_CONTEXT
        if not self._house.arrivals.has_room():
            return peers.DISK_FULL
        if self._house.arrivals.is_behind():
            return peers.BEHIND
        return self._accept(caller, request)

    def _accept(self, caller: Caller, request: pdus.Request) -> Rejection | None:
        answers = self._house.contexts.negotiate(request.contexts, reports=request.reports)
        terms = Terms(
            caller=caller,
            syntaxes={
                answer.context_id: (str(answer.abstract_syntax), str(answer.transfer_syntax[0]))
                for answer in answers
                if answer.context_id and answer.result == ACCEPTED
            },
            our_pdu_bytes=self._house.max_pdu_bytes,
            peer_pdu_bytes=request.longest_pdu_bytes,
        )
        accepted = pdus.accept(caller, answers, longest_pdu_bytes=self._house.max_pdu_bytes, reports=request.reports)
        place = self._house.enter(caller.calling)
        if isinstance(place, Rejection):
            return place
        self._place = place
        self._messages = Messages(  # from here on `_end` gives the place back
            self._wire,
            terms,
            arrivals=self._house.arrivals,
            commitments=self._house.commitments,
            metrics=self._house.metrics,
            hold_back=self._house.hold_back,
            lock=self._lock,
        )
        self._house.metrics.open_associations.inc()
        self._wire.send(accepted)
        self._wire.set_timeout(self._house.network_timeout_s)
        log("association_accepted", peer=caller.calling, host=self._host, count=len(terms.syntaxes))
        return None

    def _abort(self, reason: AbortReason) -> None:
        with suppress(PeerLost, PeerSilent):
            self._wire.send(pdus.abort(reason, by_provider=self._messages is not None))

    def _fail(self) -> None:
        with suppress(PeerLost, PeerSilent):
            if self._messages is not None:
                self._messages.fail()
        self._abort(AbortReason.NOT_SPECIFIED)

    def _end(self, result: str, *, seconds: float) -> None:
        if self._messages is not None:
            self._messages.close()
            self._house.leave(self._place)
            self._house.metrics.open_associations.dec()
        self._house.metrics.associations.labels(result=result).inc()
        log(
            "association_ended",
            level=logging.DEBUG
            if result in ("no_request", "no_tls")
            else logging.INFO,  # port checks come every few seconds
            state=result,
            peer=self._calling,
            host=self._host,
            instances=self._messages.stored if self._messages is not None else None,
            seconds=round(seconds, 3),
        )
        self._wire.close()
