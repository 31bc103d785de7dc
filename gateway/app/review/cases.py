"""What a study under review consists of: its objects, findings, what may be decided about it. No value leaves here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gateway.app.clearing import pairs_of
from gateway.app.levels import level_told
from gateway.app.parts import Parts
from gateway.app.release.releases import HELD_IN
from gateway.app.review.frames import Facts, facts_of, facts_of_each
from gateway.app.review.pointers import pointer
from gateway.app.review.wishes import FIRST, asked_in
from gateway.app.waiting import Waiting, batches, job_waiting, study_waiting
from gateway.database import JobRow, StudyRow
from gateway.errors import REASONS, Hold, UsageError
from gateway.flow import Leg
from gateway.gate import Pair
from gateway.review.desk import Case, Entry, Thing
from gateway.study import State

MOST_KNOWN, AT_ONCE = 50_000, 200
Agreed = Mapping[str, frozenset[str]]  # key -> who agreed to its release in this round
Runner = Callable[[Callable[[], Any], Hold], Any]
NO_RELEASE = {  # where it is held -> why nobody can let it go as it is
    str(Leg.INTAKE): "nothing of it has been cleaned yet",
    str(Leg.SCRUB): "it could not be cleaned to the end; mend the cause, or redact, and let it run again",
    HELD_IN: "it was held with its whole release; run it again under a policy that changes more, or reject it",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a key names: a job, or a study generation without one; what `scrub` held has neither files nor rounds."""

    key: str
    waiting: Waiting
    study_key: str = ""
    round: int = 0
    policy_digest: str = ""
    job: JobRow | None = None
    study: StudyRow | None = None
    pairs: tuple[Pair, ...] = ()

    def pair(self, name: str) -> Pair:
        """Raises UsageError for an object that is not of this study."""
        found = next((pair for pair in self.pairs if pair.name == name), None)
        if found is None:
            raise UsageError("no such object in this study")
        return found


class CaseFiles:
    """Reads one gateway. `run` carries a call out in a worker process."""

    def __init__(self, parts: Parts, run: Runner) -> None:
        self._parts = parts
        self._run = run
        self._known: dict[Path, Facts] = {}  # spooled files never change: each is looked at once
        self._two: dict[str, bool] = {}  # by policy digest

    def subject(self, key: str) -> Subject | None:
        """None for a key that there never was."""
        database = self._parts.database
        job = database.job(key)
        if job is not None:
            digest = job.policy_digest
            return Subject(key, job_waiting(job), job.study_key, job.round, digest, job, None, tuple(self._pairs(job)))
        study_key, _, generation = key.partition(".")
        number = int(generation) if generation.isascii() and generation.isdigit() and len(generation) < 10 else 0
        study = database.study(study_key, number)
        if study is not None and not database.jobs_of(study_key, number):
            pairs = tuple(self._originals(study))
            return Subject(key, study_waiting(study), study_key, study.round, "", None, study, pairs)
        batch = next((one for one in batches(self._parts.home) if one.key == key), None)
        return Subject(key, batch) if batch is not None else None

    def open_subject(self, key: str) -> Subject:
        """One that is held now: only then may it be looked at or decided. Raises UsageError."""
        subject = self.subject(key)
        closed = "there is no such study" if subject is None else _closed(subject)
        if subject is None or closed:
            raise UsageError(closed)
        return subject

    def _pairs(self, job: JobRow) -> list[Pair]:
        """Under the names that findings use. What the scrub left out is not among them."""
        return pairs_of(self._parts, job)

    def _originals(self, study: StudyRow) -> list[Pair]:
        rows = self._parts.database.instances_of(study.study_key, study.generation)
        rows.sort(key=lambda row: (row.sop_key, row.name))
        nowhere = self._parts.home.work / "none"
        return [
            Pair(f"{i:05d}", self._parts.spool.path(row.study_key, row.name), nowhere / f"{i:05d}.dcm")
            for i, row in enumerate(rows, 1)
        ]

    # -- queue --------------------------------------------------------------------------------------------------------

    def agreed(self) -> Agreed:
        """Releases that one person agreed to and that still wait for a second one."""
        found: dict[str, set[str]] = {}
        for intent in self._parts.database.intents_with(FIRST):
            job = self._parts.database.job(intent.key)
            asked = asked_in(intent.kind)
            if job is not None and job.state == State.HELD and asked.verb == "release" and asked.round == job.round:
                found.setdefault(intent.key, set()).add(intent.actor)
        return {key: frozenset(people) for key, people in found.items()}

    def entry(self, waiting: Waiting, agreed: Agreed) -> Entry:
        reason = REASONS.get(waiting.reason)
        return Entry(
            key=waiting.key,
            reason=waiting.reason,
            says=reason.says if reason else "",
            since=waiting.since,
            policy=waiting.policy,
            stage=waiting.stage,
            signed=len(agreed.get(waiting.key, ())),
            # what the gate cleared and an archive refused needs nobody's agreement any more
            needed=2 if waiting.stage != Leg.FORWARD and self._needs_two(waiting.policy_digest) else 1,
            approvable=not waiting.batch and waiting.stage not in NO_RELEASE,
        )

    def _needs_two(self, digest: str) -> bool:
        if digest and digest not in self._two:
            try:
                self._two[digest] = self._parts.policies.of(digest).needs_two
            except Hold:
                return True  # nobody can tell, as in `decisions`
        return bool(digest) and self._two[digest]

    def _level(self, job: JobRow | None) -> str:
        """At which level a job was made, and which attempt that was; "" where nobody can tell, or none has levels."""
        try:
            policy = self._parts.policies.of(job.policy_digest) if job is not None else None
        except Hold:
            return ""
        if job is None or policy is None or policy.escalate is None:
            return ""
        return (
            f"{level_told(policy, job.level)} of {policy.escalate.stage}, attempt {job.level + 1} of {policy.attempts}"
        )

    # -- one study ----------------------------------------------------------------------------------------------------

    def case(self, key: str) -> Case | None:
        subject = self.subject(key)
        if subject is None:
            return None
        waiting, closed, agreed = subject.waiting, _closed(subject), self.agreed()
        reason = REASONS.get(waiting.reason)
        entry = self.entry(waiting, agreed)
        return Case(
            entry=entry,
            state=waiting.state,
            round=subject.round,
            destination=waiting.destination,
            hint=reason.hint if reason else "",
            at=waiting.at,
            policy_digest=waiting.policy_digest,
            closed=closed,
            no_release=_no_release(subject),
            no_redaction="" if subject.job is not None else "nothing of it has been cleaned yet",
            waits_for=", ".join(sorted(agreed.get(key, ()))),
            two_person=entry.needed > 1,
            level=self._level(subject.job),
            things=() if closed else self._things(subject),
            pointers=tuple(map(pointer, waiting.findings)),
            verdicts=tuple(_verdicts(subject.job)) if subject.job is not None else (),
            policies=self._others(subject),
        )

    def _things(self, subject: Subject) -> tuple[Thing, ...]:
        """By series, in the order of Instance Number."""
        self._look_at([pair.original for pair in subject.pairs])
        facts = {pair.name: self._known[pair.original] for pair in subject.pairs}
        series: dict[str, int] = {}
        for pair in subject.pairs:
            series.setdefault(facts[pair.name].series_key, len(series) + 1)
        things = [_thing(pair, facts[pair.name], series) for pair in subject.pairs]
        return tuple(sorted(things, key=lambda thing: (thing.series, facts[thing.name].number, thing.name)))

    def _look_at(self, originals: Sequence[Path]) -> None:
        """Many at once; where that breaks the worker, one by one, to find which of them does."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        new = [path for path in originals if path not in self._known]
        master, broken = self._parts.keys.master, Hold("unreadable_object")
        for start in range(0, len(new), AT_ONCE):
            part = new[start : start + AT_ONCE]
            try:
                found = self._run(partial(facts_of_each, part, master), broken)
            except Hold:
                found = [self._alone(path, broken) for path in part]
            self._known.update(zip(part, found, strict=True))

    def _alone(self, path: Path, broken: Hold) -> Facts:
        try:
            facts: Facts = self._run(partial(facts_of, path, self._parts.keys.master), broken)
        except Hold as hold:
            return Facts("", 0, "unreadable", trouble=hold.reason)
        return facts

    def _others(self, subject: Subject) -> tuple[tuple[str, str], ...]:
        """Loaded policies that may forward to where this job goes, but for the one it began under."""
        if subject.job is None:
            return ()
        current = self._parts.policies.current.policies
        return tuple(
            (name, policy.digest)
            for name, policy in sorted(current.items())
            if policy.digest != subject.policy_digest and policy.forward.to in ("", subject.job.destination)
        )


def _thing(pair: Pair, facts: Facts, series: Mapping[str, int]) -> Thing:
    return Thing(
        name=pair.name,
        series=series[facts.series_key],
        kind=facts.kind,
        frames=facts.frames,
        rows=facts.rows,
        columns=facts.columns,
        cleaned=pair.candidate.is_file(),
        trouble=facts.trouble,
    )


def _closed(subject: Subject) -> str:
    """Why nothing can be shown or decided, "" where it can."""
    if subject.waiting.batch:
        return "`scrub` held it: mend what is named, then run `scrub` again; its originals are where they were"
    if subject.waiting.state != State.HELD:
        return f"it is not held: it is {subject.waiting.state.replace('_', ' ')}"
    return ""


def _no_release(subject: Subject) -> str:
    if subject.job is None:
        return NO_RELEASE[Leg.INTAKE]
    return NO_RELEASE.get(subject.job.held_in, "")


def _verdicts(job: JobRow) -> list[tuple[str, str, str]]:
    return [
        (
            verdict["check"],
            verdict["outcome"],
            ", ".join(f"{count} {name}" for name, count in verdict["assessed"].items()),
        )
        for verdict in json.loads(job.verdicts or "[]")
    ]
