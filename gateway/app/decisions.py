"""What people decide about held studies: release, rerun, reject. Carried out by the engine process, from intents.

Every decision has a name and a reason, and is in the ledger before it takes effect.

- release: let what the gate or the archive held go as it is. A recorded review then issues the clearance.
- rerun: begin again from routing or from the header, under the policies of now (after a policy or route was mended).
- reject: nothing leaves, for good.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from gateway.app.parts import Parts
from gateway.app.steps import DELIVERED, StudySteps, next_leg
from gateway.app.workers import clear_reviewed_job
from gateway.database import Intent, JobRow, StudyRow
from gateway.errors import REASONS, StudyError
from gateway.flow import Leg, Next
from gateway.observe import log
from gateway.study import Finding, Outcome, State, Verdict

KINDS = ("release", "rerun", "reject")
DONE = "done"


def held_key(study: StudyRow) -> str:
    """The key under which a study that never became a job is listed and decided."""
    return f"{study.study_key}.{study.generation}"


class Decisions:
    """Applies intents; `enqueue` hands the next leg to the engine."""

    def __init__(self, parts: Parts, steps: StudySteps, enqueue: Callable[[Next], None]) -> None:
        self._parts = parts
        self._steps = steps
        self._enqueue = enqueue

    def apply_all(self) -> int:
        """Carry out every open intent, in order. Returns how many."""
        intents = self._parts.database.open_intents()
        for intent in intents:
            try:
                outcome = self._apply(intent)
            except StudyError as error:
                outcome = f"not possible: {REASONS[error.reason].says}"
            self._parts.database.finish_intent(intent.serial, outcome)
            log("decided", kind=intent.kind, intent=intent.serial, job=intent.key)
        return len(intents)

    def _apply(self, intent: Intent) -> str:
        job = self._parts.database.job(intent.key)
        if job is not None:
            return self._decide_job(intent, job)
        study_key, _, generation = intent.key.partition(".")
        study = self._parts.database.study(study_key, int(generation)) if generation.isdigit() else None
        return self._decide_study(intent, study) if study is not None else "no such key"

    def _decide_study(self, intent: Intent, study: StudyRow) -> str:
        """A study that was held before any job existed: nothing has been cleaned yet."""
        database = self._parts.database
        if study.state != "held":
            return f"not held: it is {study.state}"
        if intent.kind == "release":
            return "nothing of it has been cleaned yet, so nothing can be released; use rerun or reject"
        self._record(intent, study=study.study_key, generation=study.generation)
        if intent.kind == "reject":
            database.set_study(study.study_key, study.generation, state="rejected")
            self._parts.metrics.decided.labels("rejected", "reviewer_rejected").inc()
            return DONE
        database.set_study(study.study_key, study.generation, state="received", reason="", round=study.round + 1)
        self._enqueue(Next(Leg.INTAKE, study.study_key, study.round + 1, 0, study.generation))
        return DONE

    def _decide_job(self, intent: Intent, job: JobRow) -> str:
        allowed = {State.HELD, State.AWAITING_RELEASE} if intent.kind == "reject" else {State.HELD}
        if job.state not in allowed:
            return f"not held: it is {job.state}"
        match intent.kind:
            case "reject":
                self._record(intent, job=job.job_key, study=job.study_key, generation=job.generation)
                self._parts.database.set_job(job.job_key, state=State.REJECTED, reason="reviewer_rejected")
                self._parts.metrics.decided.labels(str(State.REJECTED), "reviewer_rejected").inc()
                return DONE
            case "rerun":
                return self._rerun(intent, job)
            case "release":
                return self._release(intent, job)
        return f"unknown decision; one of {', '.join(KINDS)}"

    def _rerun(self, intent: Intent, job: JobRow) -> str:
        p = self._parts
        if any(receipt.kind in DELIVERED for receipt in p.database.receipts(job.job_key).values()):
            # What was sent is never sent again with other bytes (DESIGN.md invariant 4).
            return "part of it has been sent already; release the rest as it is, or reject it"
        policy = p.policies.current.policies.get(job.policy)
        if policy is None:
            return "its policy is no longer among the loaded ones; restore the file first"
        p.policies.keep(policy)
        self._record(
            intent, job=job.job_key, study=job.study_key, generation=job.generation, policy_digest=policy.digest
        )
        p.database.set_job(
            job.job_key,
            state=State.QUEUED,
            reason="",
            at="",
            held_in="",
            attempt=0,
            round=job.round + 1,
            policy_digest=policy.digest,
            verdicts="",
            clearance="",
        )
        self._go_on(job.job_key)
        return DONE

    def _release(self, intent: Intent, job: JobRow) -> str:
        p = self._parts
        if job.held_in == Leg.SCRUB:
            return "its header could not be cleaned, so nothing can be released; use rerun or reject"
        if job.held_in == Leg.FORWARD and job.clearance:
            self._record(intent, job=job.job_key, study=job.study_key, generation=job.generation)
            p.database.set_job(
                job.job_key, state=State.CLEARED, reason="", at="", held_in="", attempt=0, round=job.round + 1
            )
            self._go_on(job.job_key)
            return DONE
        clearance = p.workers.run(
            clear_reviewed_job,
            self._steps.pairs(job),
            p.policies.snapshot(job.policy_digest),
            job.job_key,
            job.destination,
            p.keys.seal,
            intent.actor,
            stored_verdicts(job),
        )
        self._record(intent, job=job.job_key, study=job.study_key, generation=job.generation)
        p.database.set_job(job.job_key, held_in="", round=job.round + 1)
        renewed = p.database.job(job.job_key)
        if renewed is None:
            return "no such key"
        self._steps.record_clearance(renewed, clearance, None, p.policies.of(job.policy_digest))
        self._go_on(job.job_key)
        return DONE

    def _go_on(self, job_key: str) -> None:
        job = self._parts.database.job(job_key)
        for leg in next_leg(job) if job else ():
            self._enqueue(leg)

    def _record(self, intent: Intent, **where: object) -> None:
        event = {"release": "released", "rerun": "rerun", "reject": "rejected"}[intent.kind]
        self._parts.ledger.append(
            event, f"intent/{intent.serial}", actor=intent.actor, reason_given=intent.reason, **where
        )


def stored_verdicts(job: JobRow) -> list[Verdict]:
    """The verdicts that the gate left in the job's row."""
    return [
        Verdict(
            check=entry["check"],
            outcome=Outcome(entry["outcome"]),
            reason=entry["reason"],
            findings=tuple(Finding(**finding) for finding in entry["findings"]),
            assessed=entry["assessed"],
        )
        for entry in json.loads(job.verdicts or "[]")
    ]
