"""Tokens of the API: a random secret that stands for an account, for a time, within scopes.

A token can do what its account's role may and its scopes name, never more; it is no person beside its account, so the
two-person rule counts both as one. The file has the SHA-256 of each secret (256 random bits need no slow hash) and is
read at every call: what was revoked, or has lost its account, is out at once. Removing an account removes its tokens,
so that they do not count for whoever gets the name next.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gateway.errors import UsageError
from gateway.review.accounts import Account, Accounts
from gateway.review.private_file import changing, read_private, write_private
from gateway.review.roles import GRANTS, May

PREFIX = "deid_"  # so that scanners of source code know one when they see it
MOST_DAYS = 366
DAY_S = 86400.0


class Scope(StrEnum):
    """What a token is for. Each call of the API names one."""

    STUDIES_READ = "studies:read"
    ORIGINALS_READ = "originals:read"
    DECISIONS_WRITE = "decisions:write"
    RELEASES_READ = "releases:read"
    RELEASES_WRITE = "releases:write"
    POLICIES_READ = "policies:read"
    AUDIT_READ = "audit:read"

    @property
    def writes(self) -> bool:
        return self.value.endswith(":write")


NEEDS = {
    Scope.STUDIES_READ: May.QUEUE,
    Scope.ORIGINALS_READ: May.LOOK,
    Scope.DECISIONS_WRITE: May.DECIDE,
    Scope.RELEASES_READ: May.QUEUE,
    Scope.RELEASES_WRITE: May.CLOSE,
    Scope.POLICIES_READ: May.POLICIES,
    Scope.AUDIT_READ: May.AUDIT,
}


@dataclass(frozen=True, slots=True)
class Token:
    """`digest` is the SHA-256 of the secret; times are UTC seconds."""

    name: str
    account: str
    scopes: frozenset[Scope]
    digest: str
    made_at: float
    until: float

    @property
    def ident(self) -> str:
        """Names it in the ledger, as a sign-in is named."""
        return self.digest[:16]


def scopes_of(words: list[str], account: Account) -> frozenset[Scope]:
    """Raises UsageError for no scope, one that there is not, and one that the account's role cannot use."""
    unknown = [word for word in words if word not in set(Scope)]
    if unknown or not words:
        raise UsageError(f"name scopes with --scope; one of {', '.join(Scope)}")
    found = frozenset(map(Scope, words))
    idle = sorted(scope for scope in found if NEEDS[scope] not in GRANTS[account.role])
    if idle:
        raise UsageError(f"the role {account.role} has no use for {', '.join(idle)}; leave it out")
    return found


class Tokens:
    """The tokens of a home."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> dict[str, Token]:
        """By name. Raises EnvironmentFault for a file that is not ours alone, or not whole."""
        return read_private(
            self.path,
            lambda name, body: Token(
                name,
                str(body["account"]),
                frozenset(map(Scope, body["scopes"])),
                str(body["digest"]),
                float(body["made_at"]),
                float(body["until"]),
            ),
            "the tokens of the API",
            "remove it and make the tokens again with `deid-gateway review token new`",
        )

    def make(self, name: str, account: str, scopes: frozenset[Scope], days: int) -> tuple[str, Token]:
        """A new token and its secret, told once and kept nowhere; it counts from `keep` on. Raises UsageError."""
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,62}", name):
            raise UsageError("a name is 2 to 63 small letters, digits, dots and dashes")
        if name in self.all():
            raise UsageError(f"there is a token {name}; revoke it first, or choose another name")
        if not 1 <= days <= MOST_DAYS:
            raise UsageError(f"a token lives 1 to {MOST_DAYS} days; make another before it ends")
        secret, now = PREFIX + secrets.token_urlsafe(32), time.time()
        return secret, Token(name, account, scopes, hashed(secret), now, now + days * DAY_S)

    def keep(self, token: Token) -> None:
        with changing(self.path):
            self._write({**self.all(), token.name: token})

    def remove(self, name: str) -> None:
        """What is not there is gone already."""
        with changing(self.path):
            self._write({known: token for known, token in self.all().items() if known != name})

    def find(self, secret: str, accounts: Accounts, now: float) -> tuple[Token, Account] | None:
        """The token with its account as it is now; None for one that is unknown, over, or has no account any more."""
        digest = hashed(secret)
        token = next((one for one in self.all().values() if secrets.compare_digest(one.digest, digest)), None)
        account = accounts.all().get(token.account) if token is not None else None
        return None if token is None or account is None or token.until <= now else (token, account)

    def _write(self, tokens: dict[str, Token]) -> None:
        write_private(
            self.path,
            {
                name: {
                    "account": token.account,
                    "scopes": sorted(token.scopes),
                    "digest": token.digest,
                    "made_at": token.made_at,
                    "until": token.until,
                }
                for name, token in tokens.items()
            },
        )


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
