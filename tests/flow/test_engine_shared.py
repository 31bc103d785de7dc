"""Engines that share a store: each serves its queues, work of the dead goes on, and an older one may be among them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_cases import Script, Store, wait_for
from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from gateway.errors import EnvironmentFault
from gateway.flow import Leg, Next
from gateway.flow import lock as lock_module
from gateway.flow.lock import StoreLock
from gateway.flow.queues import CPU, DECISIONS, GPU, NET

pytestmark = pytest.mark.peer
HERE = Path(__file__).parent


@pytest.fixture
def shared(engine_postgres: str, tmp_path: Path) -> Iterator[Store]:
    server = create_engine(engine_postgres)
    with server.begin() as connection:
        connection.execute(text("DROP SCHEMA IF EXISTS dbos CASCADE"))
    server.dispose()
    store = Store(engine_postgres, tmp_path / "engine.lock")
    yield store
    store.close()


@pytest.fixture
def older(shared: Store) -> Iterator[subprocess.Popen[str]]:
    """An older engine at work on the same store: one leg runs, one is queued, one is delayed."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "older_engine.py"), shared.url, str(shared.lock), "older"],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{HERE.parent.parent}:{HERE}", "PATH": "/usr/bin:/bin"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    yield process
    process.kill()
    process.communicate()


def test_a_newer_engine_beside_an_older_one_finishes_what_that_had_begun_once_it_is_gone(
    shared: Store, older: subprocess.Popen[str]
) -> None:
    script = Script()
    engine = shared.engine(script, executor_id="newer")
    wait_for(lambda: script.ended("delayed"))
    assert engine.rescue(lambda: ["older", "newer"]) == 0  # it is alive: its work is its own
    assert script.count("scrub", "running") == 0
    older.kill()
    older.wait()
    assert engine.rescue(lambda: ["newer"]) == 1
    wait_for(lambda: script.ended("running", "queued"))
    assert engine.rescue(lambda: ["newer"]) == 0
    assert [script.count("scrub", key) for key in ("running", "queued")] == [1, 1]


def test_learned_legs_wait_for_a_process_that_serves_their_queue(shared: Store) -> None:
    script = Script()
    script.learned = {"learned"}
    engine = shared.engine(script, executor_id="cpu", queues=(CPU, NET, DECISIONS))
    for key in ("learned", "plain"):
        engine.enqueue(Next(Leg.SCRUB, key, 1))
    wait_for(lambda: script.ended("plain"))
    assert shared.statuses()["scrub/learned/g0/r1/a0"] == "ENQUEUED"
    assert shared.sql("SELECT queue_name FROM workflow_status WHERE status = 'ENQUEUED'") == [(GPU,)]
    engine.stop()
    engine = shared.engine(script, executor_id="gpu", queues=(GPU,))
    wait_for(lambda: script.count("gate", "learned") == 1)
    time.sleep(0.5)
    assert script.count("forward", "learned") == 0  # sending is another process's
    assert engine.alive


def test_a_lane_is_shared_by_all_processes(shared: Store) -> None:
    engine = shared.engine(Script(), executor_id="one")
    limits = "SELECT name, worker_concurrency, partition_concurrency, concurrency FROM dbos.queues"
    found = {row[0]: row[1:] for row in shared.sql(limits)}
    assert found[NET] == (32, 4, None)  # four at a time for each destination, whoever sends
    assert found[DECISIONS] == (None, None, 1)
    assert engine.alive


def test_a_command_waits_for_no_gateway_of_several_and_they_wait_for_it(
    shared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "PATIENCE_S", 0.5)
    first = StoreLock(shared.lock, shared.url, shared=True)
    second = StoreLock(shared.lock, shared.url, shared=True)
    command = StoreLock(shared.lock, shared.url, brief=True)
    first.take()
    second.take()
    assert lock_module.is_taken(shared.lock)
    with pytest.raises(EnvironmentFault, match="another gateway runs"):
        command.take()
    first.release()
    second.release()
    command.take()
    elsewhere = StoreLock(shared.lock.with_name("other.lock"), shared.url, shared=True)
    with pytest.raises(EnvironmentFault, match="another gateway's engine runs on this database"):
        elsewhere.take()
    command.release()


def test_a_lock_outlives_an_outage_of_the_database_and_is_lost_to_who_takes_it(
    shared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "PATIENCE_S", 0.5)
    mine = StoreLock(shared.lock, shared.url, shared=True)
    elsewhere = StoreLock(shared.lock.with_name("other.lock"), shared.url, brief=True)
    breaking = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    mine.take()
    try:
        assert shared.sql(breaking) == [(1,)]
        with monkeypatch.context() as away:
            nobody = create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")
            away.setattr(lock_module, "create_engine", lambda *_, **__: nobody)
            for _ in range(2):
                with pytest.raises(SQLAlchemyError):
                    mine.keep()
        mine.keep()
        with pytest.raises(EnvironmentFault, match="another gateway's engine runs on this database"):
            elsewhere.take()
        shared.sql(breaking)
        elsewhere.take()
        with pytest.raises(EnvironmentFault, match="another gateway's engine runs on this database"):
            mine.keep()
    finally:
        elsewhere.release()
        mine.release()
