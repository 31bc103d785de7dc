"""A gateway without its engine, receiver and processes: legs run here and now, one after the other.

What is durable is real (spool, tables, ledger, work folder, policies, transports); only who calls the legs is not.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydicom
import yaml
from planting import base
from pydicom.uid import generate_uid
from running import PACS, policies_for

from gateway.app.parts import Parts
from gateway.app.serve import wire
from gateway.app.steps import StudySteps
from gateway.database import JobRow
from gateway.flow import Next, run_leg
from gateway.settings import Home, load_settings


class Inline:
    """Workers that are this thread."""

    count = 1

    def each(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        return [call() for call in calls]

    def run(self, function: Callable[..., Any], /, *args: Any) -> Any:
        return function(*args)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args))
        return future

    def close(self) -> None:
        pass


@dataclass
class House:
    """`pauses` are the delays that were asked for; nothing waits for them here."""

    parts: Parts
    steps: StudySteps
    pauses: list[float] = field(default_factory=list)

    def receive(self, *datasets: pydicom.Dataset, called: str = "DEID", expected: int = 0) -> str:
        """As the receiver leaves them: whole, synced, recorded. Returns the study key of the last one."""
        key = ""
        for ds in datasets:
            buffer = io.BytesIO()
            ds.file_meta.SourceApplicationEntityTitle = PACS
            ds.file_meta.ReceivingApplicationEntityTitle = called
            ds.save_as(buffer, enforce_file_format=True)
            key = self.receive_bytes(buffer.getvalue(), ds, expected=expected)
        return key

    def receive_bytes(self, data: bytes, ds: pydicom.Dataset, *, expected: int = 0) -> str:
        p = self.parts
        key = p.keys.opaque("study", str(ds.StudyInstanceUID))
        part = p.spool.new_part()
        part.write_bytes(data)
        name = p.spool.keep(part, key)
        p.database.record_instance(
            study_key=key,
            name=name,
            sop_key=p.keys.opaque("sop", str(ds.SOPInstanceUID)),
            size_bytes=len(data),
            expected=expected,
        )
        return key

    def close(self) -> list[tuple[str, int]]:
        """End every quiet period now."""
        return self.parts.database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)

    def settle(self, limit: int = 500) -> None:
        """Close what is open and run legs until none is due."""
        self.close()
        for _ in range(limit):
            due = self.steps.pending()
            if not due:
                return
            self.run(due[0])
            self.close()
        raise AssertionError(f"no end in sight: {self.steps.pending()}")

    def run(self, task: Next) -> None:
        """One leg and all that follows from it."""
        following = [task]
        while following:
            done = following.pop(0)
            self.pauses += [done.delay_s] if done.delay_s else []
            following += run_leg(self.steps, done)

    def run_once(self) -> tuple[Next, ...]:
        """The first leg that is due, and nothing after it."""
        return run_leg(self.steps, self.steps.pending()[0])

    def deliver(self, *datasets: pydicom.Dataset, **how: Any) -> str:
        """Receive and settle."""
        key = self.receive(*datasets, **how)
        self.settle()
        return key

    def decide(self, kind: str, key: str, *, by: str = "dpo", reason: str = "looked at it") -> str:
        """What a reviewer writes down, carried out; returns the outcome."""
        serial = self.parts.database.add_intent(kind=kind, key=key, actor=by, reason=reason)
        self.settle()
        intent = self.parts.database.intent(serial)
        assert intent is not None
        assert intent.done_at is not None
        return intent.outcome

    def job(self, study_key: str, generation: int = 1, destination: str = "") -> JobRow:
        """The only job of a generation, or the one to this destination."""
        jobs = self.parts.database.jobs_of(study_key, generation)
        (job,) = [job for job in jobs if destination in {"", job.destination}]
        return job

    def ends(self, study_key: str, generation: int = 1) -> list[tuple[str, str, str]]:
        """(destination, state, reason) of each job, or of the study when it has none."""
        jobs = self.parts.database.jobs_of(study_key, generation)
        if jobs:
            return sorted((job.destination, str(job.state), job.reason) for job in jobs)
        study = self.parts.database.study(study_key, generation)
        assert study is not None
        return [("", study.state, study.reason)]

    def events(self, study_key: str = "") -> list[dict[str, Any]]:
        """Ledger lines, of one study when it is named."""
        assert self.parts.ledger.verify().sound
        return [line for line in self.parts.ledger.lines() if study_key in {"", line.get("study")}]

    def metric(self, name: str, **labels: str) -> float:
        return self.parts.metrics.registry.get_sample_value(name, labels) or 0.0


@contextmanager
def house(home: Home, policies: Path, workers: Any = None, **settings: object) -> Iterator[House]:
    """A house over a home; several may follow each other on one home, as processes do."""
    values = load_settings(
        home.root,
        **{"policies": policies, "min_free_bytes": 0, "retry_base_s": 1.0, "retry_max_s": 8.0, **settings},
    )
    wired = wire(home, values)
    wired.workers.close()
    parts = Parts(
        **{**{name: getattr(wired, name) for name in Parts.__dataclass_fields__}, "workers": workers or Inline()}
    )
    try:
        yield House(parts, StudySteps(parts))
    finally:
        parts.database.close()


def study(instances: int = 1, *, patient: str = "LEAK0001", modality: str = "CT") -> list[pydicom.FileDataset]:
    """A study of one series."""
    made = []
    study_uid, series_uid = generate_uid(), generate_uid()
    for number in range(instances):
        ds = base()
        ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.PatientID, ds.Modality = study_uid, series_uid, patient, modality
        ds.InstanceNumber = number + 1
        made.append(ds)
    return made


def late(ds: pydicom.FileDataset, **changes: object) -> pydicom.FileDataset:
    """One more instance of the same study."""
    more = base()
    for word in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID", "PatientID", "Modality"):
        setattr(more, word, getattr(ds, word))
    for word, value in changes.items():
        setattr(more, word, value)
    return more


def edit(folder: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change one YAML file of a policies folder."""
    path = folder / f"{name}.yaml"
    body = yaml.safe_load(path.read_text())
    change(body)
    path.write_text(yaml.safe_dump(body))


def to_folder(folder: Path, target: Path, *, change: Callable[[Path], None] = lambda _folder: None) -> Path:
    """The shipped policies with a folder as archive."""
    return policies_for(folder, f"folder:{target}", change=change)


def add_policy(
    folder: Path, name: str, change: Callable[[dict[str, Any]], None], *, of: str = "research-basic"
) -> None:
    """A copy of a policy with changes."""
    body = yaml.safe_load((folder / f"{of}.yaml").read_text())
    body["name"] = name
    change(body)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(body))


def route_all(folder: Path, *targets: tuple[str, str, str], calling: str = PACS) -> None:
    """One route for everything from this sender to these (project, policy, destination)."""
    named = [dict(zip(("project", "policy", "destination"), target, strict=True)) for target in targets]
    route = {"name": "all", "when": {"calling_ae": calling}, "targets": named}
    edit(folder, "routes", lambda body: body.update(routes=[route]))


def route_nobody(folder: Path) -> None:
    """A route that nothing of ours matches."""
    route_all(folder, ("demo", "research-basic", "research-archive"), calling="NOBODY")
