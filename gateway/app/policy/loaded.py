"""The loaded policies, and the snapshots that let a study finish under the policy digest it began with."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from gateway.app.policy.approvals import Approvals
from gateway.app.policy.registry import REGISTRY
from gateway.durable import writing
from gateway.errors import Hold, UsageError
from gateway.policy import Policy, PolicySet, Registry, load_policies, read_snapshot


class Policies:
    """`current` is what new studies get; snapshots are kept by digest in the home."""

    def __init__(
        self, folder: Path, snapshots: Path, registry: Registry = REGISTRY, approvals: Approvals | None = None
    ) -> None:
        """Load everything; with `approvals` only what was approved. Raises PolicyError with all faults of all files."""
        self._approvals = approvals
        self.folder = folder
        self._registry = registry
        self._snapshots = snapshots
        self.current: PolicySet = self._load()
        self._snapshot_text = lru_cache(maxsize=64)(self._read)
        self._learned = lru_cache(maxsize=64)(self._is_learned)

    def reload(self) -> None:
        """Load again; on faults PolicyError is raised and the present policies stay in force."""
        self.current = self._load()

    def _load(self) -> PolicySet:
        found = load_policies(self.folder, self._registry)
        return self._approvals.only_approved(found) if self._approvals is not None else found

    def merge_people(self) -> bool:
        """True when a policy of now names a merge table."""
        return any(policy.header.patient_id.merge for policy in self.current.policies.values())

    def keep(self, policy: Policy) -> None:
        """Store a policy under its digest before a job names it."""
        path = self._path(policy.digest)
        if not path.exists():
            with writing(path) as file:
                file.write(policy.to_snapshot().encode())

    def snapshot(self, digest: str) -> str:
        """The stored text. Raises Hold `policy_withdrawn` when it is gone or is not what its name says."""
        return self._snapshot_text(digest)

    def of(self, digest: str) -> Policy:
        """The policy of a digest. Raises Hold `policy_withdrawn`."""
        return restore(self.snapshot(digest), digest)

    def is_learned(self, digest: str) -> bool:
        """Whether a stage, or who judges it, is a learned part: such work is for a GPU where there is one."""
        try:
            return self._learned(digest)
        except Hold:  # whoever begins with the work will say so
            return False

    def _is_learned(self, digest: str) -> bool:
        policy = self.of(digest)
        stages = (parameters for _, parameters in policy.pixels)
        return bool(
            policy.gate.release or any(getattr(one, "card", "") for one in (*stages, *policy.gate.study.values()))
        )

    def _read(self, digest: str) -> str:
        try:
            return self._path(digest).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise Hold("policy_withdrawn", at=digest[:12]) from None

    def _path(self, digest: str) -> Path:
        return self._snapshots / f"{digest}.json"


def restore(snapshot: str, digest: str = "") -> Policy:
    """The policy of a snapshot. Raises Hold `policy_withdrawn` when this build or its tables cannot carry it out."""
    try:
        policy = read_snapshot(snapshot, REGISTRY)
    except UsageError:
        raise Hold("policy_withdrawn", at=digest[:12]) from None
    if digest and policy.digest != digest:  # edited, or the standard's table changed under it
        raise Hold("policy_withdrawn", at=digest[:12])
    return policy
