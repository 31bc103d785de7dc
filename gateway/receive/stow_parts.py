"""The parts of one STOW-RS request, each kept as it comes: what a C-STORE of the same object would leave on disk.

Bytes go from the multipart parser (python-multipart) to the file; of a part no more than its file meta is in memory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser

from gateway.errors import GatewayError
from gateway.observe.metrics import Metrics
from gateway.receive import commands
from gateway.receive.arrival import Arrival, Arrivals
from gateway.receive.commands import C_STORE_RQ, Command
from gateway.receive.contexts import TRANSFER_SYNTAXES, Contexts
from gateway.receive.part10 import FileHead, NoFile, read_head
from gateway.receive.pdus import Caller

MOST_PARTS = 10_000
SYNTAX_NOT_SUPPORTED = 0xC122  # referenced transfer syntax not supported (PS3.18 Table I.2-2)


class Malformed(GatewayError):
    """Not a multipart body."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a part; UIDs as sent, "" when it said none. `status`: 0, or a failure reason (PS3.18 I.2)."""

    class_uid: str
    instance_uid: str
    status: int


class Parts:
    """Feed it the body, then `close` it. Not thread-safe. `study_uid`: the study all must belong to, "" for any."""

    def __init__(
        self,
        boundary: bytes,
        *,
        caller: Caller,
        study_uid: str,
        arrivals: Arrivals,
        contexts: Contexts,
        metrics: Metrics,
    ) -> None:
        self._caller = caller
        self._study_uid = study_uid
        self._arrivals = arrivals
        self._contexts = contexts
        self._metrics = metrics
        self._began = 0.0
        self._name = b""
        self._headers: dict[bytes, bytes] = {}
        self._head = bytearray()
        self._said: FileHead | None = None
        self._status: int | None = None  # of the part under way, None while it may still be stored
        self._arrival: Arrival | None = None
        self._open = False
        self.ended = False  # the closing boundary came
        self.outcomes: list[Outcome] = []
        callbacks: Any = {
            "on_part_begin": self._begin,
            "on_header_begin": self._header,
            "on_header_field": self._field,
            "on_header_value": self._value,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._all,
        }
        try:
            self._parser = MultipartParser(boundary, callbacks)
        except FormParserError:
            raise Malformed from None

    def feed(self, chunk: bytes) -> None:
        """The next bytes of the body. Raises Malformed."""
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise Malformed from None

    def close(self) -> None:
        """The body is over, whole or not: what is not whole goes."""
        if self._arrival is not None:
            self._arrival.discard()
            self._arrival = None
        if self._open:
            self._note(commands.PROCESSING_FAILURE)

    def _begin(self) -> None:
        if len(self.outcomes) >= MOST_PARTS:
            raise Malformed
        self._began = time.perf_counter()
        self._name, self._headers = b"", {}
        self._head.clear()
        self._said = self._status = self._arrival = None
        self._open = True

    def _header(self) -> None:
        self._name = b""

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end].lower()

    def _value(self, data: bytes, start: int, end: int) -> None:
        self._headers[self._name] = self._headers.get(self._name, b"") + data[start:end]

    def _headers_finished(self) -> None:
        kind = self._headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/dicom":
            self._status = commands.CANNOT_UNDERSTAND

    def _data(self, data: bytes, start: int, end: int) -> None:
        piece = memoryview(data)[start:end]
        if self._arrival is not None:
            self._arrival.write(piece)
        elif self._status is None:
            self._head += piece
            try:
                self._said = read_head(self._head)
            except NoFile:
                self._status = commands.CANNOT_UNDERSTAND
            if self._said is not None:
                self._store(self._said)

    def _store(self, said: FileHead) -> None:
        """The file meta is whole: settle whether the object may be stored, and open its file."""
        if not self._contexts.takes(said.class_uid):
            self._status = commands.CLASS_NOT_SUPPORTED
        elif said.transfer_syntax_uid not in TRANSFER_SYNTAXES:
            self._status = SYNTAX_NOT_SUPPORTED
        elif not 0 < len(said.instance_uid) <= commands.LONGEST_UID:
            self._status = commands.INVALID_INSTANCE
        else:
            command = Command(C_STORE_RQ, 0, True, said.class_uid, said.instance_uid)
            self._arrival = Arrival(
                self._arrivals,
                command=command,
                caller=self._caller,
                syntax=said.transfer_syntax_uid,
                study_uid=self._study_uid,
            )
            self._arrival.write(memoryview(bytes(self._head))[said.size_bytes :])
        self._head.clear()

    def _end(self) -> None:
        if self._arrival is not None:
            status = self._arrival.finish()
            if status == commands.SUCCESS:
                self._metrics.received_bytes.inc(self._arrival.size_bytes)
            self._arrival.discard()
            self._arrival = None
        else:
            status = commands.CANNOT_UNDERSTAND if self._status is None else self._status
        self._note(status)

    def _note(self, status: int) -> None:
        said = self._said
        self.outcomes.append(Outcome(said.class_uid if said else "", said.instance_uid if said else "", status))
        self._open = False
        results = {commands.SUCCESS: "success", commands.OUT_OF_RESOURCES: "out_of_resources"}
        self._metrics.received.labels(result=results.get(status, "refused")).inc()
        self._metrics.store_seconds.observe(time.perf_counter() - self._began)

    def _all(self) -> None:
        self.ended = True
