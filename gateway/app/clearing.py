"""Scrub and gate of a job: from originals to candidates, from candidates to a clearance or a hold."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from functools import partial

from gateway.app import levels
from gateway.app.account import Steps, dropped_names, identity, told, total
from gateway.app.candidates import Making
from gateway.app.parts import Parts
from gateway.app.person.mapping import Work
from gateway.app.person.vault import keep_identity
from gateway.app.release.members import member_of, references_of
from gateway.app.release.references import MODELS
from gateway.app.review.drawn import Drawn, drawings_of
from gateway.app.tasks import judge_job, judge_member
from gateway.database import JobRow
from gateway.durable import make_folder
from gateway.errors import Hold
from gateway.gate import Judgement, Pair
from gateway.observe import log
from gateway.policy import Policy
from gateway.study import Clearance, State


def pairs_of(parts: Parts, job: JobRow) -> list[Pair]:
    """Original and candidate of each instance that goes on, named by order of their keys: arrival order does not
    matter, nor what the scrub left out.
    """
    left_out = dropped_names(job)
    return [pair for pair in _all_pairs(parts, job) if pair.name not in left_out]


def _all_pairs(parts: Parts, job: JobRow) -> list[Pair]:
    rows = [row for row in parts.database.instances_of(job.study_key, job.generation) if row.use == "use"]
    rows.sort(key=lambda row: row.sop_key)
    return [
        Pair(f"{i:05d}", parts.spool.path(row.study_key, row.name), parts.home.work / job.job_key / f"{i:05d}.dcm")
        for i, row in enumerate(rows, 1)
    ]


def scrub(parts: Parts, job: JobRow) -> None:
    """Write the candidate of every original but those that a stage drops. Raises Hold or Refuse."""
    began = time.perf_counter()
    snapshot = parts.policies.snapshot(job.policy_digest)
    pairs = _all_pairs(parts, job)
    if not pairs:
        raise Hold("no_instances")
    policy = parts.policies.of(job.policy_digest)
    job = levels.begun(parts, job, policy)
    pseudonyms = parts.mapper.mapping(_work(parts, job), policy.header)
    pseudonyms = replace(pseudonyms, issues=_issues(parts, job))
    folder = make_folder(parts.home.work / job.job_key)
    for stale in folder.iterdir():  # of an earlier round or a crash
        stale.unlink()
    estimates = parts.home.estimates / job.study_key
    drawings = drawings_of(parts.home, parts.database, job.study_key, job.project)
    drawn = Drawn(tuple(drawings), parts.keys.master)
    models = parts.home.root / MODELS
    making = Making(parts.workers, policy, snapshot, pseudonyms, job.study_key, estimates, drawn, models, job.level)
    making = replace(making, follow_up=partial(parts.database.is_follow_up, job.job_key))
    steps = making.candidates(pairs)
    parts.metrics.stage_seconds.labels("scrub").observe(time.perf_counter() - began)
    _count_generated(parts, job, steps)
    parts.database.set_job(job.job_key, state=State.SCRUBBED, attempt=0, reason="", steps=json.dumps(total(steps)))


def _count_generated(parts: Parts, job: JobRow, steps: Steps) -> None:
    """How many frames were made of pictures that lie near a limit of their card's domain: more of them is drift."""
    for counts in total(steps).values():
        if near := counts.get("near_limit"):
            parts.metrics.generated.labels(job.policy, "near_limit").inc(near)
        if "near_limit" in counts:
            parts.metrics.generated.labels(job.policy, "usual").inc(counts["frames"] - counts["near_limit"])


def _issues(parts: Parts, job: JobRow) -> frozenset[tuple[str, int]]:
    """Which UIDs of the study have a later issue, as far as this job knows of it: another receiver may be further."""
    if job.issue == 1:
        return frozenset()
    issues = parts.database.issues_of(job.project, job.study_key)
    return frozenset((key, min(number, job.issue)) for key, number in issues.items())


def _work(parts: Parts, job: JobRow) -> Work:
    rows = parts.database.instances_of(job.study_key, job.generation)
    return Work(job.job_key, job.project, job.study_key, frozenset(row.patient_key for row in rows if row.use == "use"))


def gate(parts: Parts, job: JobRow) -> None:
    """Judge originals against candidates; what a stronger level may change begins again at the next one. Raises Hold,
    with the verdicts in the job's row.
    """
    began = time.perf_counter()
    snapshot = parts.policies.snapshot(job.policy_digest)
    policy = parts.policies.of(job.policy_digest)
    asked = (pairs_of(parts, job), snapshot, job.job_key, job.destination, parts.keys.seal)
    facts: dict[str, dict[str, str]] = {}
    if policy.gate.release:
        judgement, facts = parts.workers.run(judge_member, *asked, references_of(parts, job), job.level + 1)
    else:
        judgement = parts.workers.run(judge_job, *asked, parts.home.root / MODELS, job.level + 1)
    parts.metrics.stage_seconds.labels("gate").observe(time.perf_counter() - began)
    for verdict in judgement.verdicts:
        parts.metrics.findings.labels(verdict.check).inc(len(verdict.findings))
    parts.database.set_job(job.job_key, verdicts=json.dumps([asdict(verdict) for verdict in judgement.verdicts]))
    if judgement.clearance is None:
        levels.not_passed(parts, job, policy, judgement)
        return
    if policy.escalate is not None:
        parts.metrics.attempts.labels(job.policy, levels.level_told(policy, job.level), "passed").inc()
    member = member_of(parts, job, facts) if policy.release is not None else None
    record_clearance(parts, job, judgement.clearance, judgement, policy)
    change = cleared(judgement.clearance, policy)
    if member is not None:
        parts.database.join_release(job, change, member)
    else:
        parts.database.set_job(job.job_key, **change)


def record_clearance(
    parts: Parts, job: JobRow, clearance: Clearance, judgement: Judgement | None, policy: Policy
) -> None:
    """The ledger's line: the job is cleared, or waits for its release. The table's row comes after it."""
    state = cleared(clearance, policy)["state"]
    if policy.vault is not None and not policy.forward.shadow:  # what never leaves leads nobody back
        keep_identity(parts.home, parts.workers, pairs_of(parts, job), policy.vault, job.project, job.job_key)
    facts = (
        told(judgement.verdicts, judgement.not_assessed)
        if judgement
        else {"verdicts": clearance.verdicts, "not_assessed": [asdict(entry) for entry in clearance.not_assessed]}
    )
    parts.ledger.append(
        "cleared",
        f"cleared/{job.job_key}/r{job.round}",
        **identity(job),
        steps=json.loads(job.steps or "{}"),
        issuer=clearance.issuer,
        sha256=[entry.sha256_file for entry in clearance.instances],
        state=str(state),
        **levels.account(policy, job.level),
        **parts.mapper.told(job.job_key),
        **facts,
    )
    log(str(state), job=job.job_key, policy=job.policy, instances=len(clearance.instances))


def cleared(clearance: Clearance, policy: Policy) -> dict[str, object]:
    """What a clearance changes in the job's row."""
    state = State.AWAITING_RELEASE if policy.release is not None else State.CLEARED
    return {"state": state, "attempt": 0, "reason": "", "at": "", "held_in": "", "clearance": clearance.to_json()}
