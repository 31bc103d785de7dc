"""What people decide about held studies: release, rerun, reject. Carried out by the engine process, from intents.

Every decision has a name and a reason, and is in the ledger before it takes effect; the row changes in the transaction
that finishes the intent, so that a crash repeats all of a decision or nothing.

- release: let what the gate or the archive held go as it is. A recorded review then issues the clearance.
- rerun: begin again from routing or from the header, under the policies of now (after a policy or route was mended).
- reject: nothing leaves, for good.
- redact: begin again under the same policy, with a box that a reviewer drew (`review_drawn`).

A wish from the review page says which round of the study was on the screen; another round is another study.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from gateway.app.account import identity, stored
from gateway.app.beginning_again import RENEWED, Beginning, needs_two, redacted, rerun, waits_well
from gateway.app.clearing import cleared, pairs_of, record_clearance
from gateway.app.course import next_leg
from gateway.app.notes import NAMES_SOMEBODY, names_somebody
from gateway.app.parts import Parts
from gateway.app.person.retention import RETAIN, Retention
from gateway.app.person.subjects import ERASE, OPT_OUT, Subjects
from gateway.app.recall.recalls import NOTES, RECALL, Recalling
from gateway.app.recall.reissue import REISSUE, Reissuing
from gateway.app.release.closing import CLOSE, Closing
from gateway.app.release.members import member_after_review
from gateway.app.release.releases import HELD_IN
from gateway.app.review.agreement import missing
from gateway.app.review.wishes import FIRST, MOVED, asked_in
from gateway.app.tasks import clear_reviewed_job
from gateway.database import Intent, JobRow, StudyRow
from gateway.flow import Leg, Next
from gateway.observe import log
from gateway.study import Finding, Outcome, State, Verdict

KINDS = ("release", "rerun", "reject", "redact")
EVENTS = {"release": "released", "rerun": "rerun", "reject": "rejected", "redact": "redacted"}
DONE = "done"
# What a policy in shadow looked at, or what waits under one of yesterday, may begin again under the policy of now.
_ALLOWED = {
    "reject": {State.HELD, State.AWAITING_RELEASE},
    "rerun": {State.HELD, State.SHADOWED, State.AWAITING_RELEASE},
}
NOTHING: tuple[Next, ...] = ()


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
        other = self._others().get(intent.kind.partition(":")[0])
        if other is not None:
            return other(intent)
        job = database.job(intent.key)
        study = self._study(intent.key) if job is None else None
        of_study = job.study_key if job else study.study_key if study else ""
        if of_study and names_somebody(self._parts, [of_study], intent.reason):
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
        state = "agreed" if refusal == FIRST else "refused" if refusal else DONE
        log("decided", kind=intent.kind, intent=serial, job=intent.key, state=state)
        return following

    def _others(self) -> dict[str, Callable[[Intent], tuple[Next, ...]]]:
        """Wishes that are not about one held study, by the first word of their kind."""
        recalling, subjects = Recalling(self._parts), Subjects(self._parts)
        return {
            CLOSE: Closing(self._parts).carry_out,
            RECALL: recalling.carry_out,
            NOTES: recalling.carry_out,
            REISSUE: Reissuing(self._parts).carry_out,
            OPT_OUT: subjects.carry_out,
            ERASE: subjects.carry_out,
            RETAIN: Retention(self._parts).carry_out,
        }

    def _study(self, key: str) -> StudyRow | None:
        study_key, _, generation = key.partition(".")
        number = int(generation) if generation.isdecimal() and len(generation) < 10 else 0
        return self._parts.database.study(study_key, number)

    # Each of these returns why it is not possible ("" when it is done) and what comes next.

    def _decide_study(self, intent: Intent, study: StudyRow) -> tuple[str, tuple[Next, ...]]:
        """A study that was held before any job existed: nothing has been cleaned yet."""
        p, asked = self._parts, asked_in(intent.kind)
        if study.state != "held":
            return f"not held: it is {study.state}", ()
        if asked.round not in (0, study.round):
            return MOVED, ()
        match asked.verb:
            case "release" | "redact":
                return (
                    f"nothing of it has been cleaned yet, so nothing can be {EVENTS[asked.verb]}; use rerun or reject",
                    (),
                )
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
        if asked.verb == "reject":
            p.metrics.decided.labels("rejected", "reviewer_rejected").inc()
        return "", following

    def _decide_job(self, intent: Intent, job: JobRow) -> tuple[str, tuple[Next, ...]]:
        asked = asked_in(intent.kind)
        if job.state not in _ALLOWED.get(asked.verb, {State.HELD}):
            return f"not held: it is {job.state}", ()
        if asked.round not in (0, job.round):
            return MOVED, ()
        match asked.verb:
            case "reject":
                change: dict[str, object] = {"state": State.REJECTED, "reason": "reviewer_rejected", "held_in": ""}
                self._carry_out(intent, job, change)
                self._parts.metrics.decided.labels(str(State.REJECTED), "reviewer_rejected").inc()
                return "", ()
            case "rerun":
                waits = waits_well(self._parts, job)
                return (waits, ()) if waits else self._again(intent, rerun(self._parts, intent, job, asked))
            case "redact":
                return self._again(intent, redacted(self._parts, job, asked))
            case "release":
                return self._release(intent, job)
        return f"unknown decision; one of {', '.join(KINDS)}", ()

    def _again(self, intent: Intent, beginning: Beginning | str) -> tuple[str, tuple[Next, ...]]:
        if isinstance(beginning, str):
            return beginning, ()
        return "", self._carry_out(intent, beginning.job, beginning.change, beginning.told)

    def _release(self, intent: Intent, job: JobRow) -> tuple[str, tuple[Next, ...]]:
        p = self._parts
        if job.held_in == Leg.SCRUB:
            return "its header could not be cleaned, so nothing can be released; use rerun or reject", ()
        if job.held_in == HELD_IN:
            return "it was held with its whole release; rerun it under a policy that changes more, or reject it", ()
        renewed: dict[str, object] = {**RENEWED, "round": job.round + 1}
        if job.held_in == Leg.FORWARD and job.clearance:
            return "", self._carry_out(intent, job, {**renewed, "state": State.CLEARED})
        refusal = missing(p, intent, job) if needs_two(p, job) else ""
        if refusal:
            return refusal, ()
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
        again = replace(job, round=job.round + 1)
        member = member_after_review(p, again, pairs_of(p, job), policy) if policy.release is not None else None
        self._record(intent, **identity(job))
        record_clearance(p, again, clearance, None, policy)
        change = {**renewed, **cleared(clearance, policy)}
        if member is not None:
            p.database.join_release(again, change, member, intent.serial)
        else:
            p.database.carry_out_on_job(intent.serial, DONE, job.job_key, change)
        return "", self._following(job.job_key)

    def _carry_out(
        self, intent: Intent, job: JobRow, change: Mapping[str, object], told: Mapping[str, object] | None = None
    ) -> tuple[Next, ...]:
        self._record(intent, **identity(job), **stored(job), **(told or {}))
        self._parts.database.carry_out_on_job(intent.serial, DONE, job.job_key, change)
        return self._following(job.job_key)

    def _following(self, job_key: str) -> tuple[Next, ...]:
        job = self._parts.database.job(job_key)
        return next_leg(job) if job is not None else ()

    def _record(self, intent: Intent, **where: object) -> None:
        self._parts.ledger.append(
            EVENTS[asked_in(intent.kind).verb],
            f"intent/{intent.serial}",
            actor=intent.actor,
            reason_given=intent.reason,
            **where,
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
            scores=entry.get("scores", {}),
        )
        for entry in json.loads(job.verdicts or "[]")
    ]
