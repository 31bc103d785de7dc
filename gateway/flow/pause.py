"""A moment in which no leg changes files of the home, across all processes: what a backup is taken in.

A turnstile of two file locks. A leg passes the gate and then holds the room, shared; who wants the room alone closes
the gate first, so that those inside come out and nobody follows. Both vanish with the process that holds them.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.errors import EnvironmentFault

_LOOK_S = 0.05


class Pause:
    """Of one home; `lock` is where its engine's lock lies."""

    def __init__(self, lock: Path) -> None:
        self._gate = lock.with_name("pause.gate.lock")
        self._room = lock.with_name("pause.lock")

    @contextmanager
    def working(self) -> Iterator[None]:
        """Change files of the home. Waits while somebody has it alone."""
        with _held(self._gate, fcntl.LOCK_SH, float("inf")):
            room = _take(self._room, fcntl.LOCK_SH, float("inf"))
        try:
            yield
        finally:
            os.close(room)

    @contextmanager
    def alone(self, *, patience_s: float) -> Iterator[None]:
        """Nobody else changes files. Raises EnvironmentFault when the work does not come to rest for so long."""
        with _held(self._gate, fcntl.LOCK_EX, patience_s), _held(self._room, fcntl.LOCK_EX, patience_s):
            yield


@contextmanager
def _held(path: Path, how: int, patience_s: float) -> Iterator[None]:
    handle = _take(path, how, patience_s)
    try:
        yield
    finally:
        os.close(handle)


def _take(path: Path, how: int, patience_s: float) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    give_up = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                os.close(handle)
                raise EnvironmentFault(
                    f"the work did not come to rest within {patience_s:.0f} s; wait longer (--patience), or try again "
                    "when less is under way"
                ) from None
            time.sleep(_LOOK_S)
        else:
            return handle
