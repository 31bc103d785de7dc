"""`policy preview` for the review page: a loaded policy on a study in the spool, into a folder that goes again."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from gateway.app.parts import Parts
from gateway.app.preview.files import NOT_ASKED, FilePreview
from gateway.app.preview.making import Preview
from gateway.app.preview.names import counted
from gateway.app.preview.people import PreviewPeople
from gateway.app.preview.rows import Outcome
from gateway.app.release.references import MODELS
from gateway.app.review.header import line_of
from gateway.app.review.wishes import page_actor
from gateway.app.workers import Workers
from gateway.database import InstanceRow, StudyRow
from gateway.durable import make_folder
from gateway.errors import REASONS, UsageError
from gateway.policy import Policy
from gateway.review.desk import Person, Previewed
from gateway.review.records import Received

MOST_STUDIES, MOST_OBJECTS = 100, 40  # a person waits for it
FOLDER, LEFT_S = "previews", 6 * 3600.0
STATES = ("received", "routed", "held")


class Previews:
    """Of one gateway."""

    def __init__(self, parts: Parts, workers: Workers) -> None:
        self._parts = parts
        self._workers = workers

    def received(self) -> list[Received]:
        """Studies whose originals are here, the latest first."""
        database = self._parts.database
        studies = sorted(database.studies_in(*STATES), key=lambda row: -row.last_at)
        found: list[Received] = []
        for study in studies:
            count = len(self._here(study))
            if count:
                key = f"{study.study_key}.{study.generation}"
                found.append(Received(key, study.first_at, count, study.state))
            if len(found) == MOST_STUDIES:
                break
        return found

    def _here(self, study: StudyRow) -> list[InstanceRow]:
        rows = self._parts.database.instances_of(study.study_key, study.generation)
        return sorted((row for row in rows if row.removed_at is None), key=lambda row: (row.sop_key, row.serial))

    def of(self, person: Person, key: str, digest: str) -> list[Previewed]:
        """The first MOST_OBJECTS objects, as if they were all. Raises UsageError, and EnvironmentFault where the
        ledger cannot be written: then nothing is shown.
        """
        policy = self._loaded(digest)
        study_key, _, generation = key.partition(".")
        number = int(generation) if generation.isascii() and generation.isdigit() and len(generation) < 10 else 0
        study = self._parts.database.study(study_key, number)
        rows = self._here(study)[:MOST_OBJECTS] if study is not None else []
        if study is None or not rows:
            raise UsageError("no original of that study is here; open the page again")
        self._parts.ledger.append(
            "previewed",
            f"previewed/{person.session}/{study_key}/g{number}/{digest}",
            study=study_key,
            generation=number,
            policy_digest=digest,
            instances=len(rows),
            actor=page_actor(person.name),
            role=person.role,
        )
        originals = [self._parts.spool.path(row.study_key, row.name) for row in rows]
        return [_told(f"{place:05d}", one) for place, one in enumerate(self._run(policy, study, originals), 1)]

    def _loaded(self, digest: str) -> Policy:
        for policy in self._parts.policies.current.policies.values():
            if policy.digest == digest:
                return policy
        raise UsageError("that policy is not loaded; open the page again")

    def _run(self, policy: Policy, study: StudyRow, originals: list[Path]) -> list[FilePreview]:
        p = self._parts
        jobs = p.database.jobs_of(study.study_key, study.generation)
        project = next((job.project for job in jobs if job.policy == policy.name), policy.name)
        people = PreviewPeople.of(p.home, p.settings, project, p.policies.folder, p.keys.master)
        place = make_folder(p.home.root / FOLDER)
        _sweep(place)
        with tempfile.TemporaryDirectory(dir=place) as folder:
            work = make_folder(Path(folder) / "of")
            return Preview(policy, people, self._workers, work, models=p.home.root / MODELS).of(originals)


def _sweep(place: Path) -> None:
    """What a kill left behind: nobody waits for so long."""
    for folder in place.iterdir():
        if time.time() - folder.stat().st_mtime > LEFT_S:
            shutil.rmtree(folder, ignore_errors=True)


def _told(name: str, one: FilePreview) -> Previewed:
    counts: Counter[Outcome] = Counter(one.counts)
    stages = tuple(f"{step.stage}: {counted(step)}" for step in one.steps[1:])
    lines = tuple(line_of(row) for row in one.rows if row.outcome not in (Outcome.KEPT, Outcome.INSIDE))
    return Previewed(name, one.kind, _held(one), stages, lines, counts[Outcome.KEPT])


def _held(one: FilePreview) -> str:
    """Why it would not leave, without a path: that of the spool is nobody's business."""
    if one.held_by is not None:
        return "held with its study, because of another object"
    reason, at = (one.reason, one.at) if one.reason else (one.gate_reason, one.gate_at)
    if not reason or reason == NOT_ASKED:
        return ""
    known = REASONS.get(reason)
    by = "" if one.reason else " by the gate"
    return f"held{by}: {reason}" + (f" at {at}" if at else "") + (f" ({known.says}; {known.hint})" if known else "")
