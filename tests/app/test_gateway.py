"""The whole gateway in this process or as one of its own: intents, reload, poison, stop and start."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from pathlib import Path

import poison
import pytest
from houses import add_policy, edit, late, route_all, study, to_folder
from running import GatewayProcess, running, send, the_job, wait_idle

from gateway.app import candidates, serve
from gateway.app.serve import Gateway
from gateway.database import Database
from gateway.errors import EnvironmentFault
from gateway.settings import Home, load_settings
from gateway.study import State


def wait_for_state(gateway: Gateway, key: str, state: State, *, seconds: float = 20.0) -> float:
    """Seconds until the job is in this state."""
    began = time.monotonic()
    while True:
        job = gateway.parts.database.job(key)
        assert job is not None
        if job.state == state:
            return time.monotonic() - began
        assert time.monotonic() - began < seconds, job
        time.sleep(0.02)


def test_intents_of_another_process_are_carried_out_within_a_second_and_their_leg(home: Home, policies: Path) -> None:
    edit(policies, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    with running(home, policies) as gateway:
        datasets = [study()[0] for _ in range(3)]
        for ds in datasets:
            assert send(ds, gateway.receiver.port) == 0x0000
        wait_idle(gateway)
        jobs = [the_job(gateway, ds) for ds in datasets]
        assert {job.state for job in jobs} == {State.HELD}
        other = Database.in_home(home.database)  # as the command line does
        time.sleep(0.5)
        other.add_intent(kind="reject", key=jobs[0].job_key, actor="dpo", reason="wrong body part")
        assert wait_for_state(gateway, jobs[0].job_key, State.REJECTED) < 3.0
        serial = other.add_intent(kind="release", key=jobs[1].job_key, actor="dpo", reason="looked at it")
        wait_for_state(gateway, jobs[1].job_key, State.SENT)
        unknown = other.add_intent(kind="reject", key="nobody", actor="dpo", reason="wrong body part")
        wait_idle(gateway)
        outcomes = [intent.outcome for intent in (other.intent(serial), other.intent(unknown)) if intent]
        assert outcomes == ["done", "no such key"]
        other.close()
    with sqlite3.connect(home.engine_database) as store:
        ids = {row[0] for row in store.execute("SELECT workflow_uuid FROM workflow_status")}
    assert {"decide/1/g0/r1/a0", "decide/2/g0/r1/a0", "decide/3/g0/r1/a0"} <= ids
    assert any(name.startswith("retain/") for name in ids)


def test_intents_written_while_nothing_runs_are_carried_out_at_the_start(home: Home, policies: Path) -> None:
    edit(policies, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    (ds,) = study()
    with running(home, policies) as gateway:
        send(ds, gateway.receiver.port)
        wait_idle(gateway)
        key = the_job(gateway, ds).job_key
    other = Database.in_home(home.database)
    other.add_intent(kind="release", key=key, actor="dpo", reason="looked at it")
    other.close()
    with running(home, policies) as gateway:
        wait_for_state(gateway, key, State.SENT)


def test_a_poison_study_ends_held_after_three_tries_and_the_others_go_on(
    home: Home, policies: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "scrub_instance", poison.scrub)
    (deadly,) = study()
    deadly.ImageComments = poison.DEADLY.decode()
    others = [study()[0] for _ in range(6)]
    with running(home, policies) as gateway:
        for ds in (*others[:3], deadly, *others[3:]):
            assert send(ds, gateway.receiver.port) == 0x0000
        wait_idle(gateway, seconds=120)
        job = the_job(gateway, deadly)
        assert (job.state, job.reason, job.at) == (State.HELD, "stage_failed", "worker_lost")
        ended = [the_job(gateway, ds) for ds in others]
        assert {job.state for job in ended} == {State.SENT}
    assert len(list(target.rglob("*.dcm"))) == 6
    deaths = (home.root / "deaths").read_bytes()
    assert len(deaths) == 2 * 3  # each try kills the pool of all, then its own


def test_stop_with_work_in_flight_and_start_again_goes_on(
    home: Home, policies: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "scrub_instance", poison.scrub)
    slow = [study()[0] for _ in range(4)]
    for ds in slow:
        ds.ImageComments = poison.SLOW.decode()
    with running(home, policies) as gateway:
        for ds in slow:
            send(ds, gateway.receiver.port)
        while not gateway.engine._running:
            time.sleep(0.02)
    assert len(list(target.rglob("*.dcm"))) < 4
    with running(home, policies) as gateway:
        wait_idle(gateway)
        jobs = [the_job(gateway, ds) for ds in slow]
        assert {job.state for job in jobs} == {State.SENT}
        assert {job.round for job in jobs} == {1}
        decisions = [line["decision"] for line in gateway.parts.ledger.lines() if line["event"] != "started"]
        assert len(decisions) == len(set(decisions)) == 4 * 3
    assert len(list(target.rglob("*.dcm"))) == 4


def test_a_second_gateway_on_a_home_is_told_so_before_anything_else(
    home: Home, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(home, policies) as gateway:
        values = gateway.parts.settings.model_copy(
            update={"dicom_port": gateway.receiver.port, "http_port": gateway.status.port}
        )
        second = Gateway(home, values)
        monkeypatch.setattr(serve, "require_sight", lambda *_: pytest.fail("planting leaks takes minutes"))
        with pytest.raises(EnvironmentFault, match="another gateway runs on this home"):
            second.start()
        (ds,) = study()
        assert send(ds, gateway.receiver.port) == 0x0000  # the first one goes on
        wait_idle(gateway)
        assert the_job(gateway, ds).state == State.SENT


def test_a_taken_port_is_told_and_leaves_nothing_locked(home: Home, policies: Path) -> None:
    with running(home, policies) as gateway:
        taken = gateway.receiver.port
        other = Home(home.root.parent / "other")
        other.create()
        settings = load_settings(
            other.root, policies=policies, dicom_port=taken, http_port=0, allowed_peers=("PACS@127.0.0.1",)
        )
        # Its own engine cannot run beside ours in one process, so the doors are tried alone.
        second = Gateway(other, settings)
        with pytest.raises(EnvironmentFault, match=str(taken)):
            second.receiver.start()
        second.stop()


def test_sighup_loads_policies_again_and_a_faulty_file_changes_nothing(
    home: Home, tmp_path: Path, target: Path
) -> None:
    policies = to_folder(tmp_path / "policies", target)
    process = GatewayProcess(home, policies)
    process.start()
    try:
        (first,) = study()
        assert send(first, process.dicom_port) == 0x0000
        database = process.database()
        wait_sent(database, 1)

        def hang_up(event: str) -> None:
            before = process.log.read_text().count(event)
            assert process.process is not None
            os.kill(process.process.pid, signal.SIGHUP)
            deadline = time.monotonic() + 10
            while process.log.read_text().count(event) == before:
                assert time.monotonic() < deadline, event
                time.sleep(0.05)

        edit(policies, "research-basic", lambda body: body["header"]["patient_id"].update(prefix="NEW-"))
        hang_up("policies_loaded")
        assert send(study()[0], process.dicom_port) == 0x0000
        assert send(late(first), process.dicom_port) == 0x0000
        wait_sent(database, 3)
        (policies / "routes.yaml").write_text("routes: [{name: 3}]\n")
        hang_up("policies_refused")
        assert send(study()[0], process.dicom_port) == 0x0000
        wait_sent(database, 4)
        digests = [job.policy_digest for job in database.jobs_in()]
        key_of_first = digests[0]
        assert digests.count(key_of_first) == 2  # the first study and its late instance
        assert len(set(digests)) == 2
        database.close()
    finally:
        assert process.stop() == 0
    prefixes = sorted(path.read_bytes().count(b"NEW-") > 0 for path in target.rglob("*.dcm"))
    assert prefixes == [False, False, True, True]


def wait_sent(database: Database, count: int, *, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while len(database.jobs_in(State.SENT)) < count:
        assert time.monotonic() < deadline, database.count_states()
        time.sleep(0.05)


def test_one_target_sent_and_one_held_through_the_whole_gateway(home: Home, policies: Path, tmp_path: Path) -> None:
    add_policy(policies, "strict", lambda body: body["gate"].update(not_assessed=[]))
    edit(policies, "destinations", lambda body: body.update(second=f"folder:{tmp_path}/second"))
    route_all(policies, ("one", "research-basic", "research-archive"), ("two", "strict", "second"))
    (ds,) = study()
    with running(home, policies) as gateway:
        send(ds, gateway.receiver.port)
        wait_idle(gateway)
        jobs = gateway.parts.database.jobs_in()
        assert sorted((job.destination, str(job.state)) for job in jobs) == [
            ("research-archive", "sent"),
            ("second", "held"),
        ]
        work = {path.name for path in home.work.iterdir()}
        gateway.poller._reconciled_at -= 3600  # the next turn tidies up
        deadline = time.monotonic() + 10
        while work != {job.job_key for job in jobs if job.state == State.HELD}:
            assert time.monotonic() < deadline
            time.sleep(0.05)
            work = {path.name for path in home.work.iterdir()}
        assert gateway.parts.ledger.verify().sound
