"""Requests and answers within an association: C-STORE and C-ECHO (PS3.7 9.1.1, 9.1.5), and the N-ACTION of storage
commitment (PS3.4 Annex J), one at a time.

P-DATA goes a short path of our own: fragments of a data set are written from the read buffer straight to the file.
Commands of other services are answered 0211H (unrecognized operation), their data sets taken off the wire and dropped.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from gateway.observe import log, origin
from gateway.observe.metrics import Metrics
from gateway.receive import commands, commitment, pdus
from gateway.receive.arrival import Arrival, Arrivals
from gateway.receive.commands import Command
from gateway.receive.commitment import Asked
from gateway.receive.commitments import OFF, Commitments
from gateway.receive.contexts import VERIFICATION
from gateway.receive.pdus import AbortReason, Caller, ProtocolFault
from gateway.receive.wire import Wire

_OF_COMMITMENT = frozenset({commands.N_ACTION_RQ, commands.N_EVENT_REPORT_RQ})
_RESULTS = {commands.SUCCESS: "success", commands.OUT_OF_RESOURCES: "out_of_resources"}


@dataclass(frozen=True, slots=True)
class Terms:
    """What the negotiation settled. `syntaxes`: accepted context id -> abstract and transfer syntax; 0 = any length."""

    caller: Caller
    syntaxes: Mapping[int, tuple[str, str]]
    our_pdu_bytes: int
    peer_pdu_bytes: int


@dataclass(slots=True)
class _Message:
    """A request whose data set is still coming; without `arrival` or `asks` the data set is dropped."""

    context_id: int
    command: Command
    began: float
    status: int = commands.SUCCESS
    arrival: Arrival | None = None
    asks: bytearray | None = None  # of an N-ACTION for storage commitment


class Messages:
    """The messages of one association. `busy` from a request's first byte to its answer, changed under `lock`."""

    def __init__(
        self,
        wire: Wire,
        terms: Terms,
        *,
        arrivals: Arrivals,
        commitments: Commitments,
        metrics: Metrics,
        hold_back: Callable[[str], float],
        lock: threading.Lock,
    ) -> None:
        self._commitments = commitments
        self._reported = 0  # N-EVENT-REPORTs of ours that are not answered yet
        self._reports = 0  # all of them: their message ids
        self._wire = wire
        self._terms = terms
        self._arrivals = arrivals
        self._metrics = metrics
        self._hold_back = hold_back
        self._lock = lock
        self._command = bytearray()
        self._command_context = 0
        self._message: _Message | None = None
        self.busy = False
        self.stored = 0

    def p_data(self, left: int) -> None:
        """Take one P-DATA-TF PDU of `left` bytes: one or more PDVs (PS3.8 9.3.5), pieces of a command or a data set.

        Raises ProtocolFault, PeerLost, PeerSilent.
        """
        if not 6 <= left <= self._terms.our_pdu_bytes:
            raise ProtocolFault(AbortReason.INVALID_PARAMETER_VALUE)
        while left:
            if left < 6:
                raise ProtocolFault(AbortReason.INVALID_PARAMETER_VALUE)
            item, context_id, control = self._wire.pdv_header()
            left -= 6
            size = item - 2
            if not 0 <= size <= left or context_id not in self._terms.syntaxes:
                raise ProtocolFault(AbortReason.INVALID_PARAMETER_VALUE)
            left -= size
            if control & 1:
                self._command_piece(context_id, size, last=bool(control & 2))
            else:
                self._data_piece(context_id, size, last=bool(control & 2))

    def close(self) -> None:
        """The association ended: what is not whole goes."""
        if self._message is not None and self._message.arrival is not None:
            self._message.arrival.discard()

    def fail(self) -> None:
        """A fault of ours: the request under way, if any, is answered 0110H (processing failure)."""
        message, self._message = self._message, None
        if message is not None:
            if message.arrival is not None:
                message.arrival.discard()
            message.status = commands.PROCESSING_FAILURE
            self._answer(message)

    def _command_piece(self, context_id: int, size: int, *, last: bool) -> None:
        if self._message is not None:
            raise ProtocolFault(AbortReason.UNEXPECTED_PARAMETER)  # a data set is due; no asynchronous operations
        if self._command and context_id != self._command_context:
            raise ProtocolFault(AbortReason.UNEXPECTED_PARAMETER)
        if len(self._command) + size > commands.LONGEST_BYTES:
            raise ProtocolFault(AbortReason.INVALID_PARAMETER_VALUE)
        with self._lock:
            self.busy = True
        self._command += self._wire.exactly(size)
        self._command_context = context_id
        if not last:
            return
        try:
            command = commands.parse(bytes(self._command))
        except commands.MalformedCommand:
            raise ProtocolFault(AbortReason.INVALID_PARAMETER_VALUE) from None
        self._command.clear()
        if command.field & commands.RESPONSE:
            if command.field != commands.N_EVENT_REPORT_RQ | commands.RESPONSE or not self._reported:
                raise ProtocolFault(AbortReason.UNEXPECTED_PARAMETER)  # nothing was asked
            self._reported -= 1
        self._begin(_Message(context_id, command, time.perf_counter()))

    def _begin(self, message: _Message) -> None:
        """A command is whole: settle what will be answered, and, for an object that may be stored, open its file."""
        self._message = message
        command = message.command
        abstract, syntax = self._terms.syntaxes[message.context_id]
        if command.field == commands.C_STORE_RQ:
            if command.class_uid != abstract or abstract in (VERIFICATION, commitment.CLASS_UID):
                message.status = commands.CLASS_NOT_SUPPORTED
            elif not 0 < len(command.instance_uid) <= commands.LONGEST_UID:
                message.status = commands.INVALID_INSTANCE
            elif not command.has_data_set:
                message.status = commands.CANNOT_UNDERSTAND
            else:
                message.arrival = Arrival(self._arrivals, command=command, caller=self._terms.caller, syntax=syntax)
        elif command.field in _OF_COMMITMENT and abstract == commitment.CLASS_UID:
            message.status = self._status_of(command)
            message.asks = bytearray() if message.status == commands.SUCCESS else None
        elif command.field not in (commands.C_ECHO_RQ, commands.C_CANCEL_RQ) and not command.field & commands.RESPONSE:
            message.status = commands.UNRECOGNIZED_OPERATION
        if not command.has_data_set:
            self._finish(message)

    def _data_piece(self, context_id: int, size: int, *, last: bool) -> None:
        message = self._message
        if message is None or context_id != message.context_id:
            raise ProtocolFault(AbortReason.UNEXPECTED_PARAMETER)
        while size:
            fragment = self._wire.some(size)
            size -= len(fragment)
            if message.arrival is not None:
                message.arrival.write(fragment)
            elif message.asks is not None and len(message.asks) + len(fragment) <= commitment.LONGEST_BYTES:
                message.asks += fragment
            elif message.asks is not None:
                message.status, message.asks = commands.RESOURCE_LIMITATION, None
        if last:
            self._finish(message)

    def _finish(self, message: _Message) -> None:
        """A request is here with all its data: do it, answer, be ready for the next."""
        if message.arrival is not None:
            message.status = message.arrival.finish()
            message.began += self._hold_back(self._terms.caller.calling)  # that is the sender's time, not ours
        self._message = None
        asked = self._ask(message) if message.asks is not None else None
        self._answer(message)
        if asked is not None:
            self._report(asked, message.context_id)
        with self._lock:
            self.busy = False

    def _status_of(self, command: Command) -> int:
        """Whether a message is one that storage commitment has: one instance, one action (PS3.4 J.3.2, J.3.3)."""
        if command.instance_uid != commitment.INSTANCE_UID:
            return commands.NO_SUCH_INSTANCE
        if command.field == commands.N_ACTION_RQ:
            if self._commitments.when == OFF:
                return commands.UNRECOGNIZED_OPERATION
            if command.action != commitment.REQUEST:
                return commands.NO_SUCH_ACTION
        return commands.SUCCESS if command.has_data_set else commands.PROCESSING_FAILURE

    def _ask(self, message: _Message) -> Asked | None:
        """Hand a request for storage commitment on, or an archive's report; what to report on this association."""
        _, syntax = self._terms.syntaxes[message.context_id]
        data, asked = bytes(message.asks or b""), None
        try:
            if message.command.field == commands.N_EVENT_REPORT_RQ:
                message.status = self._commitments.heard(data, syntax)
            else:
                message.status, asked = self._commitments.take(self._terms.caller.calling, data, syntax)
        except (OSError, SQLAlchemyError) as error:
            log("commitment_failed", level=logging.ERROR, origin=origin(error))
            message.status, asked = commands.PROCESSING_FAILURE, None
        return asked

    def _report(self, asked: Asked, context_id: int) -> None:
        """N-EVENT-REPORT on this association: of an instance that is on our disk, and nothing waits for a decision."""
        _, syntax = self._terms.syntaxes[context_id]
        failures = self._commitments.failures(asked)
        event, dataset = commitment.report(asked, failures or {})
        self._reports += 1
        self._reported += 1
        command = commands.event_report(commitment.CLASS_UID, commitment.INSTANCE_UID, event, self._reports & 0xFFFF)
        longest = self._terms.peer_pdu_bytes
        self._wire.send(
            pdus.command_pdus(command, context_id=context_id, longest_pdu_bytes=longest)
            + pdus.command_pdus(
                commitment.encoded(dataset, syntax), context_id=context_id, longest_pdu_bytes=longest, data=True
            )
        )

    def _answer(self, message: _Message) -> None:
        command = message.command
        if command.field == commands.C_STORE_RQ:
            self._count(message)
        if command.field == commands.C_CANCEL_RQ or command.field & commands.RESPONSE:
            return  # nothing here can be cancelled, and it has no answer of its own (PS3.7 9.3.2.3); nor has an answer
        self._wire.send(
            pdus.command_pdus(
                commands.response(command, message.status),
                context_id=message.context_id,
                longest_pdu_bytes=self._terms.peer_pdu_bytes,
            )
        )

    def _count(self, message: _Message) -> None:
        self._metrics.received.labels(result=_RESULTS.get(message.status, "refused")).inc()
        self._metrics.store_seconds.observe(time.perf_counter() - message.began)
        if message.status == commands.SUCCESS and message.arrival is not None:
            self.stored += 1
            self._metrics.received_bytes.inc(message.arrival.size_bytes)
