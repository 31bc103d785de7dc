"""Who may do what. What is not granted here is denied."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What an account is for. One account has one role."""

    VIEWER = "viewer"  # sees what waits and why
    REVIEWER = "reviewer"  # looks at originals and decides
    PRIVACY_OFFICER = "privacy-officer"  # and chooses another policy, closes and recalls releases, reads who did what
    VAULT_KEEPER = "vault-keeper"  # opens the vault where a policy names this role; sees no original
    ADMIN = "admin"  # reads who did what; sees no original and decides nothing


class May(StrEnum):
    """One thing that a page needs permission for."""

    QUEUE = "see what waits"
    LOOK = "look at originals"
    DECIDE = "decide about a held study"
    REPOLICY = "choose another policy"
    CLOSE = "close a release or ask for it back"
    POLICIES = "read the policies"
    AUDIT = "read who did what"
    OPEN_VAULT = "ask who is behind a pseudonym"


_SEES = frozenset({May.QUEUE, May.POLICIES})
_REVIEWS = _SEES | {May.LOOK, May.DECIDE}
GRANTS: dict[Role, frozenset[May]] = {
    Role.VIEWER: _SEES,
    Role.REVIEWER: _REVIEWS,
    Role.PRIVACY_OFFICER: _REVIEWS | {May.REPOLICY, May.CLOSE, May.AUDIT, May.OPEN_VAULT},
    Role.VAULT_KEEPER: _SEES | {May.OPEN_VAULT},
    Role.ADMIN: _SEES | {May.AUDIT},
}
