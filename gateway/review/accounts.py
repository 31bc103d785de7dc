"""Local accounts: name, role and an Argon2id hash of the password, in one file of mode 0600.

The file is read at every request, so that an account that was removed, or got another role, is known at once.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gateway.errors import UsageError
from gateway.review.private_file import changing, read_private, write_private
from gateway.review.roles import Role

VOUCHED = "oidc:"  # stands in place of a password's hash
LEAST_LENGTH, MOST_LENGTH = 12, 256


@dataclass(frozen=True, slots=True)
class Account:
    """`digest` is an Argon2id hash in PHC form; for whom a provider vouches, `oidc:` and the SHA-256 of the subject."""

    name: str
    role: Role
    digest: str

    @property
    def is_vouched(self) -> bool:
        return self.digest.startswith(VOUCHED)


def require_account(name: str, password: str) -> None:
    """Raise UsageError for a name or a password that no account may have."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,62}", name):
        raise UsageError("a name is 2 to 63 small letters, digits, dots and dashes")
    if not LEAST_LENGTH <= len(password) <= MOST_LENGTH or name in password.casefold():
        raise UsageError(
            f"a password has {LEAST_LENGTH} to {MOST_LENGTH} characters, and the name of its account is not in it"
        )
    if len(set(password)) < LEAST_LENGTH // 2:
        raise UsageError(f"a password has at least {LEAST_LENGTH // 2} different characters")


class Accounts:
    """The accounts of a home."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> dict[str, Account]:
        """By name. Raises EnvironmentFault for a file that is not ours alone, or not whole: then nobody gets in."""
        return read_private(
            self.path,
            lambda name, body: Account(name, Role(body["role"]), str(body["digest"])),
            "the accounts of the review page",
            "remove it and add the accounts again with `deid-gateway review user add`",
        )

    def put(self, name: str, role: Role, password: str) -> None:
        """Add an account, or give it another role and password. Raises UsageError."""
        require_account(name, password)
        account = Account(name, role, self._hasher.hash(password))
        with changing(self.path):
            self._write({**self.all(), name: account})

    def remove(self, name: str) -> None:
        """What is not there is gone already."""
        with changing(self.path):
            self._write({known: account for known, account in self.all().items() if known != name})

    def verify(self, name: str, password: str) -> Account | None:
        """The account when the password is right. Takes as long for a name that is not there."""
        nobodys, account = self._nobodys, self.all().get(name)
        try:
            self._hasher.verify(account.digest if account else nobodys, password[: MOST_LENGTH + 1])
        except (VerificationError, InvalidHashError):
            return None
        return account

    def _write(self, accounts: dict[str, Account]) -> None:
        write_private(
            self.path, {name: {"role": str(one.role), "digest": one.digest} for name, one in accounts.items()}
        )

    @cached_property
    def _hasher(self) -> PasswordHasher:
        return PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=1)  # RFC 9106 4, second choice

    @cached_property
    def _nobodys(self) -> str:
        return self._hasher.hash(secrets.token_urlsafe())
