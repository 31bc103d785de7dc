"""Releases at work: a study joins, a release closes, is judged over its people, and is cleared or blocked as a whole.

    open -> auditing -> cleared -> sent        or blocked: its studies are held, with the reason and by how much
                                               or shadowed: it would have been cleared, under a policy in shadow

A person closes a release (`release close`), or the night does (`close: nightly`), once it has `min_subjects` people.
Closing changes a row; the leg RELEASE does the rest, and does it again after a crash, to the same end.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from gateway.app.course import next_leg, release_leg
from gateway.app.notes import NAMES_SOMEBODY, names_somebody
from gateway.app.parts import Parts
from gateway.app.release.references import References
from gateway.app.tasks import embed_member, judge_members
from gateway.database import Intent, JobRow, MemberRow, NewMember, ReleaseRow
from gateway.database.releases import AUDITING, BLOCKED, CLEARED, OPEN, SENT, SHADOWED
from gateway.errors import Hold, StudyError
from gateway.flow import Next
from gateway.gate import ALL, RELEASE, Pair, ReleaseJudgement, Score
from gateway.observe import log
from gateway.policy import Policy
from gateway.study import State

CLOSE = "close"  # the kind of an intent whose key is the name of a release
DONE = "done"
HELD_IN = "release"
DAY_S = 86400.0


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


class Releasing:
    """Closes, judges and settles releases, over our tables."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def take_in(self) -> int:
        """Jobs that wait for a release and are in none: an earlier version knew no releases. They are judged again,
        and join one. Returns how many.
        """
        lost = [
            job
            for job in self._parts.database.jobs_in(State.AWAITING_RELEASE)
            if self._parts.database.release_of(job.job_key) is None
        ]
        for job in lost:
            self._parts.database.set_job(job.job_key, state=State.SCRUBBED)
        return len(lost)

    # -- closing --------------------------------------------------------------------------------------------------

    def carry_out(self, intent: Intent) -> tuple[Next, ...]:
        """What a person wished: close a release by name. What is not possible is told in the intent's outcome."""
        database = self._parts.database
        release = database.release_named(intent.key)
        refusal = "no such release" if release is None else self._refusal(release)
        if release is None or refusal:
            database.finish_intent(intent.serial, refusal)
            return ()
        members = [row.job_key for row in database.members(release.serial)]
        if names_somebody(self._parts, (job.study_key for job in database.jobs_of_members(members)), intent.reason):
            database.withhold_intent(intent.serial, NAMES_SOMEBODY)
            return ()
        self._close(release, f"intent/{intent.serial}", actor=intent.actor, reason_given=intent.reason)
        database.finish_intent(intent.serial, DONE)
        return (release_leg(release),)

    def _refusal(self, release: ReleaseRow) -> str:
        if release.state == AUDITING:  # a crash came between closing it and finishing the intent
            return ""
        if release.state != OPEN:
            return f"not open: it is {release.state}"
        try:
            least, people = self._least(release), self._parts.database.waiting_people(release.serial)
        except Hold:  # its policy is gone: it can be closed, which ends it, and its studies begin again
            return ""
        return f"it has {people} people of at least {least}; collect more, then close it" if people < least else ""

    def close_tonight(self, now: float) -> list[Next]:
        """Every open release whose policy closes nightly, once after each midnight (UTC), when it has its people."""
        closed = []
        for release in self._parts.database.releases_in(OPEN):
            if now // DAY_S <= release.checked_at // DAY_S:
                continue
            self._parts.database.set_release(release.serial, checked_at=now)
            try:
                policy = self._policy(release)
            except Hold:
                continue
            if policy.release is None or policy.release.close != "nightly" or self._refusal(release):
                continue
            self._close(release, f"night/{release.name}/{int(now // DAY_S)}")
            closed.append(release_leg(release))
        return closed

    def _close(self, release: ReleaseRow, decision: str, **facts: object) -> None:
        people = self._parts.database.waiting_people(release.serial)
        self._parts.ledger.append("release_closed", decision, **_identity(release), subjects=people, **facts)
        self._parts.database.close_release(release.serial)
        log("release_closed", policy=release.policy, count=people)

    # -- judging --------------------------------------------------------------------------------------------------

    def work(self, serial: int) -> tuple[Next, ...]:
        """The leg of a release: judge it when it is closed; say that it is sent when it is."""
        release = self._parts.database.release(serial)
        if release is None:
            return ()
        if release.state == CLEARED:
            self.settle(release)
            return ()
        return self._audit(release) if release.state == AUDITING else ()

    def _audit(self, release: ReleaseRow) -> tuple[Next, ...]:
        database = self._parts.database
        waiting = database.members(release.serial, State.AWAITING_RELEASE)
        people, least = len({row.person for row in waiting}), self._least(release)
        if people < least:  # somebody rejected some of it meanwhile
            database.set_release(release.serial, state=OPEN, reason="too_few_subjects", round=release.round + 1)
            return ()
        said = self._parts.ledger.find(_decision(release, waiting))
        if said is not None:  # a crash came before the tables were written: what was decided stands
            state = said["event"].removeprefix("release_")
            self._write_down(release, waiting, state, said["reason"], said["at"], said["scores"])
        else:
            began = time.perf_counter()
            judgement = self._judged(release, waiting)
            self._parts.metrics.stage_seconds.labels("release").observe(time.perf_counter() - began)
            if database.members(release.serial, State.AWAITING_RELEASE) != waiting:
                return self._audit(release)  # somebody rejected one meanwhile: it is about other people now
            passed = SHADOWED if self._policy(release).forward.shadow else CLEARED
            self._end(release, waiting, passed if judgement.passes else BLOCKED, judgement)
        jobs = (database.job(row.job_key) for row in waiting)
        return tuple(leg for job in jobs if job is not None for leg in next_leg(job))

    def _judged(self, release: ReleaseRow, waiting: Sequence[MemberRow]) -> ReleaseJudgement:
        policy = self._policy(release)
        if not policy.gate.release:
            return ReleaseJudgement(())
        database = self._parts.database
        return self._parts.workers.run(
            judge_members,
            self._parts.policies.snapshot(release.policy_digest),
            self._parts.home.root,
            self._parts.keys.master,
            list(waiting),
            database.released_before(release),
            self._looks(release),
            int(self._parts.keys.opaque("release", release.name, release.policy_digest)[:12], 16),
        )

    def _looks(self, release: ReleaseRow) -> dict[str, int]:
        """How often the policy was looked at by scope, this time included: what each look spends follows from it."""
        database = self._parts.database
        return {RELEASE: database.blocked_before(release) + 1, ALL: database.looks_at(release) + 1}

    def fail(self, serial: int, error: StudyError) -> None:
        """The audit itself failed: the release is blocked for that."""
        release = self._parts.database.release(serial)
        if release is not None and release.state == AUDITING:
            waiting = self._parts.database.members(release.serial, State.AWAITING_RELEASE)
            self._end(release, waiting, BLOCKED, ReleaseJudgement((), error.reason, error.at))

    def _end(self, release: ReleaseRow, audited: Sequence[MemberRow], state: str, judgement: ReleaseJudgement) -> None:
        keys, scores = [row.job_key for row in audited], [_plain(score) for score in judgement.scores]
        self._parts.ledger.append(
            f"release_{state}",
            _decision(release, audited),
            **_identity(release),
            jobs=keys,
            subjects=len({row.person for row in audited}),
            reason=judgement.reason,
            at=judgement.at,
            scores=scores,
            looks=self._looks(release),
        )
        self._write_down(release, audited, state, judgement.reason, judgement.at, scores)

    def _write_down(
        self,
        release: ReleaseRow,
        audited: Sequence[MemberRow],
        state: str,
        reason: str,
        at: str,
        scores: Sequence[Mapping[str, object]],
    ) -> None:
        """What the ledger says of a release, into the tables."""
        p, keys = self._parts, [row.job_key for row in audited]
        job: dict[str, object] = {"state": State.CLEARED, "attempt": 0}
        if state == BLOCKED:
            job = {"state": State.HELD, "reason": reason, "at": at[:256], "held_in": HELD_IN}
        facts = {"reason": reason, "at": at[:256], "scores": json.dumps(list(scores))}
        p.database.end_audit(release.serial, {**facts, "state": state}, keys, job)
        if state == BLOCKED:
            p.metrics.decided.labels(str(State.HELD), reason).inc(len(keys))
        log(f"release_{state}", policy=release.policy, count=len(keys), reason=reason)

    def settle(self, release: ReleaseRow) -> None:
        """Cleared -> sent, when everything of it has left or was given up."""
        if release.state == CLEARED and self._parts.database.all_sent(release.serial):
            self._parts.ledger.append("release_sent", f"release_sent/{release.name}", **_identity(release))
            self._parts.database.set_release(release.serial, state=SENT)
            log("release_sent", policy=release.policy)

    def settle_job(self, job: JobRow) -> None:
        """The same, by one of its jobs that was just sent."""
        release = self._parts.database.release_of(job.job_key)
        if release is not None:
            self.settle(release)

    def _policy(self, release: ReleaseRow) -> Policy:
        return self._parts.policies.of(release.policy_digest)

    def _least(self, release: ReleaseRow) -> int:
        policy = self._policy(release)
        return policy.release.min_subjects if policy.release is not None else 1


def _decision(release: ReleaseRow, audited: Sequence[MemberRow]) -> str:
    """What the ledger calls the outcome of an audit: of this round, about these studies."""
    content = hashlib.sha256("\0".join(row.job_key for row in audited).encode()).hexdigest()[:16]
    return f"release/{release.name}/r{release.round}/{content}"


def _plain(score: Score) -> dict[str, object]:
    """As JSON data: what is no number is null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(score).items()
    }


def _identity(release: ReleaseRow) -> dict[str, object]:
    return {
        "release": release.name,
        "policy_digest": release.policy_digest,
        "project": release.project,
        "destination": release.destination,
    }
