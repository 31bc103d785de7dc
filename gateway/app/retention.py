"""Retention: originals leave the spool, and held studies are given up, when their policy says so (`retain:`).

    originals   of a generation whose jobs all ended as sent, rejected or refused: `originals_days` after the last of
                them did, the longest of its policies
    held        a job that nobody decided about is rejected after `held_days`, and its originals go with it
    references  embeddings of a study in a release that is no longer open: `references_days` after it joined
    no job      a study that never became a job follows the defaults of `RetainPolicy`, the strictest there are

Nothing of a job that still has work to do, or waits for its release, is touched. Rows stay, so that duplicates and
conflicts are still known. Order: ledger line (idempotent), file, row; a crash between any two repeats the rest.
"""

from __future__ import annotations

import shutil
from collections import Counter

from gateway.app.parts import Parts
from gateway.app.release_references import forget, purge
from gateway.app.vault import expire
from gateway.database import Retained, RetainedJob
from gateway.durable import sync_folder
from gateway.errors import Hold
from gateway.observe import log
from gateway.policy import RetainPolicy
from gateway.study import State

DAY_S = 24 * 3600.0
AT_ONCE = 200  # study generations in one run: decisions of people wait for it
EXPIRED = "retention_expired"
ENDED = frozenset({State.SENT, State.REJECTED, State.REFUSED})


class Retention:
    """Removes what is past its time. `now` is given: UTC seconds."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rules: dict[str, RetainPolicy] = {}  # by policy digest

    def run(self, now: float) -> bool:
        """Give up and remove; True when there may be more to do."""
        expire(self._parts.home, self._parts.ledger, now)
        self._forget_references(now)
        touched = 0
        for study in self._parts.database.retained(before=now - DAY_S):
            touched += self._one(study, now)
            if touched >= AT_ONCE:
                return True
        self._purge_references(now)
        return False

    def _forget_references(self, now: float) -> None:
        p = self._parts
        for member, digest in p.database.members_joined(before=now - DAY_S):
            days = self._rule_of(digest).references_days
            if now - member.joined_at <= days * DAY_S:
                continue
            work = member.references
            p.ledger.append("references_removed", f"references_removed/{work}/{member.release}", job=member.job_key)
            count = forget(p.home, p.keys.master, member)
            p.database.references_removed(member)
            log("references_removed", job=member.job_key, count=count)

    def _purge_references(self, now: float) -> None:
        """What no member knows of any more, after the longest time that any policy gives."""
        p = self._parts
        rules = [*self._rules.values(), RetainPolicy(), *(one.retain for one in p.policies.current.policies.values())]
        purge(p.home, p.keys.master, now=now, days=max(rule.references_days for rule in rules))

    def _one(self, study: Retained, now: float) -> bool:
        if not study.jobs:
            gone = self._study_is_over(study, now)
        else:
            jobs = [self._give_up(study, job, now) for job in study.jobs]
            gone = all(job.state in ENDED for job in jobs) and self._originals_are_due(jobs, now)
        if gone:
            self._remove_originals(study)
        return gone

    def _rule(self, job: RetainedJob) -> RetainPolicy:
        return self._rule_of(job.policy_digest)

    def _rule_of(self, digest: str) -> RetainPolicy:
        if digest not in self._rules:
            try:
                rule = self._parts.policies.of(digest).retain
            except Hold:  # the snapshot is gone, or this build reads it differently
                rule = RetainPolicy()
            self._rules[digest] = rule
        return self._rules[digest]

    def _study_is_over(self, study: Retained, now: float) -> bool:
        rule = RetainPolicy()
        if study.state == "held":
            if now - study.changed_at <= rule.held_days * DAY_S:
                return False
            self._tell(study, rejected=f"{study.study_key}/g{study.generation}/r{study.round}")
            self._parts.database.set_study(study.study_key, study.generation, state="rejected", reason=EXPIRED)
            return True
        return now - study.changed_at > (0.0 if self._expired(study) else rule.originals_days * DAY_S)

    def _expired(self, study: Retained) -> bool:
        """It was given up, and a crash kept its originals."""
        row = self._parts.database.study(study.study_key, study.generation)
        return row is not None and row.reason == EXPIRED

    def _give_up(self, study: Retained, job: RetainedJob, now: float) -> RetainedJob:
        """The job, rejected when nobody decided about it in time."""
        if job.state != State.HELD or now - job.updated_at <= self._rule(job).held_days * DAY_S:
            return job
        self._tell(study, rejected=f"{job.job_key}/r{job.round}", job=job.job_key, policy_digest=job.policy_digest)
        self._parts.database.set_job(job.job_key, state=State.REJECTED, reason=EXPIRED)
        candidates = self._parts.home.work / job.job_key
        if candidates.exists():
            shutil.rmtree(candidates)
        return RetainedJob(job.job_key, State.REJECTED, EXPIRED, job.round, job.policy_digest, now)

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

    def _originals_are_due(self, jobs: list[RetainedJob], now: float) -> bool:
        longest_s = max(self._rule(job).originals_days for job in jobs) * DAY_S
        return all(job.reason == EXPIRED or now - job.updated_at > longest_s for job in jobs)

    def _remove_originals(self, study: Retained) -> None:
        p = self._parts
        rows = [row for row in p.database.instances_of(study.study_key, study.generation) if row.removed_at is None]
        p.ledger.append(
            "originals_removed",
            f"originals_removed/{study.study_key}/g{study.generation}/{study.last_serial}",
            study=study.study_key,
            generation=study.generation,
            instances=dict(Counter(row.use for row in rows)),
        )
        folder = p.spool.root / study.study_key
        for row in rows:
            p.spool.path(row.study_key, row.name).unlink(missing_ok=True)
        if folder.is_dir():
            sync_folder(folder)
        estimates = p.home.estimates / study.study_key
        if estimates.is_dir():
            shutil.rmtree(estimates)
        p.database.mark_removed(row.serial for row in rows)
        log("originals_removed", study=study.study_key, generation=study.generation, count=len(rows))
