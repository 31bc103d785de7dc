"""Sign-off: which policies are approved, by whom, and whether that can be believed.

A signed statement lies in HOME/approvals/<digest>.jsonl. It counts when its signature is of the key that approvers.yaml
lists for its signer, in a role that the signer has, over this very digest and name; when the ledger has it; and when
no revocation came after it. The ledger also vouches for the list of signers and for every revocation, so that taking a
line out of a file approves nothing. A damaged ledger approves nothing either.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.app.policy.approval_records import (
    ADDED,
    APPROVED,
    REMOVED,
    REVOKED,
    Record,
    Vouched,
    counts,
    fault_of,
    vouched_by,
)
from gateway.app.policy.approvers import FILE, Approver, read_approvers, write_approvers
from gateway.durable import make_folder, sync_folder
from gateway.errors import EnvironmentFault, Fault, PolicyError, UsageError
from gateway.ledger import Ledger
from gateway.policy import Policy, PolicySet
from gateway.policy.approvals import Act, Signed, Statement, key_id, read_line, sign
from gateway.policy.frozen import FrozenMap
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, Settings

FOLDER = "approvals"
UNCONFIRMED = "TO BE CONFIRMED"  # what starters and shipped policies say where a name belongs


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a policy is approved. `by` are the signers whose approvals count, `reason` why that is not enough."""

    approved: bool
    reason: str
    by: tuple[str, ...]
    needed: int


class Approvals:
    """The approvals of a home."""

    def __init__(self, home: Home, settings: Settings) -> None:
        """Raises EnvironmentFault without a master key."""
        self._folder = home.root / FOLDER
        self._approvers = home.root / FILE
        self._settings = settings
        self._ledger = Ledger(home.ledger, Keys(master_key(home, settings)).ledger)

    # -- what holds -------------------------------------------------------------------------------------------------

    def approved(self, policy: Policy) -> Standing:
        """Whether enough people approved this policy, as it is. Raises PolicyError for a damaged approvers.yaml."""
        return self.overview([policy])[0][0]

    def records(self, policy: Policy) -> list[Record]:
        """Every line about this policy, in order, and what is wrong with it."""
        return self.overview([policy])[0][1]

    def overview(self, policies: Iterable[Policy]) -> list[tuple[Standing, list[Record]]]:
        """Both of each policy. The ledger is read once, each line of it checked: 2.5 s for 100 000."""
        approvers, vouched = read_approvers(self._approvers), vouched_by(self._ledger)
        found = []
        for policy in policies:
            records = self._records(policy, approvers, vouched)
            found.append((self._standing(policy, records, vouched), records))
        return found

    def only_approved(self, policies: PolicySet) -> PolicySet:
        """The policies that are approved. Raises PolicyError: a fault for each that routes ask for and that is not."""
        standings = {
            name: standing
            for name, (standing, _) in zip(policies.policies, self.overview(policies.policies.values()), strict=True)
        }
        asked = {target.policy for route in policies.routes.routes for target in route.targets}
        faults = [_unapproved(name, one) for name, one in standings.items() if name in asked and not one.approved]
        if faults:
            raise PolicyError(faults)
        sound = {name: policy for name, policy in policies.policies.items() if standings[name].approved}
        return replace(policies, policies=FrozenMap(sound))

    def _standing(self, policy: Policy, records: Sequence[Record], vouched: Vouched) -> Standing:
        needed = max(self._settings.approvers_needed, 2 if policy.needs_two else 1)
        by = {one.signed.statement.by for one in records if one.signed and counts(one)}
        if vouched.fault:
            return Standing(False, vouched.fault, (), needed)
        if len(by) >= needed:
            return Standing(True, "", tuple(sorted(by)), needed)
        faults = sorted({one.fault for one in records if one.fault})
        says = (
            f"{len(by)} of {needed} people approved this digest" if by or needed > 1 else "nobody approved this digest"
        )
        return Standing(False, "; ".join([says, *faults]), tuple(sorted(by)), needed)

    def _records(self, policy: Policy, approvers: dict[str, Approver], vouched: Vouched) -> list[Record]:
        path = self._path(policy.digest)
        lines = path.read_bytes().splitlines() if path.exists() else []
        read = [read_line(line) for line in lines if line.strip()]
        return [Record(one, fault_of(one, policy, approvers, vouched)) for one in read]

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}.jsonl"

    # -- what is done -----------------------------------------------------------------------------------------------

    def say(self, act: Act, policy: Policy, *, by: str, role: str, reason: str, private: Ed25519PrivateKey) -> Signed:
        """Sign and store an approval or a revocation of a policy, and write it to the ledger.

        Raises UsageError for a signer who is not listed, has another key or not this role, and for an approval of a
        policy in which a name is still to be confirmed; EnvironmentFault for a damaged ledger.
        """
        vouched = vouched_by(self._ledger)
        if vouched.fault:
            raise EnvironmentFault(vouched.fault)
        listed = read_approvers(self._approvers).get(by)
        if listed is None or vouched.signers.get(by) != (listed.key, listed.roles):
            raise UsageError(f"{by} is no signer; `policy signer add` lists one, `policy signer list` shows them")
        if key_id(private.public_key()) != listed.key:
            raise UsageError(f"this is not the key of {by}; name the right file with --key")
        if role not in listed.roles:
            raise UsageError(f"{by} signs as {' or '.join(listed.roles)}, not as {role}")
        open_names = [one for one in policy.gate.not_assessed if UNCONFIRMED in one.approver]
        if act == "approve" and open_names:
            raise UsageError(
                f"{len(open_names)} entries of gate.not_assessed say {UNCONFIRMED}; write there who answers for them"
            )
        date = datetime.now(UTC).isoformat(timespec="microseconds")
        statement = Statement(act, policy.name, policy.digest, role, by, listed.key, reason, date)
        signed = sign(statement, private)
        facts = {
            "policy": policy.name,
            "policy_digest": policy.digest,
            "statement": statement.id,
            "actor": by,
            "role": role,
            "reason_given": reason,
        }
        with self._locked():
            if act == "revoke":  # it holds from the ledger alone; an approval needs both
                self._ledger.append(REVOKED, f"{REVOKED}/{statement.id}", **facts)
                self._append(policy.digest, signed)
            else:
                self._append(policy.digest, signed)
                self._ledger.append(APPROVED, f"{APPROVED}/{statement.id}", **facts)
        return signed

    def signers(self) -> list[tuple[Approver, bool]]:
        """Everybody who is listed, and whether the ledger says the same. Raises PolicyError."""
        vouched = vouched_by(self._ledger)
        listed = read_approvers(self._approvers)
        return [(one, vouched.signers.get(name) == (one.key, one.roles)) for name, one in sorted(listed.items())]

    def add_signer(self, one: Approver, *, actor: str, reason: str) -> None:
        """List somebody. Raises UsageError for a name or key that is listed."""
        with self._locked():
            listed = read_approvers(self._approvers)
            if one.name in listed:
                raise UsageError(f"{one.name} is listed already; `policy signer remove {one.name}` first")
            twin = next((other.name for other in listed.values() if other.key == one.key), "")
            if twin:
                raise UsageError(f"this is the key of {twin}; everybody needs a key of their own")
            write_approvers(self._approvers, {**listed, one.name: one})
            facts = {"signer": one.name, "key": one.key, "roles": list(one.roles), "actor": actor}
            self._ledger.append(ADDED, f"{ADDED}/{time.time_ns()}", **facts, reason_given=reason)

    def remove_signer(self, name: str, *, actor: str, reason: str) -> None:
        """Strike somebody off: what only they approved is no longer approved. Raises UsageError."""
        with self._locked():
            listed = read_approvers(self._approvers)
            if name not in listed:
                raise UsageError(f"{name} is not listed; `policy signer list` shows who is")
            facts = {"signer": name, "key": listed[name].key, "actor": actor, "reason_given": reason}
            self._ledger.append(REMOVED, f"{REMOVED}/{time.time_ns()}", **facts)
            write_approvers(self._approvers, {key: one for key, one in listed.items() if key != name})

    def _append(self, digest: str, signed: Signed) -> None:
        path = self._path(digest)
        new = not path.exists()
        with open(path, "a+b") as file:
            os.fchmod(file.fileno(), 0o600)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            torn = size > 0 and file.read(1) != b"\n"  # a crash left half a line: it stays by itself
            file.write((b"\n" if torn else b"") + signed.to_line())
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync_folder(path.parent)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_folder(self._folder)
        handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def require_approved(home: Home, settings: Settings, policy: Policy) -> None:
    """Raise PolicyError where the site loads only approved policies (DEID_REQUIRE_APPROVAL) and this one is not."""
    if not settings.require_approval:
        return
    standing = Approvals(home, settings).approved(policy)
    if not standing.approved:
        raise PolicyError([_unapproved(policy.name, standing)])


def _unapproved(name: str, standing: Standing) -> Fault:
    return Fault(f"policy {name}", 0, f"is not approved: {standing.reason}", f"`deid-gateway policy approve {name} …`")
