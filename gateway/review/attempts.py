"""Sign-ins that are at a provider and not back yet. In memory: after a restart they begin again."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from gateway.review.provider import Attempt
from gateway.review.sessions import hashed

LASTS_S, MOST_AT_ONCE = 600.0, 2000


class Attempts:
    """Sign-ins under way, by the hash of their browser's cookie. Each comes back once. Safe between threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._open: OrderedDict[str, Attempt] = OrderedDict()

    def begin(self, redirect_uri: str) -> tuple[str, Attempt]:
        mark, attempt = secrets.token_urlsafe(32), Attempt(self._now(), redirect_uri)
        with self._lock:
            self._open[hashed(mark)] = attempt
            while len(self._open) > MOST_AT_ONCE:
                self._open.popitem(last=False)
        return mark, attempt

    def take(self, mark: str, state: str) -> Attempt | None:
        """The attempt of this browser with this state; whatever comes, it is over."""
        with self._lock:
            attempt = self._open.pop(hashed(mark), None)
        if attempt is None or self._now() - attempt.began > LASTS_S:
            return None
        return attempt if hmac.compare_digest(attempt.state.encode(), state.encode()) else None
