"""Who may approve policies: HOME/approvers.yaml, written by commands and vouched for by the ledger.

    jane-doe: {key: "base64 of a public key", roles: [privacy-officer]}

A line that somebody wrote into the file by hand counts for nothing: the ledger, whose key that person may not have,
must name the same key and the same roles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gateway.durable import writing
from gateway.errors import PolicyError, UsageError
from gateway.policy.approvals import key_id, public_text, read_public
from gateway.policy.document import Document, read_document
from gateway.policy.names import name_fault

FILE = "approvers.yaml"
_HEAD = (
    "# Who may approve policies. Written by `deid-gateway policy signer new|add|remove`; the ledger vouches for it.\n"
)


@dataclass(frozen=True, slots=True)
class Approver:
    """Somebody who may sign, in these roles (sorted)."""

    name: str
    public: Ed25519PublicKey
    roles: tuple[str, ...]

    @property
    def key(self) -> str:
        """The id of the key."""
        return key_id(self.public)


def approver(name: str, public: Ed25519PublicKey, roles: tuple[str, ...]) -> Approver:
    """Raises UsageError for a name or role that is none."""
    for kind, word in (("the name of a signer", name), *(("a role", role) for role in roles)):
        says = name_fault(kind, word)
        if says:
            raise UsageError(says)
    if not roles:
        raise UsageError("a signer needs a role (--role), for example privacy-officer")
    return Approver(name, public, tuple(sorted(set(roles))))


def read_approvers(path: Path) -> dict[str, Approver]:
    """Everybody in the file by name; {} when there is no file. Raises PolicyError with every fault."""
    if not path.exists():
        return {}
    document = read_document(path)
    found: dict[str, Approver] = {}
    for name, entry in document.data.items():
        one = _entry(document, name, entry)
        twin = next((other for other in found.values() if one is not None and other.key == one.key), None)
        if twin is not None:
            document.fault((name,), f"the key of {twin.name} again", "a key belongs to one person")
        elif one is not None:
            found[name] = one
    if document.faults:
        raise PolicyError(document.faults)
    return found


def _entry(document: Document, name: str, entry: object) -> Approver | None:
    """One line of the file; None, and a fault recorded, when it is none."""
    says = "a signer is name: {key: …, roles: [...]}"
    if not isinstance(entry, dict) or entry.keys() != {"key", "roles"} or not isinstance(entry["roles"], list):
        document.fault((name,), says)
        return None
    try:
        return approver(name, read_public(str(entry["key"])), tuple(map(str, entry["roles"])))
    except UsageError as error:
        document.fault((name,), str(error), says)
        return None


def write_approvers(path: Path, approvers: Mapping[str, Approver]) -> None:
    """Replace the file."""
    lines = [
        f"{name}: {{key: {json.dumps(public_text(one.public))}, roles: [{', '.join(one.roles)}]}}\n"
        for name, one in sorted(approvers.items())
    ]
    with writing(path) as file:
        file.write((_HEAD + "".join(lines)).encode())
