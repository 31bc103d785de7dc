"""Who is signed in. Kept in memory: a restart signs everybody out.

The browser has a random token, this side its hash. A session ends after `IDLE_S` without a person's doing, after
`WHOLE_S` at the latest, and as soon as its account gets another password or role. What a provider takes away is not
told to us, so whoever signed in by it comes by there again after `VOUCHED_S`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from gateway.review.accounts import Account
from gateway.review.roles import GRANTS, May, Role

IDLE_S = 15 * 60.0
WHOLE_S = 8 * 3600.0
VOUCHED_S = 3600.0
MOST_OF_ACCOUNT = 4  # browsers at once; the oldest session ends


@dataclass(slots=True)
class Session:
    """`ident` names it in the ledger; `csrf` is asked for with every form. Times are monotonic seconds."""

    account: Account
    opened_at: float
    seen_at: float
    ident: str = field(default_factory=lambda: secrets.token_hex(8))
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def name(self) -> str:
        return self.account.name

    @property
    def role(self) -> Role:
        return self.account.role

    def may(self, what: May) -> bool:
        return what in GRANTS.get(self.role, frozenset())


class Sessions:
    """Safe to share between threads. `now` gives monotonic seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._open: dict[str, Session] = {}  # by the hash of their token
        self._key = secrets.token_bytes(32)

    def open(self, account: Account) -> tuple[str, Session]:
        """A new session and its token. Never takes a token that a browser brought along."""
        token = secrets.token_urlsafe(32)
        now = self._now()
        session = Session(account, now, now)
        with self._lock:
            self._open = {key: one for key, one in self._open.items() if not self._is_over(one, now)}
            mine = [key for key, one in self._open.items() if one.name == account.name]
            for key in mine[: max(0, len(mine) - MOST_OF_ACCOUNT + 1)]:
                del self._open[key]
            self._open[hashed(token)] = session
        return token, session

    def find(self, token: str, accounts: dict[str, Account], *, touch: bool) -> Session | None:
        """The session of a token. With `touch` a person did something, and its time begins anew."""
        with self._lock:
            key = hashed(token)
            session = self._open.get(key)
            if session is None:
                return None
            now = self._now()
            if self._is_over(session, now) or accounts.get(session.name) != session.account:
                del self._open[key]
                return None
            if touch:
                session.seen_at = now
            return session

    def close(self, token: str) -> None:
        with self._lock:
            self._open.pop(hashed(token), None)

    def proof(self, visit: str) -> str:
        """What the form of somebody who is not signed in yet must bring beside the cookie `visit`."""
        return hmac.new(self._key, visit.encode(), hashlib.sha256).hexdigest()

    @staticmethod
    def _is_over(session: Session, now: float) -> bool:
        whole_s = VOUCHED_S if session.account.is_vouched else WHOLE_S
        return now - session.seen_at > IDLE_S or now - session.opened_at > whole_s


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
