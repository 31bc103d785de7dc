"""Retention: originals leave the spool, and held studies are given up, when their policy says so (`retain:`).

    originals   of a generation whose jobs all ended as sent, recalled, shadowed, rejected or refused: `originals_days`
                after the last of them did, the longest of its policies; at once for people who opted out
    held        a job that nobody decided about is rejected after `held_days`, and its originals go with it; what the
                command `scrub` held goes after `held_days` too
    references  embeddings of a study in a release that is no longer open: `references_days` after it joined
    no job      a study that never became a job follows the defaults of `RetainPolicy`, the strictest there are

Nothing of a job that still has work to do, or waits for its release, is touched. Rows stay, so that duplicates and
conflicts are still known. What was removed and came back with a restore goes again. Order: ledger line (idempotent),
file, row; a crash between any two repeats the rest.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.app.parts import Parts
from gateway.app.person.consent import WITHDRAWN
from gateway.app.person.originals import remove_originals, remove_restored
from gateway.app.person.vault import due_records, expire
from gateway.app.release.references import forget, purge
from gateway.app.waiting import Waiting, batches
from gateway.database import Intent, Retained, RetainedJob
from gateway.errors import Hold
from gateway.flow import Next
from gateway.observe import log
from gateway.policy import RetainPolicy
from gateway.study import OVER, State

DAY_S = 24 * 3600.0
AT_ONCE = 200  # study generations in one run: decisions of people wait for it
EXPIRED = "retention_expired"
RETAIN = "retain"  # the kind of an intent that asks for it now
NEVER = float("inf")
AT_ONCE_REASONS = WITHDRAWN | {EXPIRED}  # nothing is kept of these for any time


@dataclass(frozen=True, slots=True)
class Due:
    """Something that retention removes, and when, in UTC seconds; NEVER while it waits for somebody."""

    kind: str  # originals, held, references, scrubbed, vault
    key: str
    at: float


class Retention:
    """Removes what is past its time. `now` is given: UTC seconds."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rules: dict[str, RetainPolicy] = {}  # by policy digest
        self.removed: Counter[str] = Counter()

    def run(self, now: float) -> bool:
        """Give up and remove; True when there may be more to do."""
        self.removed["vault"] += expire(self._parts.home, self._parts.ledger, now)
        self._forget_references(now)
        self._remove_scrubbed(now)
        touched = 0
        for study in self._parts.database.retained(before=now - DAY_S):
            touched += self._one(study, now)
            if touched >= AT_ONCE:
                return True
        self._purge_references(now)
        return False

    def carry_out(self, intent: Intent) -> tuple[Next, ...]:
        """All of it now, because somebody asked."""
        self.after_restore()
        while self.run(time.time()):
            pass
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(self.removed.items()) if count)
        self._parts.database.finish_intent(intent.serial, f"done: {told or 'nothing was due'}")
        return ()

    def after_restore(self) -> None:
        """What was removed once is removed again, wherever it came from."""
        self.removed["restored"] += remove_restored(self._parts)
        self.forget_restored()

    def forget_restored(self) -> None:
        """The same for references alone."""
        p = self._parts
        for member in p.database.members_removed():
            self.removed["restored"] += forget(p.home, p.keys.master, member)

    def due(self) -> list[Due]:
        """Everything that will be removed, whenever that is: what a run at that time would do. Removes nothing."""
        p, found = self._parts, []
        for study in p.database.retained(before=NEVER):
            key = f"{study.study_key}.{study.generation}"
            held = [job for job in study.jobs if job.state == State.HELD]
            found += [Due("held", job.job_key, self._held_until(job)) for job in held]
            if study.jobs:
                found.append(Due("originals", key, self._originals_until(study.jobs)))
            else:
                found.append(Due("held" if study.state == "held" else "originals", key, self._study_until(study)))
        for member, digest in p.database.members_joined(before=NEVER):
            found.append(Due("references", member.job_key, self._references_until(member.joined_at, digest)))
        found += [Due("scrubbed", one.key, self._scrubbed_until(one)) for one in batches(p.home)]
        found += [Due("vault", name, at) for name, at in due_records(p.home)]
        return sorted(found, key=lambda one: (one.at, one.kind, one.key))

    # -- when -----------------------------------------------------------------------------------------------------

    def _rule_of(self, digest: str) -> RetainPolicy:
        if digest not in self._rules:
            try:
                rule = self._parts.policies.of(digest).retain
            except Hold:  # the snapshot is gone, or this build reads it differently
                rule = RetainPolicy()
            self._rules[digest] = rule
        return self._rules[digest]

    def _held_until(self, job: RetainedJob) -> float:
        return job.updated_at + self._rule_of(job.policy_digest).held_days * DAY_S

    def _originals_until(self, jobs: tuple[RetainedJob, ...]) -> float:
        if not all(job.state in OVER for job in jobs):
            return NEVER
        longest_s = max(self._rule_of(job.policy_digest).originals_days for job in jobs) * DAY_S
        return max((job.updated_at + longest_s for job in jobs if job.reason not in AT_ONCE_REASONS), default=0.0)

    def _study_until(self, study: Retained) -> float:
        rule = RetainPolicy()
        if study.state == "held":
            return study.changed_at + rule.held_days * DAY_S
        row = self._parts.database.study(study.study_key, study.generation)
        at_once = row is not None and row.reason in AT_ONCE_REASONS  # a crash kept its originals
        return 0.0 if at_once else study.changed_at + rule.originals_days * DAY_S

    def _references_until(self, joined_at: float, digest: str) -> float:
        return joined_at + self._rule_of(digest).references_days * DAY_S

    def _scrubbed_until(self, waiting: Waiting) -> float:
        if waiting.state == State.AWAITING_RELEASE:
            return NEVER
        return waiting.since + self._rule_of(waiting.policy_digest).held_days * DAY_S

    # -- removing -------------------------------------------------------------------------------------------------

    def _forget_references(self, now: float) -> None:
        p = self._parts
        for member, digest in p.database.members_joined(before=now - DAY_S):
            if now <= self._references_until(member.joined_at, digest):
                continue
            work = member.references
            p.ledger.append("references_removed", f"references_removed/{work}/{member.release}", job=member.job_key)
            count = forget(p.home, p.keys.master, member)
            p.database.references_removed(member)
            self.removed["references"] += count
            log("references_removed", job=member.job_key, count=count)

    def _purge_references(self, now: float) -> None:
        """What no member knows of any more, after the longest time that any policy gives; never an open release's."""
        p = self._parts
        rules = [*self._rules.values(), RetainPolicy(), *(one.retain for one in p.policies.current.policies.values())]
        days = max(rule.references_days for rule in rules)
        waiting = p.database.members_waiting()
        self.removed["references"] += purge(p.home, p.keys.master, now=now, days=days, spare=waiting)

    def _remove_scrubbed(self, now: float) -> None:
        """What `scrub` held: candidates and the note beside them. Run again, it is done again."""
        p = self._parts
        for waiting in batches(p.home):
            if now > self._scrubbed_until(waiting):
                decision = f"held_removed/{waiting.key}/{int(waiting.since)}"
                p.ledger.append("held_removed", decision, job=waiting.key, reason=EXPIRED, stage="retention")
                shutil.rmtree(p.home.held / waiting.key)
                self.removed["scrubbed"] += 1
                log("held_removed", job=waiting.key, reason=EXPIRED)

    def _one(self, study: Retained, now: float) -> bool:
        if not study.jobs:
            gone = self._study_is_over(study, now)
        else:
            jobs = tuple(self._given_up(study, now))
            gone = now > self._originals_until(jobs)
        if gone:
            self.removed["originals"] += remove_originals(self._parts, study.study_key, study.generation)
        return gone

    def _study_is_over(self, study: Retained, now: float) -> bool:
        if now <= self._study_until(study):
            return False
        if study.state == "held":
            self._tell(study, rejected=f"{study.study_key}/g{study.generation}/r{study.round}")
            self._parts.database.set_study(study.study_key, study.generation, state="rejected", reason=EXPIRED)
        return True

    def _given_up(self, study: Retained, now: float) -> Iterator[RetainedJob]:
        """Its jobs; rejected when nobody decided about one in time."""
        for job in study.jobs:
            if job.state != State.HELD or now <= self._held_until(job):
                yield job
                continue
            self._tell(study, rejected=f"{job.job_key}/r{job.round}", job=job.job_key, policy_digest=job.policy_digest)
            self._parts.database.set_job(job.job_key, state=State.REJECTED, reason=EXPIRED)
            candidates = self._parts.home.work / job.job_key
            if candidates.exists():
                shutil.rmtree(candidates)
            self.removed["held"] += 1
            yield RetainedJob(job.job_key, State.REJECTED, EXPIRED, job.round, job.policy_digest, now)

    def _tell(self, study: Retained, *, rejected: str, **facts: object) -> None:
        self._parts.ledger.append(
            "rejected",
            f"expired/{rejected}",
            study=study.study_key,
            generation=study.generation,
            reason=EXPIRED,
            stage="retention",
            **facts,
        )
        self._parts.metrics.decided.labels(str(State.REJECTED), EXPIRED).inc()
        log("rejected", study=study.study_key, generation=study.generation, reason=EXPIRED)
