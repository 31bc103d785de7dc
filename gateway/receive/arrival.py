"""One object on its way in: `.part` behind our own file meta, fsync, rename, database row, and only then success.

The data set's bytes are written as they come, never decoded, never held in memory. Whatever goes wrong, the sender
gets a failure status and nothing half-written stays: success means on disk (DESIGN.md invariant 5).
"""

from __future__ import annotations

import logging
import os
import struct
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from gateway.database import Database
from gateway.observe import log, origin
from gateway.pseudonyms import Keys
from gateway.receive.commands import NOT_OF_THIS_STUDY, OUT_OF_RESOURCES, SUCCESS, Command
from gateway.receive.identity import Identity, identify
from gateway.receive.keeping import Keeping, Whole
from gateway.receive.pdus import Caller
from gateway.settings import Settings
from gateway.spool import Spool
from gateway.study import IMPLEMENTATION_CLASS_UID, IMPLEMENTATION_VERSION_NAME

LOOK_AT_DISK_EVERY_BYTES = 16 << 20
LOOK_AT_QUEUE_EVERY_S = 1.0


def file_meta(command: Command, caller: Caller, syntax: str) -> bytes:
    """Preamble, prefix and group 0002 (PS3.10 7.1), Explicit VR Little Endian. UIDs as sent: nothing is repaired."""

    def element(number: int, vr: bytes, value: bytes, pad: bytes) -> bytes:
        value += pad * (len(value) % 2)
        return struct.pack("<HH2sH", 2, number, vr, len(value)) + value

    body = (
        struct.pack("<HH2s2xI2s", 2, 1, b"OB", 2, b"\0\1")  # (0002,0001) File Meta Information Version
        + element(0x02, b"UI", command.class_uid.encode("latin-1"), b"\0")
        + element(0x03, b"UI", command.instance_uid.encode("latin-1"), b"\0")
        + element(0x10, b"UI", syntax.encode("ascii"), b"\0")
        + element(0x12, b"UI", IMPLEMENTATION_CLASS_UID.encode("ascii"), b"\0")
        + element(0x13, b"SH", IMPLEMENTATION_VERSION_NAME.encode("ascii"), b" ")
        + element(0x16, b"AE", caller.calling.encode("ascii"), b" ")
        + element(0x18, b"AE", caller.called.encode("ascii"), b" ")
    )
    return b"\0" * 128 + b"DICM" + struct.pack("<HH2sHI", 2, 0, b"UL", 4, len(body)) + body


class Arrivals:
    """Where objects go. Shared by all associations. `turn` is held while rows are written."""

    def __init__(
        self,
        *,
        settings: Settings,
        spool: Spool,
        database: Database,
        keys: Keys,
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._min_free_bytes = settings.min_free_bytes
        self._database = database
        self._max_waiting = settings.max_waiting_studies
        self._counted_at, self._too_many_wait = float("-inf"), False
        self.spool = spool
        self._keys = keys
        self._keeping = Keeping(spool, database, turn)

    def has_room(self) -> bool:
        """Whether the spool's disk is above the watermark. A disk that cannot be asked is full."""
        try:
            return self.spool.free_bytes() >= self._min_free_bytes
        except OSError:
            return False

    def is_behind(self) -> bool:
        """Whether more studies wait for the machine than may; asked of the tables once in LOOK_AT_QUEUE_EVERY_S. Tables
        that cannot be asked are behind.
        """
        if self._max_waiting and time.monotonic() - self._counted_at > LOOK_AT_QUEUE_EVERY_S:
            self._counted_at = time.monotonic()  # first, so that others do not ask meanwhile
            try:
                self._too_many_wait = self._database.count_waiting() > self._max_waiting
            except SQLAlchemyError:
                self._too_many_wait = True
        return self._too_many_wait

    def keep(self, identity: Identity | None, *, command: Command, part: Path, size_bytes: int) -> None:
        """Keep a synced part under its study's key. Raises OSError, SQLAlchemyError: then it was not kept."""
        if identity is None:  # kept all the same: intake holds it, a person looks at it
            identity = Identity("", "", 0)
            study_key = self._keys.opaque("unreadable", part.name)
        else:
            study_key = self._keys.opaque("study", identity.study_instance_uid)
        sop_key = self._keys.opaque("sop", identity.sop_instance_uid or command.instance_uid)
        self._keeping.keep(Whole(part, study_key, sop_key, size_bytes, identity.expected))


class Arrival:
    """The object of one C-STORE request, or of a part of STOW-RS, which may name the study it must belong to. After a
    failure bytes are taken off the wire and dropped.
    """

    def __init__(
        self, arrivals: Arrivals, *, command: Command, caller: Caller, syntax: str, study_uid: str = ""
    ) -> None:
        self._arrivals = arrivals
        self._study_uid = study_uid
        self._command = command
        self._syntax = syntax
        self._handle = -1
        self._part: Path | None = None
        self._status = SUCCESS
        self.size_bytes = 0  # of the data set
        self._looked_at_disk = 0
        if not arrivals.has_room():
            self._fail(None)
            return
        meta = file_meta(command, caller, syntax)
        self._meta_bytes = len(meta)
        try:
            self._part = arrivals.spool.new_part()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._handle = os.open(self._part, flags, 0o600)
            self._write(memoryview(meta))
        except OSError as error:
            self._fail(error)

    def _write(self, data: memoryview) -> None:
        while data:
            data = data[os.write(self._handle, data) :]

    def write(self, fragment: memoryview) -> None:
        """Append a piece of the data set. Never raises: a failure shows in `finish`."""
        if self._status != SUCCESS:
            return
        self.size_bytes += len(fragment)
        try:
            self._write(fragment)
        except OSError as error:
            self._fail(error)
            return
        if self.size_bytes - self._looked_at_disk >= LOOK_AT_DISK_EVERY_BYTES:
            self._looked_at_disk = self.size_bytes
            if not self._arrivals.has_room():
                self._fail(None)

    def finish(self) -> int:
        """The data set is whole: make it durable. Returns the status to answer; anything but SUCCESS left nothing."""
        if self._status != SUCCESS or self._part is None:
            return self._status
        try:
            os.fsync(self._handle)
            self._close()
            identity = identify(self._part, offset=self._meta_bytes, syntax=self._syntax)
            if self._study_uid and (identity is None or identity.study_instance_uid != self._study_uid):
                self.discard()
                self._status = NOT_OF_THIS_STUDY
                return self._status
            self._arrivals.keep(
                identity,
                command=self._command,
                part=self._part,
                size_bytes=self._meta_bytes + self.size_bytes,
            )
        except (OSError, SQLAlchemyError) as error:
            self._fail(error)
            return self._status
        self._part = None
        return SUCCESS

    def discard(self) -> None:
        """Drop what was written. Does nothing after a successful `finish`."""
        with suppress(OSError):
            self._close()
        if self._part is not None:
            with suppress(OSError):
                self._part.unlink(missing_ok=True)
            self._part = None

    def _close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def _fail(self, error: Exception | None) -> None:
        """Below the watermark (no error), or the disk or the database failed."""
        self._status = OUT_OF_RESOURCES
        self.discard()
        log(
            "store_failed",
            level=logging.ERROR,
            at="disk watermark" if error is None else "",
            origin=origin(error) if error is not None else "",
            status=self._status,
        )
