"""The engine and its store: one process at a time, upgrades, planted rows, lost and stranded work (engine.md)."""

from __future__ import annotations

import base64
import logging
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS
from engine_cases import Script, Store, wait_for
from sqlalchemy.exc import OperationalError

from gateway.errors import EnvironmentFault, Hold
from gateway.flow import Engine, Leg, Next
from gateway.flow import engine as engine_module
from gateway.flow import lock as lock_module
from gateway.flow.compact import compact_store

HERE = Path(__file__).parent
PLANT_ROW = """
    INSERT INTO {table} (workflow_uuid, status, name, inputs, serialization, queue_name, executor_id,
                         application_version, created_at, updated_at, recovery_attempts, priority)
    VALUES (:id, :status, 'leg', :inputs, 'py_pickle', :queue, 'local', 'deid-gateway-1', :now, :now, 0, 0)
"""


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


class Planted:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_planted_pickle_executes_nothing_and_stops_nobody(store: Store, tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    payload = base64.b64encode(pickle.dumps({"args": (Planted(proof),), "kwargs": {}})).decode()
    pickle.loads(base64.b64decode(payload))
    assert proof.exists()  # it would
    proof.unlink()
    script = Script()
    engine = store.engine(script)
    for name, status in (("planted", "ENQUEUED"), ("scrub/s2/g0/r1/a0", "SUCCESS"), ("scrub/s3/g0/r1/ax", "PENDING")):
        store.sql(
            PLANT_ROW.format(table=store.table),
            id=name,
            status=status,
            inputs=payload,
            queue="cpu",
            now=int(time.time() * 1000),
        )
    script.due["s2"] = Next(Leg.SCRUB, "s2", 1)
    engine.reconcile()
    engine.reconcile()
    engine.enqueue(Next(Leg.SCRUB, "s1", 1))
    wait_for(lambda: script.ended("s1", "s2"))
    wait_for(lambda: store.statuses()["planted"] != "ENQUEUED")
    time.sleep(0.5)
    assert not proof.exists()


@pytest.mark.parametrize("status", ["ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED", "SUCCESS", "deleted"])
def test_a_leg_whose_workflow_is_lost_is_taken_up_again(embedded: Store, status: str) -> None:
    script = Script()
    script.act["scrub", "s1"] = lambda: time.sleep(0.1)
    engine = embedded.engine(script)
    engine.enqueue(Next(Leg.SCRUB, "s1", 1))
    wait_for(lambda: script.ended("s1"))
    wait_for(lambda: set(embedded.statuses().values()) == {"SUCCESS"})
    DBOS.delete_workflow("forward/s1/g0/r1/a0")
    if status == "deleted":
        DBOS.delete_workflow("gate/s1/g0/r1/a0")
    else:
        embedded.sql(f"UPDATE {embedded.table} SET status = '{status}' WHERE workflow_uuid LIKE 'gate/%'")
    script.due["s1"] = Next(Leg.GATE, "s1", 1)  # our tables know better
    assert engine.reconcile() == 1
    wait_for(lambda: script.count("forward", "s1") == 2)
    assert (script.count("gate", "s1"), script.due) == (2, {})
    assert engine.reconcile() == 0
    revived = "gate/s1/g0/r1/a0" if status == "deleted" else "gate/s1/g0/r1/a1"
    wait_for(lambda: embedded.statuses()[revived] == "SUCCESS")


def test_what_the_engine_still_has_is_not_taken_up_twice(store: Store) -> None:
    script = Script()
    go_on = threading.Event()
    script.act["scrub", "running"] = lambda: go_on.wait(20) and None
    for key in ("running", "queued", "delayed"):
        script.due[key] = Next(Leg.SCRUB, key, 1)
    engine = store.engine(script, workers=1)
    engine.enqueue(Next(Leg.SCRUB, "delayed", 1, attempt=3, delay_s=60.0))
    wait_for(lambda: script.count("scrub", "running") == 1)
    assert [engine.reconcile() for _ in range(3)] == [0, 0, 0]
    go_on.set()
    wait_for(lambda: script.ended("running", "queued"))
    assert script.count("scrub", "running") == script.count("scrub", "queued") == 1


def test_a_leg_whose_store_failed_under_it_is_resumed(embedded: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: the work is done, its outcome cannot be stored, and the workflow stays PENDING (condition 9)."""
    script = Script()
    engine = embedded.engine(script)
    broken = threading.Event()

    def fail(*_arguments: Any, **_more: Any) -> None:
        broken.set()
        raise OperationalError("insert", {}, Exception("database or disk is full"))

    with monkeypatch.context() as patch:
        import dbos._dbos

        store_of_dbos = dbos._dbos._get_dbos_instance()._sys_db
        patch.setattr(store_of_dbos, "record_operation_result", fail)
        patch.setattr(store_of_dbos, "update_workflow_outcome", fail)
        script.due["s1"] = Next(Leg.SCRUB, "s1", 1)
        engine.enqueue(Next(Leg.SCRUB, "s1", 1))
        assert broken.wait(10)
        wait_for(lambda: not engine._running)
    assert embedded.statuses() == {"scrub/s1/g0/r1/a0": "PENDING"}
    script.due.clear()
    engine.reconcile()
    assert embedded.statuses() == {"scrub/s1/g0/r1/a0": "PENDING"}  # one look may come between dequeue and start
    engine.reconcile()
    wait_for(lambda: script.ended("s1"))


def test_a_sweep_deletes_what_ended_long_ago_and_nothing_else(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script()
    engine = store.engine(script)
    engine.enqueue(Next(Leg.SCRUB, "old", 1))
    wait_for(lambda: script.ended("old"))
    wait_for(lambda: set(store.statuses().values()) == {"SUCCESS"})
    assert engine.sweep() == 0
    monkeypatch.setattr(engine_module, "KEEP_FINISHED_S", 1.0)
    time.sleep(1.2)
    engine.enqueue(Next(Leg.SCRUB, "waiting", 1, delay_s=60.0))
    engine.enqueue(Next(Leg.SCRUB, "new", 1))
    wait_for(lambda: script.ended("new"))
    assert engine.sweep() == 3
    assert {workflow.split("/")[1] for workflow in store.statuses()} == {"waiting", "new"}


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


def test_the_engine_logs_through_our_logging_only(embedded: Store, capfd: pytest.CaptureFixture[str]) -> None:
    from gateway.observe import start_logging

    start_logging()
    script = Script()
    script.act["scrub", "s1"] = lambda: (_ for _ in ()).throw(Hold("no_route"))
    engine = embedded.engine(script)
    engine.enqueue(Next(Leg.SCRUB, "s1", 1))
    wait_for(lambda: "s1" in script.failed)
    logging.getLogger("dbos").error("a text that quotes %s", "ZZSYNTH^LEAKTEST")
    DBOS.logger.warning("ZZSYNTH^LEAKTEST")
    engine.stop()
    out, err = capfd.readouterr()
    assert "ZZSYNTH" not in out + err
    assert all(line.startswith("{") for line in (out + err).splitlines())


def test_a_store_that_is_mostly_free_pages_is_compacted(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "engine.sqlite"
    url = f"sqlite:///{path}"
    assert not compact_store(url)  # not there yet
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 4000,)] * 8000)
    assert not compact_store(url)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM t WHERE rowid > 100")
    before = path.stat().st_size
    assert compact_store(url)
    assert path.stat().st_size < before / 10
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (100,)
    assert not compact_store("postgresql+psycopg://gateway@127.0.0.1/gateway")
