"""Accounts of the review page, each change with a line in the ledger: who may look at originals is a decision."""

from __future__ import annotations

import time

from gateway.app.review.page import accounts_of
from gateway.errors import UsageError
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.review import Role
from gateway.review.accounts import require_account
from gateway.settings import Home, Settings


def put_account(home: Home, settings: Settings, name: str, role: Role, password: str, *, by: str) -> bool:
    """Add or change one; True when it is new. The ledger's line comes first. Raises UsageError."""
    require_account(name, password)
    accounts = accounts_of(home)
    new = name not in accounts.all()
    event = "account_added" if new else "account_changed"
    _ledger(home, settings).append(event, f"account/{time.time_ns()}", actor=by, account=name, role=str(role))
    accounts.put(name, role, password)
    return new


def remove_account(home: Home, settings: Settings, name: str, *, by: str) -> None:
    """Raises UsageError for a name that is not there."""
    accounts = accounts_of(home)
    if name not in accounts.all():
        raise UsageError(f"there is no account {name}; see `deid-gateway review user list`")
    accounts.remove(name)
    _ledger(home, settings).append("account_removed", f"account/{time.time_ns()}", actor=by, account=name)


def _ledger(home: Home, settings: Settings) -> Ledger:
    return Ledger(home.ledger, Keys(master_key(home, settings)).ledger)
