"""What all receiver processes of a gateway share: places for associations, the pace of senders, turns at writing.

A place is a locked byte of a file in memory. The kernel gives it back when its process dies, however it dies, so no
count can go wrong; locks of one process do not keep its own threads apart, and a set does that.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.reduction import DupFd
from typing import Any

from gateway.receive import peers
from gateway.receive.peers import Rejection
from gateway.settings import Settings

Place = tuple[int, ...]  # the bytes that one association holds

_DUE = struct.Struct("d")  # when a sender's next answer is due, in seconds of the monotonic clock
_TURN = 1 << 40  # far from all places: the byte of whoever writes rows
_PACES = _TURN + 1  # and, one for each sender, of whoever changes its pace


class Places:
    """Limits over processes. Thread-safe. `handle`: the file of the process that made it; None makes a new one."""

    def __init__(self, settings: Settings, handle: int | None = None) -> None:
        self.handle = os.memfd_create("receiver-places") if handle is None else handle
        weakref.finalize(self, os.close, self.handle)
        self._settings = settings
        self._all = settings.max_associations
        self._each = settings.max_associations_per_peer
        self._rate = settings.max_instances_per_s
        titles = sorted({peer.partition("@")[0] for peer in settings.allowed_peers})
        self._number = {title: number for number, title in enumerate(titles)}
        size = _DUE.size * max(1, len(titles))
        os.ftruncate(self.handle, size)
        self._due = mmap.mmap(self.handle, size)
        self._lock = threading.Lock()
        self._held: set[int] = set()

    def __reduce__(self) -> tuple[object, ...]:
        """To a process that is being started goes the file itself."""
        return _received, (self._settings, DupFd(self.handle))

    def take(self, title: str) -> Place | Rejection:
        """A place for an association of this calling AE title, or why there is none."""
        with self._lock:
            place = self._first(range(self._all))
            if place is None:
                return peers.TOO_MANY
            if not self._each:
                return (place,)
            begin = self._all + self._number[title] * self._each
            own = self._first(range(begin, begin + self._each))
            if own is None:
                self._free(place)
                return peers.TOO_MANY_OF_PEER
            return place, own

    def give_back(self, place: Place) -> None:
        with self._lock:
            for byte in place:
                self._free(byte)

    def hold_back(self, title: str) -> float:
        """Wait until this sender may be told that its instance is kept: it sends no more before. The seconds waited."""
        if not self._rate:
            return 0.0
        number = self._number[title]
        with self._lock, self._locked(_PACES + number):
            now = time.monotonic()
            due: float = max(now, *_DUE.unpack_from(self._due, number * _DUE.size))
            _DUE.pack_into(self._due, number * _DUE.size, due + 1 / self._rate)
        time.sleep(due - now)
        return due - now

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Writing rows, one process at a time: SQLite's own waiting sleeps for milliseconds between looks."""
        with self._locked(_TURN):
            yield

    @contextmanager
    def _locked(self, byte: int) -> Iterator[None]:
        fcntl.lockf(self.handle, fcntl.LOCK_EX, 1, byte)
        try:
            yield
        finally:
            fcntl.lockf(self.handle, fcntl.LOCK_UN, 1, byte)

    def _first(self, places: Iterable[int]) -> int | None:
        for byte in places:
            if byte in self._held:
                continue
            try:
                fcntl.lockf(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except BlockingIOError:
                continue
            self._held.add(byte)
            return byte
        return None

    def _free(self, byte: int) -> None:
        self._held.discard(byte)
        fcntl.lockf(self.handle, fcntl.LOCK_UN, 1, byte)


def _received(settings: Settings, handle: Any) -> Places:
    return Places(settings, handle.detach())
