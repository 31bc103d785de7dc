"""A crash before any write of a leg, then a restart: the same end as without it, for every write of every scenario.

Writes are: a transaction of the tables, a ledger line, the ledger's head file, a file that is published. Instead of a
crash the table may also just fail (`locked`); then the same process goes on.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydicom
import pytest
from houses import House, add_policy, edit, house, late, route_all, to_folder
from planting import base
from pydicom.uid import generate_uid
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from gateway.app import tasks as tasks_module
from gateway.database import Database
from gateway.flow import Next
from gateway.ledger import Ledger
from gateway.settings import Home

KEY = hashlib.sha256(b"a key for tests").hexdigest()


class Crash(BaseException):
    """The process is gone: nothing catches it."""


@dataclass
class Tripwire:
    """Counts writes inside legs; raises at number `at`."""

    at: int = -1
    error: Callable[[], BaseException] = Crash
    count: int = 0
    armed: bool = False

    def touch(self) -> None:
        if self.armed:
            self.count += 1
            if self.count - 1 == self.at:
                raise self.error()

    @contextmanager
    def strung(self, patch: pytest.MonkeyPatch) -> Iterator[None]:
        transaction, append, write_head = Database.transaction, Ledger.append, Ledger._write_head
        publish, run = tasks_module.publish, House.run

        @contextmanager
        def touched(database: Database) -> Iterator[Connection]:
            with transaction(database) as connection:
                touched_once: list[str] = []

                def at_first_write(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
                    if not touched_once and statement.lstrip()[:6].upper() in {"INSERT", "UPDATE", "DELETE"}:
                        touched_once.append(statement)
                        self.touch()

                event.listen(connection, "before_cursor_execute", at_first_write)
                yield connection

        def before(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **more: Any) -> Any:
                self.touch()
                return function(*arguments, **more)

            return call

        def in_leg(made: House, task: Next) -> None:
            self.armed = True
            try:
                run(made, task)
            finally:
                self.armed = False

        with patch.context() as patched:
            patched.setattr(Database, "transaction", touched)
            patched.setattr(Ledger, "append", before(append))
            patched.setattr(Ledger, "_write_head", before(write_head))
            patched.setattr(tasks_module, "publish", before(publish))
            patched.setattr(House, "run", in_leg)
            yield


def datasets(number: int, instances: int = 2) -> list[pydicom.FileDataset]:
    """The same in every run."""
    made = []
    for instance in range(instances):
        ds = base()
        ds.PatientID = f"LEAK{number:04d}"
        for word in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"):
            setattr(ds, word, generate_uid(entropy_srcs=["writes", str(number), word]))
        ds.SOPInstanceUID = generate_uid(entropy_srcs=["writes", str(number), str(instance)])
        ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
        made.append(ds)
    return made


def two_targets(folder: Path) -> None:
    """One that sends and one that holds."""
    add_policy(folder, "strict", lambda body: body["gate"].update(not_assessed=[]))
    edit(folder, "destinations", lambda body: body.update(second=f"folder:{folder.parent}/second"))
    route_all(folder, ("one", "research-basic", "research-archive"), ("two", "strict", "second"))


def wish(kind: str) -> Callable[[House], None]:
    def write_down(made: House) -> None:
        (held,) = [job for job in made.parts.database.jobs_in() if job.state == "held"]
        made.parts.database.add_intent(kind=kind, key=held.job_key, actor="dpo", reason="looked at it")

    return write_down


def conflict(made: House) -> None:
    one, two = datasets(2)
    other = copy.deepcopy(one)
    other.PixelData = bytes(reversed(one.PixelData))
    made.receive(one, two, one)
    made.receive(other)


def follow_up(made: House) -> None:
    one, _ = datasets(1)
    more = late(one)
    more.SOPInstanceUID = more.file_meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["writes", "late"])
    made.receive(one, more)


def arrive(made: House) -> None:
    made.receive(*datasets(1))


def reject_study(made: House) -> None:
    (study,) = made.parts.database.studies_in("held")
    key = f"{study.study_key}.{study.generation}"
    made.parts.database.add_intent(kind="reject", key=key, actor="dpo", reason="looked at it")


# What happens in turn; after each the gateway works until nothing is due.
SCENARIOS: dict[str, tuple[Callable[[House], None], ...]] = {
    "two targets, one held": (arrive,),
    "duplicates and a follow-up": (arrive, follow_up, follow_up),
    "a conflict is rejected": (conflict, reject_study),
    "a release": (arrive, wish("release")),
    "a rerun": (arrive, wish("rerun")),
    "a reject": (arrive, wish("reject")),
}
IGNORED = {"time", "line", "mac", "previous", "at"}


@dataclass
class World:
    """A home with its policies and archives, which outlives processes."""

    root: Path
    home: Home = field(init=False)
    policies: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home = Home(self.root / "home")
        self.home.create(generate_key=False)
        self.home.master_key.write_text(KEY)
        self.home.master_key.chmod(0o600)
        self.policies = to_folder(self.root / "policies", self.root / "archive", change=two_targets)

    def live(self, scenario: str) -> None:
        """Every turn of the scenario; after a crash another process takes over."""
        turns = list(SCENARIOS[scenario])
        begun = False
        while turns:
            try:
                with house(self.home, self.policies) as made:
                    while turns:
                        if not begun:
                            turns[0](made)
                            begun = True
                        made.settle()
                        turns.pop(0)
                        begun = False
            except Crash:
                continue

    def picture(self) -> dict[str, Any]:
        """Everything that counts at the end."""
        with house(self.home, self.policies) as made:
            database = made.parts.database
            jobs = database.jobs_in()
            return {
                "jobs": {
                    job.job_key: (job.state, job.reason, job.at, job.held_in, job.round, job.policy_digest, job.steps)
                    for job in jobs
                },
                "clearances": {job.job_key: job.clearance for job in jobs},
                "receipts": {
                    job.job_key: {name: (r.status, r.kind) for name, r in database.receipts(job.job_key).items()}
                    for job in jobs
                },
                "studies": {
                    (row.study_key, row.generation): (row.state, row.reason, row.round)
                    for job_study in {row.study_key for row in database.studies_in("routed", "duplicate", "rejected")}
                    for row in database.generations(job_study)
                },
                "intents": [
                    (intent.outcome, intent.reason)
                    for intent in (database.intent(serial) for serial in (1, 2))
                    if intent is not None
                ],
                "decisions": sorted(
                    str({name: value for name, value in line.items() if name not in IGNORED}) for line in made.events()
                ),
                "sent": {
                    str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest()
                    for folder in ("archive", "second")
                    for path in (self.root / folder).rglob("*")
                    if path.is_file()
                },
                "spooled": len(list(made.parts.spool.root.rglob("*.dcm"))),
                "parts": [path.name for path in self.root.rglob("*.part")],
                "due": made.steps.pending(),
            }


def locked() -> BaseException:
    return OperationalError("insert", {}, Exception("database is locked"))


@pytest.mark.parametrize("error", [Crash, locked], ids=["crash", "locked"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_end_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str, error: Callable[[], BaseException]
) -> None:
    calm = Tripwire()
    world = World(tmp_path / "calm")
    with calm.strung(monkeypatch):
        world.live(scenario)
    expected = world.picture()
    assert expected["due"] == []
    assert expected["parts"] == []
    assert calm.count > 5
    for number in range(calm.count):
        wire = Tripwire(at=number, error=error)
        world = World(tmp_path / str(number))
        with wire.strung(monkeypatch):
            world.live(scenario)
        assert wire.count > number
        found = world.picture()
        assert {name: found[name] for name in expected} == expected, f"write {number} of {calm.count}"


def test_the_scenarios_end_as_they_are_meant_to(tmp_path: Path) -> None:
    ends = {}
    for number, scenario in enumerate(SCENARIOS):
        world = World(tmp_path / str(number))
        world.live(scenario)
        picture = world.picture()
        ends[scenario] = (
            sorted(str(job[0]) for job in picture["jobs"].values()),
            sorted(state for state, _, _ in picture["studies"].values()),
            len(picture["sent"]),
        )
    assert ends == {
        "two targets, one held": (["held", "sent"], ["routed"], 2),
        "duplicates and a follow-up": (["held", "held", "sent", "sent"], ["duplicate", "routed", "routed"], 3),
        "a conflict is rejected": ([], ["rejected"], 0),
        "a release": (["sent", "sent"], ["routed"], 4),
        "a rerun": (["held", "sent"], ["routed"], 2),
        "a reject": (["rejected", "sent"], ["routed"], 2),
    }
