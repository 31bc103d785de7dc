"""Issuing anew what was recalled: under the policy of now, and under instance and series UIDs of a new issue.

What was sent is never sent again with other bytes, so the number of the issue enters the UIDs of the study's own
instances and series, wherever in the study they are named; the study's own UID and what other studies are called stay.
A new job does it, from the originals; the ledger links it with the one that was recalled.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pydicom

from gateway.app.admission import job_key_of
from gateway.app.course import next_leg
from gateway.app.parts import Parts
from gateway.app.person.mapping import Work
from gateway.app.sending import delivered
from gateway.database import InstanceRow, Intent, Job, JobRow
from gateway.errors import Hold
from gateway.flow import Next
from gateway.header.uids import mapped_as
from gateway.observe import log
from gateway.policy import Policy
from gateway.pseudonyms import Pseudonyms
from gateway.study import State

REISSUE = "reissue"  # the kind of an intent whose key is a job, or the number of a recall
_OWN = ["SOPInstanceUID", "SeriesInstanceUID"]


class Reissuing:
    """Carries out one wish at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def carry_out(self, intent: Intent) -> tuple[Next, ...]:
        """All or nothing: what is not possible for one job is told in the intent's outcome, and none is begun."""
        database = self._parts.database
        recall = int(intent.key) if intent.key.isdecimal() and len(intent.key) < 10 else 0
        keys = [row.job_key for row in database.recalled_in(recall)] or [intent.key]
        jobs = [job for job in map(database.job, keys) if job is not None]
        old = [job for job in jobs if job.state == State.RECALLED]
        waiting = [job for job in old if database.last_issue(job) == job.issue]
        if not waiting:
            issued = "all of it was issued anew before" if old else "nothing of it was recalled"
            database.finish_intent(intent.serial, issued)
            return ()
        planned: list[tuple[JobRow, Job, Policy]] = []
        for job in waiting:
            found = self._planned(job)
            if isinstance(found, str):
                database.finish_intent(intent.serial, f"{job.job_key}: {found}")
                return ()
            planned.append((job, *found))
        issues = [(new, self._uid_keys(intent, job, new, policy)) for job, new, policy in planned]
        database.add_issues(issues, intent.serial, f"done: {len(planned)} studies")
        begun = [job for job in (database.job(new.job_key) for _, new, _ in planned) if job is not None]
        return tuple(leg for job in begun for leg in next_leg(job))

    def _planned(self, job: JobRow) -> tuple[Job, Policy] | str:
        """The job that issues it anew, or why there can be none."""
        p = self._parts
        rows = self._originals(job)
        if not rows or not all(p.spool.path(row.study_key, row.name).exists() for row in rows):
            return "its originals are gone; there is nothing to issue it from"
        digest = self._standing_digest(job)
        policy = p.policies.of(digest) if digest else p.policies.current.policies.get(job.policy)
        if policy is None:
            return "its policy is no longer among the loaded ones; restore the file first"
        if "retain-uids" in policy.header.options:
            return "its policy keeps UIDs, so that another issue would bear those of the first"
        number = p.database.last_number(job.project, job.study_key) + 1
        key = job_key_of(p.keys, job.study_key, job.generation, job.project, job.policy, job.destination, number)
        fields = {name: getattr(job, name) for name in Job.__dataclass_fields__}
        return Job(**{**fields, "job_key": key, "policy_digest": policy.digest, "issue": number}), policy

    def _originals(self, job: JobRow) -> list[InstanceRow]:
        rows = self._parts.database.instances_of(job.study_key, job.generation)
        return [row for row in rows if row.use == "use"]

    def _standing_digest(self, job: JobRow) -> str:
        """The policy that another part of the study left under, and still stands under: one study, one policy."""
        database = self._parts.database
        for study in database.generations(job.study_key):
            for other in database.jobs_of(job.study_key, study.generation):
                same = (other.project, other.policy) == (job.project, job.policy)
                if same and other.state != State.RECALLED and delivered(database.receipts(other.job_key)):
                    return other.policy_digest
        return ""

    def _uid_keys(self, intent: Intent, job: JobRow, new: Job, policy: Policy) -> frozenset[str]:
        """Keyed hashes of the UIDs that the number enters; told in the ledger."""
        p = self._parts
        p.policies.keep(policy)
        rows = self._originals(job)
        persons = frozenset(row.patient_key for row in rows)
        pseudonyms = p.mapper.mapping(Work(new.job_key, job.project, job.study_key, persons), policy.header)
        plain = replace(pseudonyms, own=None)
        paths = [p.spool.path(row.study_key, row.name) for row in rows]
        keys = p.workers.each([partial(own_uid_keys, path, plain) for path in paths])
        p.ledger.append(
            "reissued",
            f"reissued/{new.job_key}",
            job=new.job_key,
            before=job.job_key,
            study=job.study_key,
            generation=job.generation,
            policy_digest=new.policy_digest,
            issue=new.issue,
            actor=intent.actor,
            reason_given=intent.reason,
        )
        log("reissued", job=new.job_key, count=len(rows))
        return frozenset[str]().union(*keys)


def own_uid_keys(path: Path, pseudonyms: Pseudonyms) -> frozenset[str]:
    """Keyed hashes of the UIDs that an original gives to itself and to its series; in a worker. Raises Hold."""
    try:
        header = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=_OWN, force=True)
    except (OSError, pydicom.errors.InvalidDicomError):
        raise Hold("unreadable_object", at=path.name) from None
    found = (str(header.get(word) or "").strip(" \0") for word in _OWN)
    return frozenset(pseudonyms.uid_key(mapped_as(uid)) for uid in found if uid)
