"""The closed loop of one study: levels of the stage that `escalate` names, in order; the first that passes is kept.

Each attempt is a round of its job: made and judged by itself, told in the ledger with its scores, and stricter than the
one before (`gate.same_scan`). What a stronger level cannot change holds at once. A level draws its noise from the
study's key alone, so that nothing is drawn again in order to pass; and once something of a study has left, what follows
of it keeps to the level it left at (DESIGN.md invariant 4).
"""

from __future__ import annotations

from dataclasses import replace

from gateway.app.account import identity, told
from gateway.app.parts import Parts
from gateway.database import JobRow
from gateway.errors import Hold
from gateway.gate import Judgement
from gateway.observe import log
from gateway.policy import Policy

ESCALATED = "escalated"


def begun(parts: Parts, job: JobRow, policy: Policy) -> JobRow:
    """The job at the level it has to begin with: never weaker than what left of the study before."""
    standing = parts.database.standing_level(job) if policy.escalate is not None else None
    if standing is None:
        return job
    level, keeps_to_it = standing
    if not keeps_to_it:
        level = max(level, job.level)
    if level != job.level:
        parts.database.set_job(job.job_key, level=level)
    return replace(job, level=level)


def may_escalate(parts: Parts, job: JobRow, policy: Policy) -> bool:
    """Whether a stronger level is left for it."""
    if job.level + 1 >= policy.attempts:
        return False
    standing = parts.database.standing_level(job)
    return standing is None or not standing[1]


def not_passed(parts: Parts, job: JobRow, policy: Policy, judgement: Judgement) -> None:
    """After a judgement without clearance: the job begins again at the next level, or is held. Raises Hold."""
    if policy.escalate is None or not judgement.stronger_may_help:
        raise Hold(judgement.reason, at=judgement.at)
    metrics, names = parts.metrics, (job.policy, level_told(policy, job.level))
    if not may_escalate(parts, job, policy):
        metrics.attempts.labels(*names, "held").inc()
        tried = f"{job.level + 1} of {len(policy.escalate.levels)} levels tried"
        raise Hold("no_level_passed", at=f"{tried}; {judgement.at}")
    parts.ledger.append(
        ESCALATED,
        f"{ESCALATED}/{job.job_key}/r{job.round}",
        **identity(job),
        **account(policy, job.level),
        next_level=policy.escalate.levels[job.level + 1],
        reason=judgement.reason,
        at=judgement.at,
        **told(judgement.verdicts, judgement.not_assessed),
    )
    if parts.database.escalate_job(job):
        metrics.attempts.labels(*names, ESCALATED).inc()
        log(ESCALATED, job=job.job_key, policy=job.policy, reason=judgement.reason, count=job.level + 1)


def account(policy: Policy, level: int) -> dict[str, object]:
    """What a ledger line tells of the level; nothing under a policy without levels."""
    if policy.escalate is None:
        return {}
    return {"level": policy.escalate.levels[level], "attempt": level + 1}


def level_told(policy: Policy, number: int) -> str:
    """As labels and pages write it; "" under a policy without levels."""
    return f"{policy.escalate.levels[number]:g}" if policy.escalate is not None else ""


def claim(parts: Parts, job: JobRow, policy: Policy) -> None:
    """Before anything of the job leaves: its level is that of the study from now on. Raises Hold."""
    if policy.escalate is not None and not parts.database.claim_level(job):
        raise Hold("another_level_sent", at=f"level {level_told(policy, job.level)}")
