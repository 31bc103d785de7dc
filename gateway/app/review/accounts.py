"""Accounts of the review page and tokens of its API, each change with a line in the ledger: who may look at originals
is a decision.
"""

from __future__ import annotations

import time

from gateway.app.review.page import accounts_of, people_of, tokens_of
from gateway.errors import UsageError
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.review import Role
from gateway.review.accounts import require_account
from gateway.review.tokens import Token, scopes_of
from gateway.settings import Home, Settings


def put_account(home: Home, settings: Settings, name: str, role: Role, password: str, *, by: str) -> bool:
    """Add or change one; True when it is new. The ledger's line comes first. Raises UsageError."""
    require_account(name, password)
    if name in people_of(home).all():
        raise UsageError(
            f"somebody signs in as {name} by the provider; another name, or `review user remove {name}` first"
        )
    accounts = accounts_of(home)
    new = name not in accounts.all()
    event = "account_added" if new else "account_changed"
    _ledger(home, settings).append(event, f"account/{time.time_ns()}", actor=by, account=name, role=str(role))
    accounts.put(name, role, password)
    return new


def remove_account(home: Home, settings: Settings, name: str, *, by: str) -> bool:
    """An account with its tokens; or a name that a sign-in provider gave to somebody: then False, since whoever has it
    may come by the provider again. Raises UsageError for one that is not there.
    """
    accounts, people = accounts_of(home), people_of(home)
    local = name in accounts.all()
    if local:
        for token in tokens_of(home).all().values():
            if token.account == name:  # or it would count again for whoever gets the name next
                revoke_token(home, settings, token.name, by=by)
        accounts.remove(name)
    elif name in people.all():
        people.remove(name)
    else:
        raise UsageError(f"there is no account {name}; see `deid-gateway review user list`")
    _ledger(home, settings).append("account_removed", f"account/{time.time_ns()}", actor=by, account=name)
    return local


def new_token(
    home: Home, settings: Settings, name: str, account: str, scopes: list[str], days: int, *, by: str
) -> tuple[str, Token]:
    """A token's secret, to be shown once, and the token. The ledger's line comes first. Raises UsageError."""
    found = accounts_of(home).all().get(account)
    if found is None:
        raise UsageError(f"there is no account {account}; a token stands for one, see `deid-gateway review user list`")
    tokens = tokens_of(home)
    secret, token = tokens.make(name, account, scopes_of(scopes, found), days)
    told = {"token": name, "account": account, "scopes": sorted(token.scopes), "until": round(token.until)}
    _ledger(home, settings).append("token_made", f"token/{time.time_ns()}", actor=by, **told)
    tokens.keep(token)
    return secret, token


def revoke_token(home: Home, settings: Settings, name: str, *, by: str) -> None:
    """Raises UsageError for a name that is not there."""
    tokens = tokens_of(home)
    if name not in tokens.all():
        raise UsageError(f"there is no token {name}; see `deid-gateway review token list`")
    tokens.remove(name)
    _ledger(home, settings).append("token_revoked", f"token/{time.time_ns()}", actor=by, token=name)


def _ledger(home: Home, settings: Settings) -> Ledger:
    return Ledger(home.ledger, Keys(master_key(home, settings)).ledger)
