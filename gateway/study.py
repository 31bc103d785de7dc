"""The nouns: what a study, an instance, a step, a finding, a verdict and a clearance are.

Frozen values only; no input or output here. Nothing in these types holds an identifying value: instances are named by
our own `name` (four digits and more within a job), studies and jobs by keyed opaque keys.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

# Ours, under 2.25 (PS3.7 D.3.3.2): says what wrote a file or speaks on a connection, not where it came from.
IMPLEMENTATION_CLASS_UID = "2.25.185284226870046379262905467233962271903"
IMPLEMENTATION_VERSION_NAME = "DEID_GW_0.1"


class State(StrEnum):
    """Where a job (one target of one study generation) is. Final: sent, recalled, shadowed, held, rejected, refused."""

    RECEIVED = "received"  # study generation closed, not yet routed
    QUEUED = "queued"  # routed, scrub pending
    SCRUBBED = "scrubbed"  # candidates encoded, gate pending
    CLEARED = "cleared"  # clearance written, forward pending
    AWAITING_RELEASE = "awaiting_release"
    SENT = "sent"
    RECALLED = "recalled"  # had been sent, or part of it; its receivers were told to give it up
    SHADOWED = "shadowed"  # would have been sent, under a policy that only looks
    HELD = "held"
    REJECTED = "rejected"
    REFUSED = "refused"


OVER = frozenset({State.SENT, State.RECALLED, State.SHADOWED, State.REJECTED, State.REFUSED})  # nobody is waited for
FINAL_STATES = OVER | {State.HELD}


@dataclass(frozen=True, slots=True)
class Step:
    """What one stage did to one instance; the audit trail of a job. `counts` has bounded keys, e.g. {'X': 31}."""

    stage: str
    version: str
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # reason-like codes or tag paths, never values
    dropped: str = ""  # a key of errors.REASONS when the instance is left out of its study: then nothing was written


class Outcome(StrEnum):
    """What a gate check says."""

    PASS = "pass"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Finding:
    """One residual: which rule fired, in which of our instances, where (tag path or byte region). Never the value."""

    check: str
    instance: str
    where: str
    rule: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One check's judgement of one job. `reason` is a key of errors.REASONS when it holds."""

    check: str
    outcome: Outcome
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    assessed: Mapping[str, int] = field(default_factory=dict)  # what was looked at, e.g. {"instances": 12}
    scores: Mapping[str, float] = field(default_factory=dict)  # what decided, by name, e.g. {"smallest_p": 0.2}


@dataclass(frozen=True, slots=True)
class NotAssessed:
    """What no check judged, and who accepted that (policy `gate.not_assessed`)."""

    aspect: str
    modality: str
    instances: int
    reason: str
    approver: str


@dataclass(frozen=True, slots=True)
class ClearedInstance:
    """One file that may leave: the hashes of its encoded data set and of the whole file, and how it is negotiated."""

    name: str
    sop_class_uid: str
    sop_instance_uid: str  # the new one
    transfer_syntax_uid: str
    sha256_dataset: str
    sha256_file: str
    size_bytes: int


def canonical_json(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces: the form that is hashed and sealed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class Clearance:
    """The only thing that lets bytes leave (DESIGN.md invariant 2). Sealed by the gate or by a recorded review.

    `mac` is HMAC-SHA256 over the canonical JSON of everything else, under a key that only the gateway holds.
    """

    job_key: str
    policy_digest: str
    destination: str
    issuer: str  # "gate", or "review:<role name>"
    verdicts: tuple[str, ...]  # "check=pass" or "check=hold"
    not_assessed: tuple[NotAssessed, ...]
    instances: tuple[ClearedInstance, ...]
    mac: str = ""

    def _body(self) -> bytes:
        body = asdict(self)
        del body["mac"]
        return canonical_json(body)

    def sealed(self, key: bytes) -> Clearance:
        """A copy with its MAC. Called by `gate` and by a recorded review only; a contract test checks the callers."""
        return replace(self, mac=hmac.new(key, self._body(), hashlib.sha256).hexdigest())

    def is_sealed_by(self, key: bytes) -> bool:
        """True when the MAC is ours and nothing was changed since."""
        expected = hmac.new(key, self._body(), hashlib.sha256).hexdigest()
        return hmac.compare_digest(self.mac, expected)

    def to_json(self) -> str:
        """For the database; `from_json` gives the same value back."""
        return canonical_json(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> Clearance:
        """Inverse of `to_json`. Raises KeyError or TypeError for another shape."""
        body = json.loads(text)
        body["verdicts"] = tuple(body["verdicts"])
        body["not_assessed"] = tuple(NotAssessed(**entry) for entry in body["not_assessed"])
        body["instances"] = tuple(ClearedInstance(**entry) for entry in body["instances"])
        return cls(**body)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the archive said of one instance. `status` is the DIMSE status (PS3.4 B.2.3); -1 = nothing came back."""

    name: str
    status: int
    kind: str  # "success", "warning", "failure"
    attempts: int = 1
