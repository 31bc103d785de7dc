"""How often somebody may try to sign in: after too many failures an account takes no password for a while. And how
often a token may call.

By account and token, not by address: behind a proxy everybody has the same one. Sessions that are open go on.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

FAILURES, WINDOW_S = 8, 15 * 60.0
MOST_NAMES = 10_000
CALLS, CALLS_WINDOW_S = 600, 60.0
HASHES_AT_ONCE, HASHES_WAITING = 2, 8  # each takes 64 MiB and a core; who waits for one holds a thread of the page


class Throttle:
    """Safe to share between threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._failed: OrderedDict[str, list[float]] = OrderedDict()
        self._hashing, self._waiting = BoundedSemaphore(HASHES_AT_ONCE), BoundedSemaphore(HASHES_WAITING)

    @contextmanager
    def hashing(self) -> Iterator[bool]:
        """Room for one password to be checked; False at once where too many wait already."""
        if not self._waiting.acquire(blocking=False):
            yield False
            return
        try:
            with self._hashing:
                yield True
        finally:
            self._waiting.release()

    def wait_s(self, name: str) -> float:
        """Seconds until this name may try again; 0 when it may now."""
        with self._lock:
            recent = self._recent(name)
            return max(0.0, recent[0] + WINDOW_S - self._now()) if len(recent) >= FAILURES else 0.0

    def begin(self, name: str) -> bool:
        """Count a try as failed before it is made, so that many at once do not pass as one. False: no try is left."""
        with self._lock:
            recent = self._recent(name)
            if len(recent) >= FAILURES:
                return False
            self._failed[name] = [*recent, self._now()]
            self._failed.move_to_end(name)
            while len(self._failed) > MOST_NAMES:
                self._failed.popitem(last=False)
            return True

    def succeeded(self, name: str) -> None:
        with self._lock:
            self._failed.pop(name, None)

    def _recent(self, name: str) -> list[float]:
        return [at for at in self._failed.get(name, []) if self._now() - at < WINDOW_S]


class Rate:
    """At most CALLS of one name in CALLS_WINDOW_S. Safe to share between threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._calls: dict[str, tuple[float, int]] = {}  # when the window of a name began, and its calls since then

    def wait_s(self, name: str) -> float:
        """Count a call; seconds until the next one may come, 0 when this one may."""
        with self._lock:
            now = self._now()
            began, count = self._calls.get(name, (now, 0))
            if now - began >= CALLS_WINDOW_S:
                began, count = now, 0
            if count >= CALLS:
                return began + CALLS_WINDOW_S - now
            self._calls[name] = (began, count + 1)
            return 0.0
