"""What a cleared job brings into its release: whose it is, of which day, and the references that it is judged by."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gateway.app.parts import Parts
from gateway.app.release.references import References
from gateway.app.tasks import embed_member
from gateway.database import JobRow, NewMember
from gateway.errors import Hold
from gateway.gate import Pair
from gateway.policy import Policy


def references_of(parts: Parts, job: JobRow) -> References:
    """Where the embeddings of this round of a job go."""
    return References(parts.home.root, parts.keys.master, f"{job.job_key}/r{job.round}", time.time())


def member_of(parts: Parts, job: JobRow, facts: dict[str, dict[str, str]]) -> NewMember:
    """What a cleared job brings into its release."""
    rows = parts.database.instances_of(job.study_key, job.generation)
    person = parts.mapper.person(job.job_key) or min((row.patient_key for row in rows), default="")
    if not person:
        raise Hold("missing_patient_id")
    session = facts.get("session", {}).get("day") or job.study_key
    return NewMember(person, session, f"{job.job_key}/r{job.round}", facts)


def member_after_review(parts: Parts, job: JobRow, pairs: Sequence[Pair], policy: Policy) -> NewMember:
    """The same for a job that a person cleared. Raises Hold when nobody can tell whose images it holds."""
    snapshot = parts.policies.snapshot(job.policy_digest)
    facts = parts.workers.run(embed_member, pairs, snapshot, references_of(parts, job)) if policy.gate.release else {}
    return member_of(parts, job, facts)
