"""Processes that share a database and a home: who is dead, who leads, and that the dead write nothing any more."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from peers import Postgres, need
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from gateway.app import lease as lease_module
from gateway.app.lease import FOLDER, Lease
from gateway.database import Database
from gateway.errors import EnvironmentFault, Stopping
from gateway.settings import Home

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    need("postgres")
    with Postgres() as url:
        yield url


@pytest.fixture
def url(postgres: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database in which nobody is, and times that a test can wait for."""
    database = Database.in_home(Path(), postgres)
    with database.transaction() as connection:
        connection.execute(text("DELETE FROM processes"))
    database.close()
    monkeypatch.setattr(lease_module, "BEAT_S", 0.1)
    monkeypatch.setattr(lease_module, "STEADY_S", 3.0)
    monkeypatch.setattr(lease_module, "SILENT_S", 1.0)
    return postgres


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def entering(url: str) -> Iterator[Callable[..., Lease]]:
    with ExitStack() as leases:

        def enter(home: Home, *roles: str) -> Lease:
            lease = Lease(Database(url), home, roles or ("work-cpu",))
            leases.callback(lease.release)
            lease.take()
            return lease

        yield enter


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def silence(lease: Lease) -> None:
    """As if the whole process stood still: it holds its lock, and is not heard."""
    lease._stopping.set()
    lease._thread.join()


def test_the_eldest_that_works_leads_and_the_next_one_does_when_it_leaves(
    home: Home, entering: Callable[..., Lease]
) -> None:
    receiver, first, second = entering(home, "receive"), entering(home, "all"), entering(home, "work-cpu")
    assert [one.leads() for one in (receiver, first, second)] == [False, True, False]
    assert [row.roles for row in second.there()] == [("receive",), ("all",), ("work-cpu",)]
    first.release()
    wait_until(second.leads)
    assert not receiver.leads()
    assert not (home.root / FOLDER / f"{first.executor}.lock").exists()


def test_a_process_whose_lock_is_free_is_dead_at_once(home: Home, entering: Callable[..., Lease], url: str) -> None:
    first, second = entering(home), entering(home)
    silence(first)
    began = time.monotonic()
    assert first._handle is not None
    os.close(first._handle)  # as the kernel does for one that was killed
    first._handle = None
    wait_until(second.leads)
    assert time.monotonic() - began < lease_module.SILENT_S


def test_one_that_could_not_say_that_it_leaves_is_dead_at_once_as_well(
    home: Home, entering: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "SILENT_S", 3600.0)
    first, second = entering(home), entering(home)

    def out_of_reach() -> None:
        raise OperationalError("leave", {}, Exception())

    monkeypatch.setattr(first._database, "leave_process", out_of_reach)
    first.release()
    wait_until(second.leads)
    assert not (home.root / FOLDER / f"{first.executor}.lock").exists()


def test_a_silent_process_is_buried_and_writes_nothing_afterwards(
    home: Home, entering: Callable[..., Lease], url: str
) -> None:
    first = entering(home)
    mine = Database(url)
    mine.executor = first.executor
    mine.add_intent(kind="reject", key="k", actor="a", reason="r")
    second = entering(home)
    silence(first)
    wait_until(second.leads)
    with pytest.raises(Stopping):
        mine.add_intent(kind="reject", key="k", actor="a", reason="r")
    with pytest.raises(Stopping):
        first.once()
    second_s = Database(url)
    assert len(second_s.open_intents()) == 1
    with second_s.transaction() as connection:
        connection.execute(text("DELETE FROM intents"))
    mine.close()
    second_s.close()


def test_one_that_was_taken_for_dead_notices_and_is_not_alive(
    home: Home, entering: Callable[..., Lease], url: str
) -> None:
    lease = entering(home)
    other = Database(url)
    assert other.remove_process(lease.executor)
    wait_until(lambda: lease.lost)
    assert not lease.alive
    assert not lease.leads()
    other.close()


def test_a_process_that_stands_still_in_a_transaction_is_buried_once_that_is_over(
    home: Home, entering: Callable[..., Lease], url: str
) -> None:
    lease, other = entering(home), Database(url)
    mine = Database(url)
    mine.executor = lease.executor
    with mine.transaction():
        lease.once()  # a beat waits for nobody
        with pytest.raises(OperationalError):
            other.remove_process(lease.executor)
    silence(lease)
    assert other.remove_process(lease.executor)
    mine.close()
    other.close()


def test_nobody_is_dead_for_an_outage_of_the_database(
    home: Home, entering: Callable[..., Lease], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = entering(home), entering(home)
    assert second.heard_s > 0
    monkeypatch.setattr(lease_module, "STEADY_S", 0.3)
    closed = threading.Event()
    for lease in (first, second):
        beat = lease._database.beat_process

        def beat_if_open(executor: str, beat: Callable[[str], None] = beat) -> None:
            if closed.is_set():
                raise OperationalError("beat", {}, Exception())
            beat(executor)

        monkeypatch.setattr(lease._database, "beat_process", beat_if_open)
    time.sleep(1.2)  # both have been heard for long enough to judge others
    closed.set()
    time.sleep(1.5)
    assert second.heard_s == 0
    silence(first)  # it comes back a little later than the other
    closed.clear()
    time.sleep(0.6)
    assert [row.executor for row in second.there()] == [first.executor, second.executor]
    wait_until(second.leads)  # still silent when the other has been heard for a while: now it is


def test_another_home_on_the_same_database_is_refused(
    home: Home, entering: Callable[..., Lease], tmp_path: Path
) -> None:
    entering(home)
    with pytest.raises(EnvironmentFault, match="another home's processes work on this database"):
        entering(Home(tmp_path / "other"))


def test_a_home_whose_locks_do_not_reach_other_machines_is_refused(
    home: Home, entering: Callable[..., Lease], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = entering(home)
    with far._database.transaction() as connection:
        connection.execute(text("UPDATE processes SET machine = 'another'"))
    entering(home).release()  # its lock is seen
    assert far._handle is not None
    os.close(far._handle)  # it beats, and its lock is not seen from here
    far._handle = None
    with pytest.raises(EnvironmentFault, match="file locks do not reach the other machines"):
        entering(home)
    silence(far)
    entering(home)  # it is dead, that is all
