"""kill -9 at random points under load: every study ends once, and the archive has the bytes of a run without kills."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pydicom
import pytest
from peers import Postgres, need
from planting import base
from pydicom.uid import generate_uid
from running import Archive, GatewayProcess, archive, policies_for, send

from gateway.database import Database
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, load_settings
from gateway.study import State

STUDIES = 50
INSTANCES = 2
KILLS = 20


def the_studies() -> list[list[pydicom.Dataset]]:
    """50 studies of 2 instances, the same in every run."""
    studies = []
    for number in range(STUDIES):
        study_uid = generate_uid(entropy_srcs=["crash", str(number)])
        series_uid = generate_uid(entropy_srcs=["crash", str(number), "series"])
        studies.append([])
        for instance in range(INSTANCES):
            ds = base()
            ds.PatientID = f"LEAK{number:04d}"
            ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.InstanceNumber = study_uid, series_uid, instance + 1
            ds.FrameOfReferenceUID = generate_uid(entropy_srcs=["crash", str(number), "frame"])
            ds.SOPInstanceUID = generate_uid(entropy_srcs=["crash", str(number), str(instance)])
            ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
            studies[-1].append(ds)
    return studies


def send_all(
    studies: list[list[pydicom.Dataset]], port: int, stop: threading.Event, allowed: threading.Semaphore
) -> None:
    """A PACS: sends until it is told that the object is safe."""
    for study in studies:
        allowed.acquire()
        for ds in study:
            while not stop.is_set() and send(ds, port) != 0x0000:
                time.sleep(0.05)


def wait_all_ended(gateway: GatewayProcess, *, seconds: float) -> None:
    database = gateway.database()
    deadline = time.monotonic() + seconds
    try:
        while True:
            jobs = database.jobs_in()
            if not database.studies_in("received") and not database.unfinished_jobs() and jobs:
                return
            assert time.monotonic() < deadline, database.count_states()
            time.sleep(0.2)
    finally:
        database.close()


@contextmanager
def load(gateway: GatewayProcess, seconds: float) -> Iterator[threading.Semaphore]:
    """Two senders at work, a study for each release of the semaphore; they must be through at the end."""
    studies = the_studies()
    stop, allowed = threading.Event(), threading.Semaphore(0)
    senders = [
        threading.Thread(target=send_all, args=(studies[half::2], gateway.dicom_port, stop, allowed), daemon=True)
        for half in (0, 1)
    ]
    for sender in senders:
        sender.start()
    try:
        yield allowed
        allowed.release(STUDIES)
        for sender in senders:
            sender.join(timeout=seconds)
            assert not sender.is_alive(), "a sender is not through"
    finally:
        stop.set()
        allowed.release(STUDIES)


def progress(database: Database) -> int:
    """Grows with every leg of every job."""
    legs = {"queued": 1, "scrubbed": 2, "cleared": 3, "sent": 4}
    return sum(legs[state] * count for (state, _), count in database.count_states().items())


def let_it_work(gateway: GatewayProcess, dice: random.Random) -> None:
    """Until it got on by a random number of legs, or a random time is over; then a moment more."""
    database = gateway.database()
    aim = progress(database) + dice.randint(1, 14)
    deadline = time.monotonic() + dice.uniform(0.2, 4.0)
    while progress(database) < aim and time.monotonic() < deadline:
        time.sleep(0.05)
    database.close()
    time.sleep(dice.uniform(0.0, 0.2))


def run(home: Home, policies: Path, kills: int, environment: dict[str, str], seed: int) -> GatewayProcess:
    """All studies through one gateway, with so many kills while it works. The gateway is stopped at the end."""
    # One worker process: its start costs more than the work, and four legs wait for it at once all the same.
    gateway = GatewayProcess(home, policies, {"DEID_WORKERS": "1", "DEID_QUIET_S": "0.5", **environment})
    gateway.start()
    dice = random.Random(seed)
    try:
        with load(gateway, seconds=120) as allowed:
            for _ in range(kills):
                allowed.release(STUDIES // kills + 1)  # there is always something new on its way
                let_it_work(gateway, dice)
                gateway.kill()
                gateway.start(wait=dice.random() < 0.7)  # some kills hit a gateway that is still starting
            gateway.wait_ready()
        wait_all_ended(gateway, seconds=180)
    finally:
        code = gateway.stop()
    assert code == 0
    return gateway


def fresh_home(folder: Path, key_of: Home | None = None) -> Home:
    home = Home(folder)
    home.create()
    if key_of is not None:
        shutil.copy(key_of.master_key, home.master_key)
    return home


def check(gateway: GatewayProcess, kept: Archive) -> None:
    """Exactly one final state for every study, each instance in the archive, never with two kinds of bytes."""
    database = gateway.database()
    jobs = database.jobs_in()
    assert len(jobs) == len({(job.study_key, job.generation) for job in jobs})
    assert {job.study_key for job in jobs} == {
        Keys(master_key(gateway.home, load_settings(gateway.home.root))).opaque("study", str(s[0].StudyInstanceUID))
        for s in the_studies()
    }
    assert {job.state for job in jobs} == {State.SENT}
    assert len(kept.received) == STUDIES * INSTANCES
    for arrivals in kept.received.values():
        assert len(set(arrivals)) == 1
    sent = sum(len(database.receipts(job.job_key)) for job in jobs)
    assert sent == STUDIES * INSTANCES
    database.close()
    keys = Keys(master_key(gateway.home, load_settings(gateway.home.root)))
    ledger = Ledger(gateway.home.ledger, keys.ledger)
    assert ledger.verify().sound
    decisions = [line["event"] for line in ledger.lines()]
    assert decisions.count("sent") == len(jobs)
    assert not list((gateway.home.spool / "incoming").glob("*"))


def crash(tmp_path: Path, environment: dict[str, str], calm_environment: dict[str, str]) -> None:
    crashed_home = fresh_home(tmp_path / "crashed")
    calm_home = fresh_home(tmp_path / "calm", key_of=crashed_home)
    with archive() as calm, archive() as kept, ThreadPoolExecutor(1) as beside:
        calm_policies = policies_for(tmp_path / "calm-policies", calm.url)
        calm_run = beside.submit(run, calm_home, calm_policies, 0, calm_environment, 0)
        check(run(crashed_home, policies_for(tmp_path / "policies", kept.url), KILLS, environment, 20), kept)
        check(calm_run.result(), calm)
    assert {uid: set(arrivals) for uid, arrivals in kept.received.items()} == {
        uid: set(arrivals) for uid, arrivals in calm.received.items()
    }
    # What the archive had taken when a kill came is offered again with the same bytes: at most what was on its way.
    again = sum(len(arrivals) - 1 for arrivals in kept.received.values())
    assert again <= KILLS * 4


@pytest.mark.timeout(600)
def test_kills_lose_nothing_and_send_nothing_twice_that_differs_on_sqlite(tmp_path: Path) -> None:
    crash(tmp_path, {}, {})


@pytest.mark.peer
@pytest.mark.timeout(600)
def test_kills_lose_nothing_and_send_nothing_twice_that_differs_on_postgresql(tmp_path: Path) -> None:
    need("postgres")
    with Postgres() as calm_url, Postgres() as url:
        crash(tmp_path, {"DEID_DATABASE_URL": url}, {"DEID_DATABASE_URL": calm_url})
