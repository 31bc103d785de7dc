"""What of the signed statements about a policy counts: the ledger vouches for signers, approvals and revocations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.app.policy.approvers import Approver
from gateway.ledger import Ledger
from gateway.policy import Policy
from gateway.policy.approvals import Signed

ADDED, REMOVED = "policy_signer_added", "policy_signer_removed"
APPROVED, REVOKED = "policy_approved", "policy_approval_revoked"
_OURS = re.compile(rb'"event": ?"policy_')


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a file of approvals. `fault` is "" when it counts (an approval) or counted (a revocation)."""

    signed: Signed | None
    fault: str = ""


@dataclass(slots=True)
class Vouched:
    """What the ledger says: signers by name (key, roles), approvals by digest (ids of statements)."""

    fault: str = ""
    signers: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    approvals: dict[str, dict[str, str]] = field(default_factory=dict)  # signer by id of the statement, by digest
    undone: set[str] = field(default_factory=set)  # ids that were revoked, or whose signer was struck off

    def take(self, line: dict[str, Any]) -> None:
        match line["event"]:
            case "policy_signer_added":
                self.signers[line["signer"]] = (line["key"], tuple(line["roles"]))
            case "policy_signer_removed":
                self.signers.pop(line["signer"], None)
                for given in self.approvals.values():
                    self._undo(given, {id_ for id_, by in given.items() if by == line["signer"]})
            case "policy_approved":
                self.approvals.setdefault(line["policy_digest"], {})[line["statement"]] = line["actor"]
            case "policy_approval_revoked":
                given = self.approvals.get(line["policy_digest"], {})
                self._undo(given, set(given))

    def _undo(self, given: dict[str, str], ids: set[str]) -> None:
        self.undone |= ids
        for id_ in ids:
            del given[id_]


def counts(record: Record) -> bool:
    return record.signed is not None and record.signed.statement.act == "approve" and not record.fault


def fault_of(signed: Signed | None, policy: Policy, approvers: Mapping[str, Approver], vouched: Vouched) -> str:
    """Why a line does not count, "" when it does."""
    if signed is None:
        return "a line is no signed statement"
    said = signed.statement
    listed = approvers.get(said.by)
    if listed is None or vouched.signers.get(said.by) != (listed.key, listed.roles):
        return "a line is signed by somebody who is not listed"
    if said.key != listed.key or not signed.is_by(listed.public):
        return f"a line of {said.by} was changed after it was signed, or signed with another key"
    if (said.policy, said.digest) != (policy.name, policy.digest):
        return f"a line of {said.by} is about another policy"
    if said.role not in listed.roles:
        return f"{said.by} no longer has the role {said.role}"
    if said.act != "approve":
        return ""
    if said.id in vouched.undone:
        return f"the approval of {said.by} was revoked"
    if said.id not in vouched.approvals.get(policy.digest, {}):
        return f"the ledger does not know an approval of {said.by}"
    return ""


def vouched_by(ledger: Ledger) -> Vouched:
    """Read a ledger anew, every line of it checked."""
    report = ledger.verify()
    if not report.sound:
        return Vouched(fault=f"the ledger is damaged: {report.fault}; restore it (`deid-gateway ledger verify`)")
    vouched = Vouched()
    if ledger.path.exists():
        with open(ledger.path, "rb") as file:
            for line in file:
                if _OURS.search(line):  # few of many: the rest is not parsed
                    vouched.take(json.loads(line))
    return vouched
