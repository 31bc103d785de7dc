"""How a held job begins again: under the policy of now, under another one, or with a box that a reviewer drew.

What has left binds: nothing is sent again with other bytes, and one study never leaves under two mappings (DESIGN.md
invariant 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from gateway.app.parts import Parts
from gateway.app.review.agreement import missing
from gateway.app.review.drawn import read
from gateway.app.review.wishes import Asked
from gateway.app.sending import delivered
from gateway.database import Intent, JobRow
from gateway.database.releases import AUDITING, ESCALATING
from gateway.errors import Hold
from gateway.study import State

RENEWED = {"attempt": 0, "reason": "", "at": "", "held_in": ""}
PART_SENT = "part of it has been sent already; release the rest as it is, or reject it"


@dataclass(frozen=True, slots=True)
class Beginning:
    """The job as it begins again, what changes in its row, and what the ledger is told besides."""

    job: JobRow
    change: Mapping[str, object]
    told: Mapping[str, object] = field(default_factory=dict)


def waits_well(parts: Parts, job: JobRow) -> str:
    """Why a study that waits for its release does not begin again, "" when it may."""
    if job.state != State.AWAITING_RELEASE:
        return ""
    release = parts.database.release_of(job.job_key)
    if release is not None and release.state in (AUDITING, ESCALATING):
        return "its release is being judged; wait for that"
    policy = parts.policies.current.policies.get(job.policy)
    if policy is not None and policy.digest == job.policy_digest:
        return "it waits for its release, under the policy of now"
    return ""


def rerun(parts: Parts, intent: Intent, job: JobRow, asked: Asked) -> Beginning | str:
    """Under the policy of now that has its name, or the one that the wish names; or why that is not possible."""
    if delivered(parts.database.receipts(job.job_key)):
        return PART_SENT
    if asked.about:
        return _under(parts, intent, job, asked.about)
    digest = next((sent.policy_digest for sent in _sent(parts, job) if sent.policy == job.policy), "")
    if not digest:
        policy = parts.policies.current.policies.get(job.policy)
        if policy is None:
            return "its policy is no longer among the loaded ones; restore the file first"
        parts.policies.keep(policy)
        digest = policy.digest
    return _again(job, policy_digest=digest)


def _under(parts: Parts, intent: Intent, job: JobRow, about: str) -> Beginning | str:
    """Under another of the loaded policies."""
    policy = next((one for one in parts.policies.current.policies.values() if one.digest.startswith(about)), None)
    if policy is None:
        return "that policy is no longer among the loaded ones; open the study again"
    if policy.forward.to not in ("", job.destination):
        return f"that policy forwards to {policy.forward.to} only"
    if {sent.policy_digest for sent in _sent(parts, job)} - {policy.digest}:
        return "part of this study has left under another policy; rerun it under that one, or reject it"
    target = (job.project, policy.name, job.destination)
    others = [one for one in parts.database.jobs_of(job.study_key, job.generation) if one.job_key != job.job_key]
    if target in {(one.project, one.policy, one.destination) for one in others}:
        return "its route sends it there under that policy already; reject this one"
    if policy.needs_two or needs_two(parts, job):
        refusal = missing(parts, intent, job)
        if refusal:
            return refusal
    parts.policies.keep(policy)
    return _again(job, policy=policy.name, policy_digest=policy.digest)


def redacted(parts: Parts, job: JobRow, asked: Asked) -> Beginning | str:
    """With what was drawn. The policy stays that of the study, and the gate judges anew. Raises Hold for a drawing that
    is gone or was changed.
    """
    if delivered(parts.database.receipts(job.job_key)):
        return PART_SENT
    drawing = read(parts.home, job.study_key, asked.about)
    told = {"drawing": asked.about, "box": list(drawing.box), "whole_series": drawing.whole_series}
    return replace(_again(job), told=told)


def needs_two(parts: Parts, job: JobRow) -> bool:
    """What its policy says, or, where that one is gone, the loaded one of its name; True when nobody can tell."""
    try:
        return parts.policies.of(job.policy_digest).needs_two
    except Hold:
        policy = parts.policies.current.policies.get(job.policy)
        return policy is None or policy.needs_two


def _again(job: JobRow, **changed: str) -> Beginning:
    change: dict[str, object] = {
        **RENEWED,
        "state": State.QUEUED,
        "round": job.round + 1,
        **changed,
        **dict.fromkeys(("verdicts", "clearance", "steps"), ""),
    }
    policy, digest = changed.get("policy", job.policy), changed.get("policy_digest", job.policy_digest)
    if digest != job.policy_digest:  # levels are those of a policy
        change["level"] = 0
    return Beginning(replace(job, policy=policy, policy_digest=digest), change)


def _sent(parts: Parts, job: JobRow) -> Iterator[JobRow]:
    """Jobs of this study, of any generation, of which something went to the same project."""
    database = parts.database
    for study in database.generations(job.study_key):
        for other in database.jobs_of(job.study_key, study.generation):
            if other.project == job.project and delivered(database.receipts(other.job_key)):
                yield other
