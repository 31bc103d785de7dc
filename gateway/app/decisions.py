"""What people decide about held studies: release, rerun, reject. Carried out by the engine process, from intents.

Every decision has a name and a reason, and is in the ledger before it takes effect; the row changes in the transaction
that finishes the intent, so that a crash repeats all of a decision or nothing.

- release: let what the gate or the archive held go as it is. A recorded review then issues the clearance.
- rerun: begin again from routing or from the header, under the policies of now (after a policy or route was mended).
- reject: nothing leaves, for good.
"""

from __future__ import annotations

import json
from dataclasses import replace

from gateway.app.account import identity, stored
from gateway.app.clearing import cleared, pairs_of, record_clearance
from gateway.app.course import next_leg
from gateway.app.notes import names_somebody
from gateway.app.parts import Parts
from gateway.app.sending import delivered
from gateway.app.tasks import clear_reviewed_job
from gateway.database import Intent, JobRow, StudyRow
from gateway.flow import Leg, Next
from gateway.observe import log
from gateway.study import Finding, Outcome, State, Verdict

KINDS = ("release", "rerun", "reject")
EVENTS = {"release": "released", "rerun": "rerun", "reject": "rejected"}
DONE = "done"
NOTHING: tuple[Next, ...] = ()
RENEWED = {"attempt": 0, "reason": "", "at": "", "held_in": ""}
NAMES_SOMEBODY = "the reason names something out of the study; it was not kept: write it without names, ids and dates"


class Decisions:
    """Carries out one intent at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def decide(self, serial: int) -> tuple[Next, ...]:
        """Carry out an open intent and return the leg that it leads to. What is not possible is told in its outcome."""
        database = self._parts.database
        intent = database.intent(serial)
        if intent is None or intent.done_at is not None:
            return ()
        job = database.job(intent.key)
        study = self._study(intent.key) if job is None else None
        of_study = job.study_key if job else study.study_key if study else ""
        if of_study and names_somebody(self._parts, of_study, intent.reason):
            database.withhold_intent(serial, NAMES_SOMEBODY)
            refusal, following = "withheld", NOTHING
        elif job is not None:
            refusal, following = self._decide_job(intent, job)
        elif study is not None:
            refusal, following = self._decide_study(intent, study)
        else:
            refusal, following = "no such key", NOTHING
        if refusal and refusal != "withheld":
            database.finish_intent(serial, refusal)
        log("decided", kind=intent.kind, intent=serial, job=intent.key, state="refused" if refusal else DONE)
        return following

    def _study(self, key: str) -> StudyRow | None:
        study_key, _, generation = key.partition(".")
        number = int(generation) if generation.isdecimal() and len(generation) < 10 else 0
        return self._parts.database.study(study_key, number)

    # Each of these returns why it is not possible ("" when it is done) and what comes next.

    def _decide_study(self, intent: Intent, study: StudyRow) -> tuple[str, tuple[Next, ...]]:
        """A study that was held before any job existed: nothing has been cleaned yet."""
        p = self._parts
        if study.state != "held":
            return f"not held: it is {study.state}", ()
        match intent.kind:
            case "release":
                return "nothing of it has been cleaned yet, so nothing can be released; use rerun or reject", ()
            case "reject":
                change: dict[str, object] = {"state": "rejected", "reason": "reviewer_rejected"}
                following: tuple[Next, ...] = ()
            case "rerun":
                change = {"state": "received", "reason": "", "round": study.round + 1}
                following = (Next(Leg.INTAKE, study.study_key, study.round + 1, 0, study.generation),)
            case _:
                return f"unknown decision; one of {', '.join(KINDS)}", ()
        self._record(intent, study=study.study_key, generation=study.generation)
        p.database.carry_out_on_study(intent.serial, DONE, study.study_key, study.generation, change)
        if intent.kind == "reject":
            p.metrics.decided.labels("rejected", "reviewer_rejected").inc()
        return "", following

    def _decide_job(self, intent: Intent, job: JobRow) -> tuple[str, tuple[Next, ...]]:
        allowed = {State.HELD, State.AWAITING_RELEASE} if intent.kind == "reject" else {State.HELD}
        if job.state not in allowed:
            return f"not held: it is {job.state}", ()
        match intent.kind:
            case "reject":
                change: dict[str, object] = {"state": State.REJECTED, "reason": "reviewer_rejected", "held_in": ""}
                self._carry_out(intent, job, change)
                self._parts.metrics.decided.labels(str(State.REJECTED), "reviewer_rejected").inc()
                return "", ()
            case "rerun":
                return self._rerun(intent, job)
            case "release":
                return self._release(intent, job)
        return f"unknown decision; one of {', '.join(KINDS)}", ()

    def _rerun(self, intent: Intent, job: JobRow) -> tuple[str, tuple[Next, ...]]:
        p = self._parts
        if delivered(p.database.receipts(job.job_key)):
            # What was sent is never sent again with other bytes (DESIGN.md invariant 4).
            return "part of it has been sent already; release the rest as it is, or reject it", ()
        digest = self._digest_of_sent(job)
        if not digest:
            policy = p.policies.current.policies.get(job.policy)
            if policy is None:
                return "its policy is no longer among the loaded ones; restore the file first", ()
            p.policies.keep(policy)
            digest = policy.digest
        change: dict[str, object] = {
            **RENEWED,
            "state": State.QUEUED,
            "round": job.round + 1,
            "policy_digest": digest,
            **dict.fromkeys(("verdicts", "clearance", "steps"), ""),
        }
        return "", self._carry_out(intent, replace(job, policy_digest=digest), change)

    def _digest_of_sent(self, job: JobRow) -> str:
        """The policy digest under which other generations of this study went to the same project, "" when none did:
        one study never ends up under two mappings."""
        database = self._parts.database
        for study in database.generations(job.study_key):
            for other in database.jobs_of(job.study_key, study.generation):
                same = (other.project, other.policy) == (job.project, job.policy)
                if same and delivered(database.receipts(other.job_key)):
                    return other.policy_digest
        return ""

    def _release(self, intent: Intent, job: JobRow) -> tuple[str, tuple[Next, ...]]:
        p = self._parts
        if job.held_in == Leg.SCRUB:
            return "its header could not be cleaned, so nothing can be released; use rerun or reject", ()
        renewed: dict[str, object] = {**RENEWED, "round": job.round + 1}
        if job.held_in == Leg.FORWARD and job.clearance:
            return "", self._carry_out(intent, job, {**renewed, "state": State.CLEARED})
        clearance = p.workers.run(
            clear_reviewed_job,
            pairs_of(p, job),
            p.policies.snapshot(job.policy_digest),
            job.job_key,
            job.destination,
            p.keys.seal,
            intent.actor,
            stored_verdicts(job),
        )
        policy = p.policies.of(job.policy_digest)
        self._record(intent, **identity(job))
        record_clearance(p, replace(job, round=job.round + 1), clearance, None, policy)
        change = {**renewed, **cleared(clearance, policy)}
        p.database.carry_out_on_job(intent.serial, DONE, job.job_key, change)
        return "", self._following(job.job_key)

    def _carry_out(self, intent: Intent, job: JobRow, change: dict[str, object]) -> tuple[Next, ...]:
        self._record(intent, **identity(job), **stored(job))
        self._parts.database.carry_out_on_job(intent.serial, DONE, job.job_key, change)
        return self._following(job.job_key)

    def _following(self, job_key: str) -> tuple[Next, ...]:
        job = self._parts.database.job(job_key)
        return next_leg(job) if job is not None else ()

    def _record(self, intent: Intent, **where: object) -> None:
        self._parts.ledger.append(
            EVENTS[intent.kind], f"intent/{intent.serial}", actor=intent.actor, reason_given=intent.reason, **where
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
