"""One engine process at a time, what a newer version does with an older one's work, and whether it is alive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from engine_cases import Script, Store, wait_for
from sqlalchemy import create_engine, text

from gateway.errors import EnvironmentFault
from gateway.flow import Engine, Leg, Next
from gateway.flow import engine as engine_module
from gateway.flow import lock as lock_module

HERE = Path(__file__).parent


def another_process(store: Store) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / "older_engine.py"), store.url, str(store.lock)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{HERE.parent.parent}:{HERE}", "PATH": "/usr/bin:/bin"},
    )


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def busy(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"


def test_a_second_process_on_the_same_home_is_refused_and_the_first_goes_on(store: Store) -> None:
    other = another_process(store)
    try:
        busy(other)
        with pytest.raises(EnvironmentFault, match="another gateway runs on this home"):
            store.engine(Script())
        assert other.poll() is None
    finally:
        end(other)


def test_a_second_engine_of_this_process_is_refused_and_does_not_end_the_first(store: Store) -> None:
    script = Script()
    first = store.engine(script)
    with pytest.raises(EnvironmentFault, match="another gateway"):
        store.engine(Script())
    first.enqueue(Next(Leg.SCRUB, "s1", 1))
    wait_for(lambda: script.ended("s1"))
    first.stop()
    store.engine(script)  # the lock went with the one that held it


@pytest.mark.peer
def test_two_homes_on_one_database_are_one_too_many(
    engine_postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "PATIENCE_S", 0.5)
    store = Store(engine_postgres, tmp_path / "a.lock")
    try:
        first = store.engine(Script())
        with pytest.raises(EnvironmentFault, match="another gateway's engine runs on this database"):
            store.engine(Script(), lock=tmp_path / "b.lock")
        first.stop()
        store.engine(Script(), lock=tmp_path / "b.lock")
    finally:
        store.close()


LOCK_HOLDER = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 1734962789"


@pytest.mark.peer
def test_a_lock_whose_connection_breaks_is_taken_again_or_the_engine_is_over(
    engine_postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "PATIENCE_S", 0.5)
    store = Store(engine_postgres, tmp_path / "a.lock")
    other = create_engine(engine_postgres, isolation_level="AUTOCOMMIT")
    try:
        engine = store.engine(Script())
        (before,) = store.sql(LOCK_HOLDER)
        store.sql("SELECT pg_terminate_backend(:pid)", pid=before[0])
        engine.reconcile()
        (after,) = store.sql(LOCK_HOLDER)
        assert after != before
        assert engine.alive
        store.sql("SELECT pg_terminate_backend(:pid)", pid=after[0])
        with other.connect() as connection:
            taken = text("SELECT pg_try_advisory_lock(:n)")
            wait_for(lambda: bool(connection.execute(taken, {"n": lock_module._ADVISORY}).scalar()))
            with pytest.raises(EnvironmentFault, match="another gateway's engine"):
                engine.reconcile()
        assert not engine.alive
    finally:
        store.close()
        other.dispose()


def test_an_engine_is_alive_while_its_queues_are_served(embedded: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "STARTING_S", 0.0)
    engine = Engine(steps=Script(), pending=list, store_url=embedded.url, lock=embedded.lock)
    assert not engine.alive
    engine.start(workers=1)
    embedded.engines.append(engine)
    wait_for(lambda: engine.alive)
    import dbos._dbos

    for event in dbos._dbos._get_dbos_instance().background_thread_stop_events:
        event.set()
    wait_for(lambda: not engine.alive)
    engine.stop()
    assert not engine.alive


def test_a_store_that_cannot_be_opened_is_told_without_its_password(tmp_path: Path) -> None:
    not_a_database = tmp_path / "engine.sqlite"
    not_a_database.write_bytes(b"this is no database, but long enough to be taken for one" * 100)
    urls = (f"sqlite:///{not_a_database}", "postgresql+psycopg://gateway:hunter2@127.0.0.1:9/gateway")
    for url in urls:
        store = Store(url, tmp_path / "engine.lock")
        for _ in range(2):  # the lock is given back
            with pytest.raises(EnvironmentFault, match="cannot be opened") as told:
                store.engine(Script())
            assert "hunter2" not in str(told.value)


def test_an_upgrade_goes_on_with_what_an_older_version_left_running_queued_and_delayed(store: Store) -> None:
    older = another_process(store)
    busy(older)
    wait_for(lambda: len(store.statuses()) == 3)
    end(older)
    assert store.statuses()["scrub/running/g0/r1/a0"] == "PENDING"
    script = Script()
    store.engine(script)
    wait_for(lambda: script.ended("running", "queued", "delayed"))
    assert [script.count("scrub", key) for key in ("running", "queued")] == [1, 1]
    assert store.sql("SELECT DISTINCT application_version, name FROM workflow_status") == [("deid-gateway-1", "leg")]
    assert script.failed == {}
