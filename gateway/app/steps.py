"""The steps of a study, over our tables: what each leg does, idempotent, the new state written last.

Order inside every leg: work, ledger line (idempotent by decision), table row. A crash between any two of them repeats
the leg with the same inputs, and the same end.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from gateway.app.admission import Admission
from gateway.app.parts import Parts
from gateway.app.workers import judge_job, scrub_instance
from gateway.database import JobRow
from gateway.durable import make_folder
from gateway.errors import Hold, Refuse, StudyError
from gateway.flow import Leg, Next
from gateway.forward import TransportOptions, forward, open_transport
from gateway.gate import Judgement, Pair
from gateway.observe import log
from gateway.policy import Policy
from gateway.pseudonyms import Pseudonyms
from gateway.study import FINAL_STATES, Clearance, NotAssessed, Receipt, State, Step, Verdict

DELIVERED = frozenset({"success", "warning"})


def next_leg(job: JobRow) -> tuple[Next, ...]:
    """What a job's state asks for."""
    legs = {State.QUEUED: Leg.SCRUB, State.SCRUBBED: Leg.GATE, State.CLEARED: Leg.FORWARD}
    leg = legs.get(job.state)
    return (Next(leg, job.job_key, job.round, job.attempt),) if leg else ()


def total(steps: Sequence[Step]) -> dict[str, dict[str, int]]:
    """Counts of all instances, by stage and version: what the ledger tells of a job."""
    sums: dict[str, Counter[str]] = {}
    for step in steps:
        sums.setdefault(f"{step.stage}@{step.version}", Counter())["instances"] += 1
        sums[f"{step.stage}@{step.version}"].update(step.counts)
    return {stage: dict(counts) for stage, counts in sorted(sums.items())}


def told(verdicts: Sequence[Verdict], not_assessed: Sequence[NotAssessed]) -> dict[str, object]:
    """Verdicts and what was not judged, as codes and counts."""
    return {
        "verdicts": [
            {
                "check": v.check,
                "outcome": str(v.outcome),
                "reason": v.reason,
                "findings": len(v.findings),
                "assessed": dict(v.assessed),
            }
            for v in verdicts
        ],
        "not_assessed": [asdict(entry) for entry in not_assessed],
    }


class StudySteps:
    """Implements flow.Steps."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._admission = Admission(parts)

    def intake(self, study_key: str, generation: int) -> tuple[Next, ...]:
        self._admission.admit(study_key, generation)
        return tuple(leg for job in self.parts.database.jobs_of(study_key, generation) for leg in next_leg(job))

    # -- scrub ----------------------------------------------------------------------------------------------------

    def scrub(self, job_key: str) -> tuple[Next, ...]:
        p = self.parts
        job = self._job(job_key)
        if job.state != State.QUEUED:
            return next_leg(job)
        began = time.perf_counter()
        snapshot = p.policies.snapshot(job.policy_digest)
        project_key = Pseudonyms.of_project(p.keys.master, job.project).key
        pairs = self.pairs(job)
        if not pairs:
            raise Hold("no_instances")
        folder = make_folder(p.home.work / job.job_key)
        for stale in folder.iterdir():  # of an earlier round or a crash
            stale.unlink()
        steps = p.workers.gather(
            [p.workers.submit(scrub_instance, pair.original, pair.candidate, snapshot, project_key) for pair in pairs]
        )
        p.metrics.stage_seconds.labels("scrub").observe(time.perf_counter() - began)
        p.database.set_job(job_key, state=State.SCRUBBED, attempt=0, steps=json.dumps(total(steps)))
        return next_leg(self._job(job_key))

    def pairs(self, job: JobRow) -> list[Pair]:
        """Original and candidate of each instance, named by order of their keys: arrival order does not matter."""
        p = self.parts
        rows = [row for row in p.database.instances_of(job.study_key, job.generation) if row.use == "use"]
        rows.sort(key=lambda row: row.sop_key)
        return [
            Pair(f"{i:05d}", p.spool.path(row.study_key, row.name), p.home.work / job.job_key / f"{i:05d}.dcm")
            for i, row in enumerate(rows, 1)
        ]

    # -- gate -----------------------------------------------------------------------------------------------------

    def gate(self, job_key: str) -> tuple[Next, ...]:
        p = self.parts
        job = self._job(job_key)
        if job.state != State.SCRUBBED:
            return next_leg(job)
        began = time.perf_counter()
        snapshot = p.policies.snapshot(job.policy_digest)
        judgement = p.workers.run(judge_job, self.pairs(job), snapshot, job_key, job.destination, p.keys.seal)
        p.metrics.stage_seconds.labels("gate").observe(time.perf_counter() - began)
        for verdict in judgement.verdicts:
            p.metrics.findings.labels(verdict.check).inc(len(verdict.findings))
        p.database.set_job(job_key, verdicts=json.dumps([asdict(verdict) for verdict in judgement.verdicts]))
        if judgement.clearance is None:
            raise Hold(judgement.reason, at=judgement.at)
        self.record_clearance(job, judgement.clearance, judgement, p.policies.of(job.policy_digest))
        return next_leg(self._job(job_key))

    def record_clearance(self, job: JobRow, clearance: Clearance, judgement: Judgement | None, policy: Policy) -> None:
        """Ledger, then table: the job is cleared, or waits for its release."""
        p = self.parts
        state = State.AWAITING_RELEASE if policy.release is not None else State.CLEARED
        facts = told(judgement.verdicts, judgement.not_assessed) if judgement else {"verdicts": clearance.verdicts}
        p.ledger.append(
            "cleared",
            f"cleared/{job.job_key}/r{job.round}",
            job=job.job_key,
            study=job.study_key,
            generation=job.generation,
            policy_digest=job.policy_digest,
            steps=json.loads(job.steps or "{}"),
            issuer=clearance.issuer,
            sha256=[entry.sha256_file for entry in clearance.instances],
            state=str(state),
            **facts,
        )
        p.database.set_job(job.job_key, state=state, attempt=0, reason="", at="", clearance=clearance.to_json())
        log(str(state), job=job.job_key, policy=job.policy, instances=len(clearance.instances))

    # -- forward --------------------------------------------------------------------------------------------------

    def forward(self, job_key: str) -> tuple[Next, ...]:
        p = self.parts
        job = self._job(job_key)
        if job.state != State.CLEARED:
            return next_leg(job)
        destination = p.policies.current.destinations.get(job.destination)
        if destination is None:
            raise Hold("destination_unknown")
        clearance = Clearance.from_json(job.clearance)
        files = {pair.name: pair.candidate for pair in self.pairs(job)}
        sizes = {entry.name: entry.size_bytes for entry in clearance.instances}
        done = frozenset(name for name, r in p.database.receipts(job_key).items() if r.kind in DELIVERED)

        def on_receipt(receipt: Receipt) -> None:
            p.database.record_receipt(job_key, receipt)
            p.metrics.sent.labels(job.destination, receipt.kind).inc()
            if receipt.kind in DELIVERED:
                p.metrics.sent_bytes.labels(job.destination).inc(sizes[receipt.name])

        began = time.perf_counter()
        options = TransportOptions(
            ae_title=p.settings.ae_title, timeout_s=p.settings.network_timeout_s, base=p.settings.policies
        )
        transport = open_transport(destination.url, options)
        forward(clearance, files, seal_key=p.keys.seal, transport=transport, done=done, on_receipt=on_receipt)
        p.metrics.stage_seconds.labels("forward").observe(time.perf_counter() - began)
        receipts = p.database.receipts(job_key)
        p.ledger.append(
            "sent",
            f"sent/{job_key}/r{job.round}",
            job=job_key,
            study=job.study_key,
            generation=job.generation,
            destination=job.destination,
            policy_digest=job.policy_digest,
            receipts=dict(Counter(f"{r.kind} {r.status:04X}" for r in receipts.values())),
        )
        p.database.set_job(job_key, state=State.SENT, reason="", at="")
        p.metrics.decided.labels(str(State.SENT), "").inc()
        log("sent", job=job_key, destination=job.destination, instances=len(receipts))
        return ()

    # -- ends -----------------------------------------------------------------------------------------------------

    def fail(self, task: Next, error: StudyError) -> None:
        p = self.parts
        state = State.REFUSED if isinstance(error, Refuse) else State.HELD
        facts = {"reason": error.reason, "at": error.at, "stage": str(task.leg)}
        if task.leg == Leg.INTAKE:
            p.ledger.append(
                str(state), f"{state}/{task.workflow_id}", study=task.key, generation=task.generation, **facts
            )
            p.database.set_study(task.key, task.generation, state=str(state), reason=error.reason)
        else:
            job = self._job(task.key)
            if job.state in FINAL_STATES:  # the leg had done its work before something else failed
                return
            verdicts = json.loads(job.verdicts or "[]")
            p.ledger.append(
                str(state),
                f"{state}/{task.workflow_id}",
                job=job.job_key,
                study=job.study_key,
                generation=job.generation,
                policy_digest=job.policy_digest,
                verdicts=[{**v, "findings": len(v["findings"])} for v in verdicts] if task.leg == Leg.GATE else [],
                **facts,
            )
            p.database.set_job(job.job_key, state=state, reason=error.reason, at=error.at[:256], held_in=str(task.leg))
        p.metrics.decided.labels(str(state), error.reason).inc()

    def pause_s(self, attempt: int) -> float:
        settings = self.parts.settings
        return min(settings.retry_max_s, settings.retry_base_s * 2.0 ** min(attempt, 30))

    def attempts_left(self, task: Next) -> bool:
        return task.attempt + 1 < self.parts.settings.retry_limit

    def note_attempt(self, task: Next, reason: str) -> None:
        if task.leg != Leg.INTAKE:
            self.parts.database.set_job(task.key, attempt=task.attempt + 1, reason=reason)

    def unforeseen(self, task: Next) -> None:
        self.parts.metrics.library_failures.labels(str(task.leg)).inc()

    def pending(self, *, older_than_s: float = 0.0) -> list[Next]:
        """Every leg that our tables say is due, for a restart and for the reconciler."""
        database = self.parts.database
        before = time.time() - older_than_s
        due = [
            Next(Leg.INTAKE, study.study_key, study.round, 0, study.generation)
            for study in database.unrouted()
            if study.closed_at is not None and study.closed_at <= before
        ]
        for job in database.unfinished_jobs():
            if job.updated_at <= before:
                due.extend(next_leg(job))
        return due

    def _job(self, job_key: str) -> JobRow:
        job = self.parts.database.job(job_key)
        if job is None:
            raise Hold("stage_failed", at="job row missing")
        return job
