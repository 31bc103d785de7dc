"""The ledger: append-only, one JSON line per decision, each line chained to the one before by HMAC-SHA256.

A line holds keys, digests, codes, counts and receipts, never a value out of a data set. A changed, missing or reordered
line breaks the chain; a cut tail is found by the head file, which names the last line that was acknowledged. The key
makes the chain unforgeable by anybody who can only write the file.

Appending is idempotent by `decision`: a leg that a crash makes run twice writes its line once. Several processes may
append (a `scrub` beside `serve`): a file lock orders them.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from gateway.durable import writing
from gateway.errors import EnvironmentFault
from gateway.study import canonical_json

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """What `verify` found: `fault` is "" for a sound ledger, `line` counts from 1 and is 0 when none is to blame."""

    lines: int
    fault: str = ""
    line: int = 0

    @property
    def sound(self) -> bool:
        return not self.fault


class Ledger:
    """A ledger file with its head (`<name>.head`) and lock (`<name>.lock`) beside it."""

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = path
        self._key = key
        self._head = path.with_name(path.name + ".head")
        self._lock_path = path.with_name(path.name + ".lock")
        self._thread_lock = Lock()
        self._offset = 0  # bytes of whole lines already read
        self._count = 0
        self._last_mac = GENESIS
        self._decisions: set[str] = set()
        self.fault = ""  # the last one that `verify`, or reading on, came upon

    def append(self, event: str, decision: str, **fields: object) -> bool:
        """Write one line and sync it. False when this decision is in the ledger already.

        Raises EnvironmentFault when the ledger's tail is damaged: nothing may be decided that cannot be recorded.
        """
        with self._locked():
            self._catch_up()
            if decision in self._decisions:
                return False
            body = {
                "line": self._count + 1,
                "time": round(time.time(), 3),
                "event": event,
                "decision": decision,
                **fields,
                "previous": self._last_mac,
            }
            line = canonical_json({**body, "mac": self._mac(body)}) + b"\n"
            with open(self.path, "ab") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            self._take(line)
            self._write_head()
            return True

    def __len__(self) -> int:
        with self._locked():
            self._catch_up()
            return self._count

    def extent(self) -> tuple[int, bytes]:
        """Bytes of all whole lines now, and the contents of the head that names the last of them, for a backup."""
        with self._locked():
            self._catch_up()
            return self._offset, self._head.read_bytes() if self._head.exists() else b""

    def find(self, decision: str) -> dict[str, Any] | None:
        """The line of a decision, None when it was not taken yet. Reads the whole ledger when it was."""
        with self._locked():
            self._catch_up()
            if decision not in self._decisions:
                return None
        return next((line for line in self.lines() if line.get("decision") == decision), None)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every line as written; raises json.JSONDecodeError for a damaged one (use `verify` first)."""
        if self.path.exists():
            with open(self.path, "rb") as file:
                for line in file:
                    yield json.loads(line)

    def verify(self) -> LedgerReport:
        """Read everything anew. Finds one changed, missing, added or reordered line, and a cut tail.

        What is there at the beginning is judged, without keeping anybody from appending: a long ledger takes minutes.
        """
        with self._locked():
            size = self.path.stat().st_size if self.path.exists() else 0
            headed = self._head.exists()
            named = self._line_of_head() if headed else None
        report = self._verify(size, headed=headed, named=named)
        self.fault = report.fault
        return report

    def _verify(self, size: int, *, headed: bool, named: int | None) -> LedgerReport:
        previous, count = GENESIS, 0
        for number, line in enumerate(self._first(size), 1):
            fault = self._fault_of(line, number, previous)
            if fault:
                return LedgerReport(number, fault, number)
            previous, count = json.loads(line)["mac"], number
        if not headed:
            return LedgerReport(count, "the head file is missing", 0) if count else LedgerReport(0)
        if named is None:
            return LedgerReport(count, "the head file was changed")
        # One line more than the head is a crash between the two writes, not a forgery: the chain vouches for it.
        if count < named:
            return LedgerReport(count, f"{named - count} line(s) are missing at the end", count + 1)
        return LedgerReport(count)

    def _first(self, size: int) -> Iterator[bytes]:
        """Lines within the first `size` bytes."""
        if not size:
            return
        with open(self.path, "rb") as file:
            while size > 0 and (line := file.readline(size)):
                size -= len(line)
                yield line

    def _line_of_head(self) -> int | None:
        """The number of the last acknowledged line; None for a head that we did not write."""
        try:
            head = json.loads(self._head.read_bytes())
            sealed = hmac.compare_digest(str(head["mac"]), self._mac({"line": head["line"], "last": head["last"]}))
            return int(head["line"]) if sealed else None
        except (ValueError, KeyError, TypeError):
            return None

    def _fault_of(self, line: bytes, number: int, previous: str) -> str:
        try:
            body = json.loads(line)
            mac = body.pop("mac")
        except (ValueError, KeyError, AttributeError, TypeError):
            return "the line is not a ledger line"
        if not line.endswith(b"\n"):
            return "the line is not complete"
        if not hmac.compare_digest(str(mac), self._mac(body)):
            return "the line was changed"
        if body.get("previous") != previous or body.get("line") != number:
            return "a line before this one is missing, or the order was changed"
        return ""

    def _mac(self, body: object) -> str:
        return hmac.new(self._key, canonical_json(body), hashlib.sha256).hexdigest()

    def _write_head(self) -> None:
        head = {"line": self._count, "last": self._last_mac}
        with writing(self._head) as file:
            file.write(canonical_json({**head, "mac": self._mac(head)}))

    def _catch_up(self) -> None:
        """Read lines that other processes wrote since; drop a torn last line, which nobody was told of."""
        if not self.path.exists():
            if self._head.exists():
                self.fault = "the ledger is gone"
                raise EnvironmentFault(f"the ledger {self.path} is gone but its head remains; restore it from backup")
            return
        with open(self.path, "r+b") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    file.truncate(self._offset)
                    os.fsync(file.fileno())
                    break
                fault = self._fault_of(line, self._count + 1, self._last_mac)
                if fault:
                    self.fault = fault
                    raise EnvironmentFault(
                        f"the ledger is damaged at line {self._count + 1}: {fault}; "
                        "nothing is decided until it is restored (`deid-gateway ledger verify`)"
                    )
                self._take(line)

    def _take(self, line: bytes) -> None:
        body = json.loads(line)
        self._offset += len(line)
        self._count += 1
        self._last_mac = body["mac"]
        self._decisions.add(body["decision"])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._thread_lock:
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield
            finally:
                os.close(handle)
