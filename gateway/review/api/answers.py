"""What the API answers: the desk's nouns with named fields and times in RFC 3339. Only `HeaderLine` holds values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gateway.review.desk import Box, Thing
from gateway.review.desk import Pointer as Finding
from gateway.review.records import Changed, LeakScore, PolicyText, ReleaseFacts

__all__ = ["Box", "Changed", "Finding", "PolicyText", "Thing"]


@dataclass(frozen=True, slots=True)
class HeldStudy:
    """One study that waits for a person; `agreed` of `needed` people have agreed to let it go."""

    key: str
    reason: str
    says: str
    since: datetime
    policy: str
    held_in: str
    agreed: int
    needed: int


@dataclass(frozen=True, slots=True)
class Queue:
    """`total` fit the filter; `studies` are those from `offset` on."""

    total: int
    studies: list[HeldStudy]


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What one check of the gate said."""

    check: str
    outcome: str
    assessed: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A loaded policy that the study could run under."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Study:
    """One study. `closed` says why nothing can be decided, "" while it is held; `objects` are told to who may look.

    `round` is the state that a decision must name.
    """

    key: str
    state: str
    round: int
    reason: str
    says: str
    hint: str
    at: str
    since: datetime
    policy: str
    policy_digest: str
    held_in: str
    level: str
    destination: str
    closed: str
    no_approval: str
    no_redaction: str
    agreed: int
    needed: int
    waits_for: str
    objects: list[Thing]
    policies: list[Choice]


@dataclass(frozen=True, slots=True)
class Findings:
    """What the gate said of a study, and where its findings point."""

    verdicts: list[GateVerdict]
    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One line of the ledger: codes, names of people and their reasons."""

    line: int
    time: datetime
    event: str
    who: str
    said: str
    facts: str
    key: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """A decision that is written down. The gateway carries it out; `outcome_at` tells what came of it."""

    serial: int
    outcome_at: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """`says` is "" while it waits, "done", or why not."""

    state: Literal["waiting", "done", "not done"]
    says: str


@dataclass(frozen=True, slots=True)
class Score(LeakScore):
    """A leak score: the bound decides, never the estimate. `of_limit` 1 is the limit, null where it is no evidence."""

    of_limit: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Release(ReleaseFacts):
    """One release. `scores` are those of its last judgement."""

    opened: datetime
    closed: datetime | None
    scores: list[Score]


@dataclass(frozen=True, slots=True)
class Count:
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Unjudged:
    """What left without a judgement, because the policy says so."""

    modality: str
    aspect: str
    instances: int
    reason: str
    approver: str


@dataclass(frozen=True, slots=True)
class ReleaseWithContent:
    """One release with what was done to its instances, what people let go in spite of findings, what nobody judged."""

    release: Release
    looks: int
    stages: list[Count]
    levels: list[Count]
    residuals: list[Count]
    not_assessed: list[Unjudged]


@dataclass(frozen=True, slots=True)
class Version:
    """A policy that studies began under. `name` is "" where this build cannot read it any more."""

    name: str
    digest: str
    since: datetime
    in_force: bool
