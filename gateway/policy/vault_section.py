"""The `vault:` part of a policy: who is behind a pseudonym is kept, encrypted, for the roles named here.

    vault: {roles: [privacy-officer], days: 365}

Without it nothing leads back but the hospital's own files and the key.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gateway.policy.document import Faulty


def _role(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,62}", value):
        raise Faulty("a role is 1 to 63 small letters, digits, dots and dashes", "for example privacy-officer")
    return value


def _once(roles: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(roles)) < len(roles):
        raise Faulty("a role is here twice", "remove one of them")
    return tuple(sorted(roles))


class VaultPolicy(BaseModel):
    """Roles that may open what the vault keeps under this policy, and how many days it is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    roles: Annotated[tuple[Annotated[str, AfterValidator(_role)], ...], Field(min_length=1), AfterValidator(_once)]
    days: Annotated[int, Field(ge=1, le=36600)] = 365
