"""People's rights: what is on its way is stopped when somebody opts out, and what lies here goes when it is erased.

    opt-out   no study of the person is taken in any more; jobs that have not left are refused, with their originals
    erase     besides, everything that arrived by then goes: originals, candidates, estimates, drawn boxes, embeddings,
              vault records, what `scrub` held

Ledger lines and keyed rows stay: what was sent is never sent again otherwise, no pseudonym goes to somebody else, and a
recall still knows what is where. Every step may be done again; a leg that was under way is met by the next pass.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from gateway.app.account import identity
from gateway.app.parts import Parts
from gateway.app.person.consent import ERASED, OPTED_OUT, WITHDRAWN, require_consent, rules_of, subject_of
from gateway.app.person.originals import remove_originals
from gateway.app.person.vault import forget_records, records_by_work
from gateway.app.release.references import forget
from gateway.app.review.drawn import FOLDER as DRAWN
from gateway.database import Erasure, Intent, JobRow, Subject
from gateway.flow import Next
from gateway.observe import log
from gateway.study import OVER, State

OPT_OUT, ERASE = "opt-out", "erase"
DONE = "done"
AUDITED = "embeddings"  # in the home: embeddings of folders that were audited, under names of their contents
AGAIN_S = 2 * 24 * 3600.0  # an erasure is looked after for this long: a leg may have been under way


class Subjects:
    """Carries out what people asked for."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def require_consent(self, job: JobRow) -> None:
        """Before a leg of a job. Raises Refuse."""
        p = self._parts
        rows = p.database.instances_of(job.study_key, job.generation)
        named = {(row.patient_key, row.issuer_key) for row in rows if row.patient_key}
        mapped = p.mapper.person(job.job_key)
        issuers = {row.issuer_key for row in rows} or {""}
        named |= {(mapped, issuer) for issuer in issuers if mapped}
        arrived_at = min((row.received_at for row in rows), default=None)
        require_consent(p.database, p.mapper, p.policies.current.policies.values(), named, arrived_at=arrived_at)

    def carry_out(self, intent: Intent) -> tuple[Next, ...]:
        """What the commands wrote down: the tables know the person already, here the rest follows."""
        subject = subject_of(intent.key)
        if intent.kind == OPT_OUT:
            self._stop(subject, OPTED_OUT)
        else:
            for erasure in self._parts.database.erasures():
                if erasure.subject == subject:
                    self.erase(erasure)
        self._parts.database.finish_intent(intent.serial, DONE)
        return ()

    def enforce(self, *, everything: bool = False) -> None:
        """Look again after everybody who asked: a leg may have been under way, a restore may have brought something
        back. `everything`: also after erasures of long ago.
        """
        database = self._parts.database
        for entry in database.opted_out():
            self._stop(entry.subject, OPTED_OUT)
        records = records_by_work(self._parts.home)
        for erasure in database.erasures():
            if everything or erasure.done_at is None or time.time() - erasure.done_at < AGAIN_S:
                self.erase(erasure, records)

    def withdraw(self, study_key: str, generation: int) -> None:
        """A generation was refused for its person's sake: nothing of it is kept."""
        for job in self._parts.database.jobs_of(study_key, generation):
            if job.state not in OVER or job.state == State.SENT:
                return  # another target of it
            self._remove_folder(self._parts.home.work / job.job_key)
        remove_originals(self._parts, study_key, generation)

    # -- stopping -------------------------------------------------------------------------------------------------

    def names(self, subject: Subject) -> frozenset[str]:
        """All keyed names of a person. Raises Hold `lookup_unusable`."""
        p = self._parts
        return p.mapper.names_of(subject.person_key, rules_of(p.policies.current.policies.values()))

    def _stop(self, subject: Subject, reason: str, before: float | None = None) -> list[tuple[str, int]]:
        """Refuse whatever of a person has not come to its end; the generations that bear one of the names."""
        p = self._parts
        found = p.database.generations_of(subject, self.names(subject), before)
        for study_key, generation in found:
            jobs = p.database.jobs_of(study_key, generation)
            for job in jobs:
                if job.state not in OVER:
                    self._refuse_job(job, reason)
            study = p.database.study(study_key, generation)
            if study is not None and not jobs and study.state in ("held", "rejected"):
                decision = f"{reason}/{study_key}/g{generation}"
                p.ledger.append("refused", decision, study=study_key, generation=generation, reason=reason)
                p.database.set_study(study_key, generation, state="refused", reason=reason)
            if jobs and any(job.reason in WITHDRAWN for job in p.database.jobs_of(study_key, generation)):
                self.withdraw(study_key, generation)
            elif study is not None and not jobs and study.state != "received":
                remove_originals(p, study_key, generation)
        return found

    def _refuse_job(self, job: JobRow, reason: str) -> None:
        p = self._parts
        p.ledger.append("refused", f"{reason}/{job.job_key}/r{job.round}", **identity(job), reason=reason)
        p.database.set_job(job.job_key, state=State.REFUSED, reason=reason, at="", held_in="", attempt=0)
        p.metrics.decided.labels(str(State.REFUSED), reason).inc()
        log("refused", job=job.job_key, reason=reason)

    # -- erasing --------------------------------------------------------------------------------------------------

    def erase(self, erasure: Erasure, records: Mapping[str, list[str]] | None = None) -> None:
        """One pass over everything that arrived by the time of asking. `records` are those of the vault, by work."""
        p, removed = self._parts, Counter[str]()
        in_vault = records if records is not None else records_by_work(p.home)
        generations = self._stop(erasure.subject, ERASED, erasure.requested_at)
        mapped = p.database.work_of(self.names(erasure.subject), erasure.requested_at)
        work = [one for one in mapped if p.database.job(one[0]) is None]  # of `scrub`, which knows no issuers
        for study_key, generation in generations:
            study = p.database.study(study_key, generation)
            if study is None or study.state == "received":
                continue  # intake refuses it, and removes what there is
            removed["originals"] += remove_originals(p, study_key, generation)
            work += [(job.job_key, study_key) for job in p.database.jobs_of(study_key, generation)]
        for work_key, study_key in sorted(set(work)):
            for folder in (p.home.work / work_key, p.home.held / work_key):
                removed["candidates"] += self._remove_folder(folder)
            removed["vault"] += forget_records(p.home, p.ledger, in_vault.get(work_key, []))
            removed["references"] += self._forget_references(work_key)
            removed["estimates"] += self._remove_folder(p.home.estimates / study_key)
            removed["drawings"] += self._remove_folder(p.home.root.joinpath(*DRAWN, study_key))
        if erasure.done_at is None:
            removed["audited"] += self._remove_folder(p.home.root / AUDITED)
        counts = {name: count for name, count in sorted(removed.items()) if count}
        who = {"subject": erasure.subject.person_key, "issuer": erasure.subject.issuer_key}
        p.ledger.append("subject_erased", f"erased/{erasure.serial}/{int(erasure.requested_at)}", **who, removed=counts)
        if counts or erasure.done_at is None:
            p.database.erased(erasure, counts)
            log("erased", count=sum(counts.values()))
        p.database.checkpoint()

    def _forget_references(self, job_key: str) -> int:
        p, gone = self._parts, 0
        for member in p.database.memberships(job_key):
            gone += forget(p.home, p.keys.master, member)
            p.database.forget_member(member)
        return gone

    def _remove_folder(self, folder: Path) -> int:
        """How many files were in it."""
        if not folder.is_dir():
            return 0
        count = sum(path.is_file() for path in folder.rglob("*"))
        shutil.rmtree(folder)
        return count
