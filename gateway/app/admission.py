"""From received objects to jobs: examine, sort out, route. The intake leg of a study generation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from gateway.app.intake import Examined, Known, examine, persons_of, require_sound, sort_out
from gateway.app.parts import Parts
from gateway.app.person.consent import require_consent
from gateway.app.sending import delivered
from gateway.database import InstanceRow, Job, JobRow
from gateway.errors import Hold
from gateway.observe import log
from gateway.pseudonyms import Keys
from gateway.route import gather, route
from gateway.study import State


def job_key_of(
    keys: Keys, study_key: str, generation: int, project: str, policy: str, destination: str, issue: int = 1
) -> str:
    """Opaque and fixed: a replayed intake names the same jobs."""
    again = (f"issue {issue}",) if issue > 1 else ()
    return keys.opaque("job", study_key, str(generation), project, policy, destination, *again)


class Admission:
    """Decides about one closed study generation at a time."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def admit(self, study_key: str, generation: int) -> bool:
        """Turn a generation into jobs, idempotent. False when that was done before. Raises Hold or Refuse when it
        cannot become any.
        """
        p = self.parts
        study = p.database.study(study_key, generation)
        if study is None or study.state != "received":
            return False
        rows = p.database.instances_of(study_key, generation)
        known = self._known(study_key, generation)
        examined = self._examine(rows)
        uses = sort_out(examined, known)
        p.database.set_instances(
            {
                "serial": row.serial,
                "sha256": entry.sha256,
                "patient_key": entry.patient_key,
                "issuer_key": entry.issuer_key,
                "use": use,
            }
            for row, entry, use in zip(rows, examined, uses, strict=True)
        )
        self._require_consent(rows, examined)
        require_sound(examined, uses)
        self._require_unshared(study_key, [row for row, use in zip(rows, uses, strict=True) if use == "use"])
        persons = persons_of(examined, known)
        if len(persons) > 1 and not p.policies.merge_people():
            raise Hold("mixed_patients")
        if known and "use" not in uses:
            p.ledger.append(
                "duplicate",
                f"duplicate/{study_key}/g{generation}",
                study=study_key,
                generation=generation,
                instances=dict(Counter(uses)),
            )
            p.database.merge_generation(study_key, generation, into=max(entry.generation for entry in known))
            log("duplicates_only", study=study_key, generation=generation, instances=len(rows))
            return True
        name, new_jobs = self._jobs(study_key, generation, rows, persons)
        p.ledger.append(
            "routed",
            f"routed/{study_key}/g{generation}/r{study.round}",
            study=study_key,
            generation=generation,
            instances=dict(Counter(uses)),
            route=name,
            jobs=[{"job": job.job_key, "policy": job.policy, "policy_digest": job.policy_digest} for job in new_jobs],
        )
        p.database.route_study(study_key, generation, new_jobs)
        return True

    def _require_consent(self, rows: Sequence[InstanceRow], examined: Sequence[Examined]) -> None:
        p = self.parts
        named = {person for entry in examined for person in entry.persons}
        arrived_at = min((row.received_at for row in rows), default=None)
        policies = p.policies.current.policies.values()
        require_consent(p.database, p.mapper, policies, named, arrived_at=arrived_at)

    def _examine(self, rows: Sequence[InstanceRow]) -> list[Examined]:
        p = self.parts
        return p.workers.each(
            [partial(examine, p.spool.path(row.study_key, row.name), row.name, p.keys.master) for row in rows]
        )

    def _known(self, study_key: str, generation: int) -> list[Known]:
        """Instances of the study's earlier generations that still stand. What was rejected may come again, corrected;
        not so what had been sent before: it would be sent again with other bytes (DESIGN.md invariant 4).
        """
        database = self.parts.database
        gone = {
            row.generation
            for row in database.generations(study_key)
            if row.generation != generation and self._is_rejected(row.study_key, row.generation, row.state)
        }
        return [
            Known(row.sop_key, row.sha256, row.patient_key, row.generation)
            for row in database.instances_of(study_key)
            if row.generation < generation and row.generation not in gone and row.use == "use"
        ]

    def _require_unshared(self, study_key: str, rows: Sequence[InstanceRow]) -> None:
        """Raise Hold when another study brought one of these SOP Instance UIDs before: it would leave under the same
        new UID, and the archive would keep one of the two (DESIGN.md invariant 4).
        """
        taken_in = self.parts.database.taken_in({row.sop_key for row in rows})
        for row in rows:
            others = {(study, number) for study, number, _ in taken_in[row.sop_key] if study != study_key}
            if any(self._came_before(row, *other) for other in sorted(others)):
                raise Hold("conflicting_instance", at=row.name)

    def _came_before(self, row: InstanceRow, study_key: str, generation: int) -> bool:
        """Whether this generation of another study stands, and had the UID of `row` first or is on its way already."""
        database = self.parts.database
        study = database.study(study_key, generation)
        if study is None:
            return True  # an object without its study: nothing says that it did not leave
        if self._is_rejected(study_key, generation, study.state):
            return False
        same = [one.serial for one in database.instances_of(study_key, generation) if one.sop_key == row.sop_key]
        return study.routed_at is not None or min(same) < row.serial

    def _is_rejected(self, study_key: str, generation: int, state: str) -> bool:
        jobs = self.parts.database.jobs_of(study_key, generation)
        return state in {"rejected", "refused"} or (bool(jobs) and not any(map(self._stands, jobs)))

    def _stands(self, job: JobRow) -> bool:
        """False when a job ended without anything of it having left."""
        ended = job.state in {State.REJECTED, State.REFUSED, State.SHADOWED}
        return not ended or bool(delivered(self.parts.database.receipts(job.job_key)))

    def _jobs(
        self, study_key: str, generation: int, rows: Sequence[InstanceRow], persons: frozenset[str]
    ) -> tuple[str, list[Job]]:
        """The jobs of a generation: those of another one again (same policy digest), else by routing.

        The nearest earlier generation with jobs decides; a later one only when a person reran this one after it.
        """
        p = self.parts
        paths = [p.spool.path(row.study_key, row.name) for row in rows]
        others = [row.generation for row in p.database.generations(study_key) if row.generation != generation]
        for other in sorted(others, key=lambda number: (number > generation, abs(number - generation))):
            jobs = _last_issues([job for job in p.database.jobs_of(study_key, other) if self._stands(job)])
            if jobs:
                if any(job.state == State.RECALLED for job in jobs):
                    raise Hold("recalled")
                for job in jobs if len(persons) > 1 else ():
                    p.mapper.person_of(persons, p.policies.of(job.policy_digest).header.patient_id)
                return jobs[0].route, [self._again(job, generation) for job in jobs]
        found = route(
            gather(paths), p.policies.current.routes, cohort_key=p.keys.cohort, cohorts_folder=p.settings.policies
        )
        new_jobs = []
        for target in found.targets:
            policy = p.policies.current.policies[target.policy]
            person = p.mapper.person_of(persons, policy.header.patient_id)
            p.policies.keep(policy)
            new_jobs.append(
                Job(
                    job_key=job_key_of(
                        p.keys, study_key, generation, target.project, target.policy, target.destination
                    ),
                    study_key=study_key,
                    generation=generation,
                    route=found.name,
                    project=target.project,
                    policy=target.policy,
                    policy_digest=policy.digest,
                    destination=target.destination,
                    subject=p.keys.opaque("subject", target.project, person),
                )
            )
        return found.name, new_jobs

    def _again(self, job: JobRow, generation: int) -> Job:
        fields = {name: getattr(job, name) for name in Job.__dataclass_fields__}
        key = job_key_of(
            self.parts.keys, job.study_key, generation, job.project, job.policy, job.destination, job.issue
        )
        return Job(**{**fields, "job_key": key, "generation": generation})


def _last_issues(jobs: Sequence[JobRow]) -> list[JobRow]:
    """Of each target the newest issue."""
    last: dict[tuple[str, str, str], JobRow] = {}
    for job in sorted(jobs, key=lambda job: job.issue):
        last[job.project, job.policy, job.destination] = job
    return sorted(last.values(), key=lambda job: job.job_key)
