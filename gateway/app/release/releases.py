"""Releases at work: a study joins, a release closes, is judged over its people, and is cleared or blocked as a whole.

    open -> auditing -> cleared -> sent        or blocked: its studies are held, with the reason and by how much
                                               or shadowed: it would have been cleared, under a policy in shadow
                                               or escalating, and auditing again: some are made at a stronger level

`closing` ends the time in which studies may join; the leg RELEASE does the rest, and does it again after a crash, to
the same end.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from gateway.app.course import next_leg, release_leg
from gateway.app.parts import Parts
from gateway.app.release.escalation import chosen
from gateway.app.tasks import judge_members
from gateway.database import JobRow, MemberRow, ReleaseRow
from gateway.database.releases import AUDITING, BLOCKED, CLEARED, ESCALATING, OPEN, SENT, SHADOWED
from gateway.errors import EnvironmentFault, StudyError
from gateway.flow import Next
from gateway.gate import ALL, RELEASE, ReleaseJudgement, Score
from gateway.observe import log
from gateway.policy import Policy
from gateway.study import State

ESCALATED = "release_escalated"
HELD_IN = "release"


class Releasing:
    """Judges and settles releases, over our tables."""

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

    def work(self, serial: int) -> tuple[Next, ...]:
        """The leg of a release: judge it when it is closed; say that it is sent when it is."""
        release = self._parts.database.release(serial)
        if release is None:
            return ()
        if release.state == CLEARED:
            self.settle(release)
            return ()
        return self._audit(release) if release.state == AUDITING else ()

    def audit_again(self, job_key: str) -> tuple[Next, ...]:
        """The leg of an escalating release, when this job was the last of it that was on its way."""
        release = self._parts.database.release_of(job_key)
        if release is None or release.state != ESCALATING or not self._parts.database.audit_again(release.serial):
            return ()
        return (release_leg(release),)

    def take_back(self) -> None:
        """The same for every release whose last one ended otherwise: held, or given up."""
        for release in self._parts.database.releases_in(ESCALATING):
            self._parts.database.audit_again(release.serial)

    def _audit(self, release: ReleaseRow) -> tuple[Next, ...]:
        database = self._parts.database
        waiting = database.members(release.serial, State.AWAITING_RELEASE)
        people, least = len({row.person for row in waiting}), least_people(self._policy(release))
        if people < least:  # somebody rejected some of it meanwhile
            database.set_release(release.serial, state=OPEN, reason="too_few_subjects", round=release.round + 1)
            return ()
        said = self._parts.ledger.find(_decision(release, waiting))
        if said is not None and said["event"] == ESCALATED:  # a crash came before the tables were written
            self._write_escalated(release, said["escalated"], said["reason"], said["at"], said["scores"])
        elif said is not None:  # what was decided stands
            state = said["event"].removeprefix("release_")
            self._write_down(release, waiting, state, said["reason"], said["at"], said["scores"])
        else:
            began = time.perf_counter()
            judgement = self._judged(release, waiting)
            self._parts.metrics.stage_seconds.labels("release").observe(time.perf_counter() - began)
            if database.members(release.serial, State.AWAITING_RELEASE) != waiting:
                return self._audit(release)  # somebody rejected one meanwhile: it is about other people now
            policy = self._policy(release)
            again = chosen(self._parts, release, waiting, judgement, policy)
            passed = SHADOWED if policy.forward.shadow else CLEARED
            if again:
                self._escalate(release, waiting, again, judgement)
            else:
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
        return {
            RELEASE: database.blocked_before(release) + release.looks + 1,
            ALL: database.looks_at(release) + 1,
        }

    def fail(self, serial: int, error: StudyError) -> None:
        """The audit itself failed: the release is blocked for that."""
        release = self._parts.database.release(serial)
        if release is not None and release.state == AUDITING:
            waiting = self._parts.database.members(release.serial, State.AWAITING_RELEASE)
            self._end(release, waiting, BLOCKED, ReleaseJudgement((), error.reason, error.at))

    def _escalate(
        self, release: ReleaseRow, audited: Sequence[MemberRow], again: Sequence[str], judgement: ReleaseJudgement
    ) -> None:
        """Those at the weakest level begin again at the next one."""
        scores = self._tell(ESCALATED, release, audited, judgement, escalated=list(again))
        self._write_escalated(release, again, judgement.reason, judgement.at, scores)

    def _write_escalated(
        self, release: ReleaseRow, again: Sequence[str], reason: str, at: str, scores: Sequence[Mapping[str, object]]
    ) -> None:
        facts = {"reason": reason, "at": at[:256], "scores": json.dumps(list(scores))}
        self._parts.database.escalate_release(release.serial, facts, again)
        log("release_escalated", policy=release.policy, count=len(again), reason=reason)

    def _end(self, release: ReleaseRow, audited: Sequence[MemberRow], state: str, judgement: ReleaseJudgement) -> None:
        if state == BLOCKED and release.looks:
            judgement = replace(judgement, at=f"{judgement.at}; judged {release.looks + 1} times")
        scores = self._tell(f"release_{state}", release, audited, judgement)
        self._write_down(release, audited, state, judgement.reason, judgement.at, scores)

    def _tell(
        self,
        event: str,
        release: ReleaseRow,
        audited: Sequence[MemberRow],
        judgement: ReleaseJudgement,
        **facts: object,
    ) -> list[dict[str, object]]:
        """The ledger's line about a judgement; its scores as JSON data."""
        scores = [_plain(score) for score in judgement.scores]
        if judgement.strata:
            facts["strata"] = [asdict(one) for one in judgement.strata]
        first = self._parts.ledger.append(
            event,
            _decision(release, audited),
            **identity_of(release),
            jobs=[row.job_key for row in audited],
            subjects=len({row.person for row in audited}),
            reason=judgement.reason,
            at=judgement.at,
            scores=scores,
            looks=self._looks(release),
            **facts,
        )
        if not first:  # a process that was taken for dead had judged it after all: what it wrote stands
            raise EnvironmentFault("the release was judged by another process in the same moment; the leg is repeated")
        return scores

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
            self._parts.ledger.append("release_sent", f"release_sent/{release.name}", **identity_of(release))
            self._parts.database.set_release(release.serial, state=SENT)
            log("release_sent", policy=release.policy)

    def settle_job(self, job: JobRow) -> None:
        """The same, by one of its jobs that was just sent."""
        release = self._parts.database.release_of(job.job_key)
        if release is not None:
            self.settle(release)

    def _policy(self, release: ReleaseRow) -> Policy:
        return self._parts.policies.of(release.policy_digest)


def least_people(policy: Policy) -> int:
    """Of how many people a release consists at least."""
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


def identity_of(release: ReleaseRow) -> dict[str, object]:
    """Which release, in a ledger line."""
    return {
        "release": release.name,
        "policy_digest": release.policy_digest,
        "project": release.project,
        "destination": release.destination,
    }
