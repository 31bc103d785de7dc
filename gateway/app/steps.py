"""The steps of a study, over our tables: what each leg does, idempotent, the new state written last.

Order inside every leg: work, ledger line (idempotent by decision), table row. A crash between any two of them repeats
the leg with the same inputs, and the same end.
"""

from __future__ import annotations

import time
from functools import partial

from gateway.app import clearing, course
from gateway.app.account import answers, identity, stored
from gateway.app.admission import Admission
from gateway.app.course import next_leg
from gateway.app.decisions import Decisions
from gateway.app.parts import Parts
from gateway.app.person.consent import WITHDRAWN
from gateway.app.person.retention import Retention
from gateway.app.person.subjects import Subjects
from gateway.app.recall import recalls
from gateway.app.recall.recalls import Recalling
from gateway.app.release.releases import Releasing
from gateway.app.routing.openings import Openings, rank_of
from gateway.app.sending import send
from gateway.database import JobRow
from gateway.errors import REASONS, Hold, Refuse, StudyError
from gateway.flow import Leg, Next
from gateway.study import FINAL_STATES, State


class StudySteps:
    """Implements flow.Steps."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._admission = Admission(parts)
        self._decisions = Decisions(parts)
        self._retention = Retention(parts)
        self._releasing = Releasing(parts)
        self._recalling = Recalling(parts)
        self._subjects = Subjects(parts)

    def intake(self, study_key: str, generation: int) -> tuple[Next, ...]:
        began, worked = time.perf_counter(), True
        try:
            worked = self._admission.admit(study_key, generation)
        finally:
            if worked:
                self.parts.metrics.stage_seconds.labels("intake").observe(time.perf_counter() - began)
        return tuple(leg for job in self.parts.database.jobs_of(study_key, generation) for leg in next_leg(job))

    def scrub(self, job_key: str) -> tuple[Next, ...]:
        job = self._job(job_key)
        if job.state == State.QUEUED:
            self._subjects.require_consent(job)
            clearing.scrub(self.parts, job)
        return next_leg(self._job(job_key))

    def gate(self, job_key: str) -> tuple[Next, ...]:
        job = self._job(job_key)
        if job.state == State.SCRUBBED:
            self._subjects.require_consent(job)
            clearing.gate(self.parts, job)
        return (*next_leg(self._job(job_key)), *self._releasing.audit_again(job_key))

    def forward(self, job_key: str) -> tuple[Next, ...]:
        job = self._job(job_key)
        if job.state == State.CLEARED:
            self._subjects.require_consent(job)
            send(self.parts, job)
            if self._job(job_key).state == State.RECALLED:
                return recalls.recalled_again(self.parts, job_key)
            self._releasing.settle_job(job)
        return next_leg(self._job(job_key))

    def decide(self, serial: int) -> tuple[Next, ...]:
        return self._decisions.decide(serial)

    def release(self, serial: int) -> tuple[Next, ...]:
        return self._releasing.work(serial)

    def recall(self, serial: int) -> tuple[Next, ...]:
        return self._recalling.send_note(serial)

    def retain(self) -> bool:
        more = self._retention.run(time.time())
        if not more:
            self._subjects.enforce()
        return more

    # -- ends -----------------------------------------------------------------------------------------------------

    def fail(self, task: Next, error: StudyError) -> None:
        state = State.REFUSED if isinstance(error, Refuse) else State.HELD
        match task.leg:
            case Leg.INTAKE:
                self._end_study(task, state, error)
            case Leg.DECIDE:
                # Whether its text quotes the study is not known then, and nothing was decided that would need it.
                self.parts.database.withhold_intent(int(task.key), f"not possible: {REASONS[error.reason].says}")
            case Leg.RELEASE:
                self._releasing.fail(int(task.key), error)
            case Leg.RECALL:
                self._recalling.fail(int(task.key), error)
            case Leg.RETAIN:
                pass  # it was counted; the next hour tries again
            case _:
                self._end_job(task, state, error)

    def _end_study(self, task: Next, state: State, error: StudyError) -> None:
        p = self.parts
        study = p.database.study(task.key, task.generation)
        if study is None or study.state != "received" or study.round != task.round:
            return  # it had been decided before something else failed
        facts = {"reason": error.reason, "at": error.at, "stage": str(task.leg)}
        decision = f"{state}/{task.key}/g{task.generation}/r{task.round}"
        p.ledger.append(str(state), decision, study=task.key, generation=task.generation, **facts)
        p.database.set_study(task.key, task.generation, state=str(state), reason=error.reason)
        p.metrics.decided.labels(str(state), error.reason).inc()
        if error.reason in WITHDRAWN:
            self._subjects.withdraw(task.key, task.generation)

    def _end_job(self, task: Next, state: State, error: StudyError) -> None:
        p = self.parts
        job = p.database.job(task.key)
        if job is None or job.state in FINAL_STATES or job.round != task.round:
            return  # the leg had done its work before something else failed
        facts: dict[str, object] = {"reason": error.reason, "at": error.at, "stage": str(task.leg), **stored(job)}
        if job.level:
            facts["attempt"] = job.level + 1
        if task.leg == Leg.FORWARD:
            facts["receipts"] = answers(p.database.receipts(job.job_key).values())
        p.ledger.append(str(state), f"{state}/{job.job_key}/r{job.round}", **identity(job), **facts)
        p.database.set_job(job.job_key, state=state, reason=error.reason, at=error.at[:256], held_in=str(task.leg))
        p.metrics.decided.labels(str(state), error.reason).inc()
        if error.reason in WITHDRAWN:
            self._subjects.withdraw(job.study_key, job.generation)

    # -- tries ----------------------------------------------------------------------------------------------------

    def lane(self, task: Next) -> str:
        if task.leg == Leg.RECALL:
            row = self.parts.database.recalled_one(int(task.key))
            return row.destination if row is not None else "none"
        job = self.parts.database.job(task.key)
        return job.destination if job is not None else "none"

    def is_learned(self, task: Next) -> bool:
        match task.leg:
            case Leg.SCRUB | Leg.GATE:
                job = self.parts.database.job(task.key)
                return job is not None and self.parts.policies.is_learned(job.policy_digest)
            case Leg.RELEASE:
                release = self.parts.database.release(int(task.key))
                return release is not None and self.parts.policies.is_learned(release.policy_digest)
        return False

    def rank(self, task: Next) -> int:
        job = self.parts.database.job(task.key) if task.leg in {Leg.SCRUB, Leg.GATE, Leg.FORWARD} else None
        return self._rank(task.leg, job.route if job is not None else "")

    def _rank(self, leg: Leg, route: str) -> int:
        return rank_of(leg, route, self.parts.policies.current.routes)

    def is_open(self, task: Next) -> bool:
        return self._openings().lets(task, self.lane(task))

    def _openings(self) -> Openings:
        return Openings(self.parts.database, self.parts.policies.current.destinations)

    def pause_s(self, tries: int) -> float:
        settings = self.parts.settings
        return min(settings.retry_max_s, settings.retry_base_s * 2.0 ** min(tries, 30))

    def attempts_left(self, task: Next) -> bool:
        return task.tries + 1 < self.parts.settings.retry_limit

    def note_attempt(self, task: Next, reason: str) -> None:
        if task.leg in {Leg.SCRUB, Leg.GATE, Leg.FORWARD}:
            self.parts.database.set_job(task.key, attempt=task.tries + 1, reason=reason)
        if task.leg == Leg.RECALL:
            self.parts.database.set_recalled(int(task.key), attempt=task.tries + 1, reason=reason)

    def unforeseen(self, task: Next) -> None:
        self.parts.metrics.library_failures.labels(str(task.leg)).inc()

    def pending(self, *, older_than_s: float = 0.0) -> list[Next]:
        """Every leg that our tables say is due, for a restart and for the reconciler."""
        self._releasing.take_back()
        lets, rank = self._openings().lets, partial(self._rank, Leg.SCRUB)
        return course.pending(self.parts.database, lets, rank, older_than_s=older_than_s)

    def _job(self, job_key: str) -> JobRow:
        job = self.parts.database.job(job_key)
        if job is None:
            raise Hold("stage_failed", at="job row missing")
        return job
