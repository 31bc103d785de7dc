"""The engine and its store: planted rows, lost and stranded work, what is swept and what is logged (engine.md)."""

from __future__ import annotations

import base64
import logging
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS
from engine_cases import Script, Store, wait_for
from sqlalchemy.exc import OperationalError

from gateway.errors import Hold
from gateway.flow import Leg, Next
from gateway.flow.compact import compact_store

HERE = Path(__file__).parent
PLANT_ROW = """
    INSERT INTO {table} (workflow_uuid, status, name, inputs, serialization, queue_name, executor_id,
                         application_version, created_at, updated_at, recovery_attempts, priority)
    VALUES (:id, :status, 'leg', :inputs, 'py_pickle', :queue, 'local', 'deid-gateway-1', :now, :now, 0, 0)
"""


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
    running = [f"running{n}" for n in range(4)]  # as many as one worker process keeps busy
    for key in running:
        script.act["scrub", key] = lambda: go_on.wait(20) and None
    for key in (*running, "queued"):
        script.due[key] = Next(Leg.SCRUB, key, 1)
    script.pause = 60.0
    engine = store.engine(script, workers=1)
    engine.enqueue(Next(Leg.SCRUB, "delayed", 1, attempt=3, delay_s=60.0))
    script.due["delayed"] = Next(Leg.SCRUB, "delayed", 1)
    wait_for(lambda: all(script.count("scrub", key) for key in running))
    assert [engine.reconcile() for _ in range(3)] == [0, 0, 0]
    assert script.count("scrub", "queued") == 0
    go_on.set()
    wait_for(lambda: script.ended(*running, "queued"))
    assert [script.count("scrub", key) for key in (*running, "queued", "delayed")] == [1] * 5 + [0]


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


def test_a_successor_that_cannot_be_enqueued_is_taken_up_later_and_nothing_of_the_fault_is_stored(
    embedded: Store,
) -> None:
    script = Script()
    fault = OperationalError("select", {"name": "ZZSYNTH^LEAKTEST"}, Exception("ZZSYNTH^LEAKTEST"))

    def lane(task: Next) -> str:
        if not script.noted["lane"]:
            script.noted["lane"] += 1
            raise fault
        return "archive"

    script.lane = lane  # type: ignore[method-assign]
    engine = embedded.engine(script)
    engine.enqueue(Next(Leg.GATE, "s1", 1))
    wait_for(lambda: embedded.statuses()["gate/s1/g0/r1/a0"] == "ERROR")
    assert "ZZSYNTH" not in embedded.everything()
    assert engine.reconcile() == 1
    wait_for(lambda: script.ended("s1"))


def test_a_sweep_deletes_what_ended_long_ago_and_nothing_else(store: Store) -> None:
    script = Script()
    engine = store.engine(script)
    for key in ("old", "new"):
        engine.enqueue(Next(Leg.SCRUB, key, 1))
    engine.enqueue(Next(Leg.SCRUB, "waiting", 1, delay_s=600.0))
    wait_for(lambda: script.ended("old", "new"))
    wait_for(lambda: sorted(store.statuses().values()) == ["DELAYED"] + ["SUCCESS"] * 6)
    assert engine.sweep() == 0
    a_day_and_an_hour = 25 * 3600 * 1000
    store.sql(
        f"UPDATE {store.table} SET completed_at = completed_at - :ms WHERE workflow_uuid LIKE '%/old/%'",
        ms=a_day_and_an_hour,
    )
    assert engine.sweep() == 3
    assert {workflow.split("/")[1] for workflow in store.statuses()} == {"waiting", "new"}
    assert engine.sweep() == 0


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


def test_a_pause_ends_although_the_clock_was_set_back_meanwhile(store: Store) -> None:
    script = Script()
    engine = store.engine(script)
    engine.enqueue(Next(Leg.FORWARD, "s1", 1, delay_s=3600.0))  # what a pause of seconds is for a clock an hour behind
    engine.enqueue(Next(Leg.FORWARD, "s2", 1, delay_s=10.0))
    wait_for(lambda: len(store.statuses()) == 2)
    engine.reconcile()
    wait_for(lambda: script.ended("s1"))
    assert not script.ended("s2")


def test_urgent_legs_are_taken_up_before_those_that_came_earlier(store: Store) -> None:
    script, one, others = Script(), threading.Event(), threading.Event()
    engine = store.engine(script, workers=1)
    fill = [f"fill{number}" for number in range(4)]  # as many as are at work at once; one of them ends
    for key in fill:
        until = one if key == "fill0" else others
        script.act["scrub", key] = lambda until=until: until.wait(20)  # type: ignore[misc]
        script.ranks[key] = 9
        engine.enqueue(Next(Leg.SCRUB, key, 1))
    wait_for(lambda: all(script.count("scrub", key) for key in fill))
    for key, rank in (("background", 4), ("routine", 3), ("urgent", 2)):
        script.ranks[key] = rank
        engine.enqueue(Next(Leg.SCRUB, key, 1))
    one.set()
    wait_for(lambda: script.ended("background", "routine", "urgent"))
    others.set()
    came = [key for leg, key in script.ran if leg == "scrub" and key not in fill]
    assert came == ["urgent", "routine", "background"]
    wait_for(lambda: script.ended(*fill))


def test_what_is_closed_waits_in_no_queue_and_is_taken_up_when_our_tables_say_so(store: Store) -> None:
    script = Script()
    script.closed.add("s1")
    engine = store.engine(script)
    engine.enqueue(Next(Leg.GATE, "s1", 1))
    wait_for(lambda: set(store.statuses().values()) == {"SUCCESS"} and len(store.statuses()) == 2)
    assert script.count("forward", "s1") == 0
    script.closed.clear()
    assert engine.reconcile() == 1
    wait_for(lambda: script.ended("s1"))
    assert "forward/s1/g0/r1/a1" in store.statuses()
