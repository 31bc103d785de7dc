"""Several processes over one home and one PostgreSQL: work goes on where a process dies, and nobody does it twice."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import httpx2 as httpx
import pydicom
import pytest
from peers import Postgres, need
from planting import base
from processes import end, wait_until
from pydicom.uid import generate_uid
from review_site import PASSWORD, csrf_of, sign_in
from running import Archive, GatewayProcess, accept_everything, archive, policies_for, running, send
from sqlalchemy import create_engine, text

from gateway.app import housekeeping
from gateway.app.housekeeping import Leftovers
from gateway.app.lease import FOLDER
from gateway.app.parts import Parts
from gateway.app.review.page import accounts_of
from gateway.app.serve import Gateway, wire
from gateway.cli import run
from gateway.database import Database
from gateway.errors import Stopping, UsageError
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.review import Role
from gateway.settings import Home, load_settings
from gateway.study import State

CALM = {"DEID_WORKERS": "1", "DEID_QUIET_S": "0.5"}


@contextmanager
def cluster(home: Home, policies: Path, url: str, *roles: str) -> Iterator[list[GatewayProcess]]:
    """A process for each of `roles`, all of them ready."""
    made = [GatewayProcess(home, policies, {**CALM, "DEID_DATABASE_URL": url, "DEID_ROLES": role}) for role in roles]
    try:
        for process in made:
            process.start(wait=False)
        for process in made:
            process.wait_ready(seconds=60)
        yield made
    finally:
        for process in made:
            if process.process is not None:
                end(process.process, how=signal.SIGCONT)
                end(process.process)


@pytest.fixture
def postgres() -> Iterator[str]:
    need("postgres")
    with Postgres() as url:
        yield url


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


def study(number: int) -> list[pydicom.Dataset]:
    """Two instances of one person."""
    made = []
    for instance in range(2):
        ds = base()
        ds.PatientID = f"LEAK{number:04d}"
        ds.StudyInstanceUID = generate_uid(entropy_srcs=["cluster", str(number)])
        ds.SeriesInstanceUID = generate_uid(entropy_srcs=["cluster", str(number), "series"])
        ds.SOPInstanceUID = generate_uid(entropy_srcs=["cluster", str(number), str(instance)])
        ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
        made.append(ds)
    return made


class Gate:
    """An archive's answer that can be kept back."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked = threading.Event()

    def __call__(self, _uid: str) -> int:
        self.asked.set()
        self.open.wait(60)
        return 0x0000


def at_work(url: str) -> dict[str, str]:
    """Workflow -> the process that is at it, of everything that is being done."""
    server = create_engine(url)
    try:
        with server.connect() as connection:
            query = "SELECT workflow_uuid, executor_id FROM dbos.workflow_status WHERE status = 'PENDING'"
            return {str(row[0]): str(row[1]) for row in connection.execute(text(query)).all()}
    finally:
        server.dispose()


def process_of(home: Home, executor: str, among: list[GatewayProcess]) -> GatewayProcess:
    """Whoever holds the lock of that executor."""
    inode = (home.root / FOLDER / f"{executor}.lock").stat().st_ino
    pids = {int(line.split()[4]) for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line}
    (found,) = [one for one in among if one.process is not None and one.process.pid in pids]
    return found


def all_sent(database: Database, count: int) -> bool:
    return database.count_states() == {(State.SENT, ""): count}


def check(home: Home, kept: Archive, studies: int) -> None:
    """Every instance once with one kind of bytes, one ledger line for each study that was sent, an unbroken chain."""
    assert len(kept.received) == studies * 2
    assert all(len(set(arrivals)) == 1 for arrivals in kept.received.values())
    ledger = Ledger(home.ledger, Keys(master_key(home, load_settings(home.root))).ledger)
    assert ledger.verify().sound
    events = [line["event"] for line in ledger.lines()]
    assert events.count("sent") == studies


@pytest.mark.peer
def test_a_killed_worker_s_study_goes_on_elsewhere(home: Home, postgres: str, tmp_path: Path) -> None:
    gate = Gate()
    with archive(answer=gate) as kept:
        policies = policies_for(tmp_path / "policies", kept.url, change=accept_everything)
        with cluster(home, policies, postgres, "receive", "work-cpu", "work-cpu", "work-cpu") as processes:
            receiver, *workers = processes
            for ds in study(0):
                assert send(ds, receiver.dicom_port) == 0x0000
            assert gate.asked.wait(90), receiver.log.read_text()[-2000:]
            (forwarding,) = [executor for name, executor in at_work(postgres).items() if name.startswith("forward/")]
            victim = process_of(home, forwarding, workers)
            victim.kill()
            gate.open.set()
            for number in range(1, 4):
                for ds in study(number):
                    assert send(ds, receiver.dicom_port) == 0x0000
            database = Database(postgres)
            wait_until(lambda: all_sent(database, 4), seconds=90, what="all studies are sent")
            assert sorted(row.roles for row in database.processes()) == [("receive",), ("work-cpu",), ("work-cpu",)]
            database.close()
        check(home, kept, 4)


@pytest.mark.peer
def test_one_that_was_taken_for_dead_ends_its_work_before_it_closes_its_doors(
    home: Home, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = policies_for(tmp_path / "policies", "dicom://ARCHIVE@127.0.0.1:1")
    at_work_still = []
    with running(home, policies, database_url=postgres) as gateway:
        close = gateway.receiver.stop

        def close_door() -> None:  # which takes as long as a sender needs
            with suppress(Stopping):
                gateway.parts.workers.run(int, "1")
                at_work_still.append("workers")
            if gateway.engine.alive:
                at_work_still.append("engine")
            close()

        monkeypatch.setattr(gateway.receiver, "stop", close_door)
        other = Database(postgres)
        assert gateway.lease is not None
        assert other.remove_process(gateway.lease.executor)
        other.close()
        wait_until(lambda: not gateway.healthy(), seconds=30, what="it notices")
    assert at_work_still == []


def no_routes(folder: Path) -> None:
    """Whatever comes is held."""
    accept_everything(folder)
    routes = folder / "routes.yaml"
    routes.write_text(routes.read_text().replace("calling_ae: PACS", "calling_ae: NOBODY"))


@pytest.mark.peer
def test_a_decision_on_either_of_two_review_pages_is_carried_out_by_the_worker(
    home: Home, postgres: str, tmp_path: Path
) -> None:
    accounts_of(home).put("reviewer", Role.REVIEWER, PASSWORD)
    policies = policies_for(tmp_path / "policies", "dicom://ARCHIVE@127.0.0.1:1", change=no_routes)
    settings = {"database_url": postgres, "review_port": 0}
    with (
        running(home, policies, **settings, roles=("web",)) as first,
        running(home, policies, **settings, roles=("web",)) as second,
        running(home, policies, **settings, roles=("receive", "work-cpu")) as worker,
    ):
        assert [set(one.checks()) & {"receiver", "engine", "review"} for one in (first, worker)] == [
            {"review"},
            {"receiver", "engine"},
        ]
        assert all(all(one.checks().values()) for one in (first, second, worker))
        assert "deid_processes" in urlopen(f"http://127.0.0.1:{first.status.port}/metrics").read().decode()
        database = worker.parts.database
        for number, page in enumerate((first, second), 1):
            (ds, _) = study(number)
            assert send(ds, worker.receiver.port) == 0x0000
            wait_until(lambda: bool(database.studies_in("held")), seconds=60, what="it is held")
            (held,) = database.studies_in("held")
            assert page.review is not None
            headers = {"Origin": page.review.url, "Accept": "text/html"}
            with httpx.Client(base_url=page.review.url, headers=headers, timeout=60) as browser:
                assert sign_in(browser, "reviewer", PASSWORD).status_code == 303
                key = f"{held.study_key}.{held.generation}"
                form = {"csrf": csrf_of(browser.get(f"/study/{key}").text), "round": held.round}
                said = browser.post(f"/study/{key}/decide", data={**form, "verb": "reject", "reason": "not ours"})
                assert said.status_code == 303, said.text[-500:]
            wait_until(lambda: not database.studies_in("held"), seconds=60, what="it is decided")
        assert len(database.studies_in("rejected")) == 2


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"DEID_ROLES": "receive"}, "the embedded database takes one only"),
        ({"DEID_ROLES": "all,web"}, "name it alone"),
        ({"DEID_ROLES": "receive,receive"}, "each once"),
        ({"DEID_ROLES": "worker"}, "one or more of receive, work-cpu, work-gpu, web"),
        ({"DEID_ROLES": "web", "DEID_DATABASE_URL": "postgresql+psycopg://x@127.0.0.1:9/x"}, "set DEID_REVIEW_PORT"),
    ],
)
def test_roles_that_cannot_be_are_refused_with_what_to_do(
    home: Home, environment: Mapping[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=says):
        Gateway(home, load_settings(home.root))


def test_a_role_on_the_command_line_takes_the_place_of_the_setting(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEID_ROLES", "web")
    monkeypatch.setenv("DEID_DATABASE_URL", "postgresql+psycopg://x@127.0.0.1:9/x")
    assert run(["serve", "--home", str(home.root), "--role", "receive", "--role", "work"]) == 2
    assert "one or more of receive, work-cpu" in capsys.readouterr().err
    assert run(["serve", "--home", str(home.root), "--role", "work-cpu"]) == 3
    assert "check DEID_DATABASE_URL" in capsys.readouterr().err


def test_leftovers_go_after_two_looks_and_never_what_is_being_received(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_parts(home) as parts:
        folder = home.spool / "s1"
        incoming = home.spool / "incoming"
        for place in (folder, incoming):
            place.mkdir()
        parts.database.record_instance(study_key="s1", name="known.dcm", sop_key="x", size_bytes=1)
        for path in (folder / "known.dcm", folder / "left.dcm", incoming / "dead.part", incoming / "alive.part"):
            path.write_bytes(b"x")
        leftovers = Leftovers()
        assert leftovers.look(parts) == 0
        assert leftovers.look(parts) == 0  # not yet an hour
        monkeypatch.setattr(housekeeping, "LEFTOVER_S", 0.0)
        os.utime(incoming / "alive.part", ns=(1, 1))  # it grew meanwhile
        (folder / "new.dcm").write_bytes(b"x")
        assert leftovers.look(parts) == 2
        left = {path.name for path in home.spool.rglob("*") if path.is_file()}
        assert left == {"known.dcm", "alive.part", "new.dcm"}


@contextmanager
def running_parts(home: Home) -> Iterator[Parts]:
    parts = wire(home, load_settings(home.root))
    try:
        yield parts
    finally:
        parts.workers.close()
        parts.database.close()
