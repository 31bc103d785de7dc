"""`serve` as a process: it starts, says where it listens, ends by SIGTERM with 0, and refuses what cannot work."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pydicom
import pytest
from commands import Ran, as_process, clean_environment
from processes import free_port, listening
from running import GatewayProcess, archive, policies_for, send

from gateway.settings import SHIPPED_POLICIES, Home

SEGMENTATION = "liver_1frame.dcm"  # research-basic holds it as not_assessed


@pytest.fixture
def served(home: Home, tmp_path: Path) -> Iterator[GatewayProcess]:
    with archive() as kept:
        process = GatewayProcess(home, policies_for(tmp_path / "policies", kept.url))
        process.start()
        yield process
        if process.process is not None and process.process.poll() is None:
            process.kill()


def on(served: GatewayProcess, *words: str) -> Ran:
    return as_process(*words, "--home", served.home.root, env={"DEID_POLICIES": str(served.policies)})


def until(served: GatewayProcess, ready: Callable[[], object], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, served.log.read_text()[-2000:]
        time.sleep(0.2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_0_when_told_to_and_lets_go_of_its_ports(served: GatewayProcess, number: signal.Signals) -> None:
    assert listening(served.dicom_port)
    assert served.process is not None
    served.process.send_signal(number)
    assert served.process.wait(60) == 0
    assert not listening(served.dicom_port)
    assert not listening(served.http_port)
    said = served.log.read_text()
    assert f"DEID@127.0.0.1:{served.dicom_port}" in said
    assert "Traceback" not in said


def test_logs_are_json_lines_on_stderr_and_stdout_is_for_people(home: Home, tmp_path: Path) -> None:
    with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        process = GatewayProcess(home, SHIPPED_POLICIES, {"DEID_ALLOWED_PEERS": ""})
        process.process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "serve", "--home", str(home.root)],
            env=clean_environment(DEID_DICOM_PORT=str(process.dicom_port), DEID_HTTP_PORT=str(process.http_port)),
            stdout=out,
            stderr=err,
        )
        process.wait_ready()
        assert process.stop() == 0
    said = (tmp_path / "out").read_text()
    assert f"DEID@127.0.0.1:{process.dicom_port}" in said
    assert "nobody may send yet: set DEID_ALLOWED_PEERS" in said
    lines = [json.loads(line) for line in (tmp_path / "err").read_text().splitlines()]
    assert {"started", "stopped"} <= {line["event"] for line in lines}


def test_a_second_gateway_on_one_home_is_refused(served: GatewayProcess) -> None:
    env = {"DEID_DICOM_PORT": str(free_port()), "DEID_HTTP_PORT": str(free_port())}
    ran = as_process("serve", "--home", served.home.root, env=env)
    assert ran.code == 3
    assert "another gateway runs on this home" in ran.err
    assert served.ready()


@pytest.mark.parametrize("variable", ["DEID_DICOM_PORT", "DEID_HTTP_PORT"])
def test_a_port_that_is_taken_is_named(home: Home, variable: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = str(holder.getsockname()[1])
        env = {"DEID_DICOM_PORT": str(free_port()), "DEID_HTTP_PORT": str(free_port()), variable: taken}
        ran = as_process("serve", "--home", home.root, env=env)
    assert ran.code == 3
    assert taken in ran.err
    assert variable in ran.err
    assert as_process("status", "--home", home.root).code == 0


def test_policies_with_faults_are_refused_with_all_of_them(home: Home, tmp_path: Path) -> None:
    shutil.copytree(SHIPPED_POLICIES, tmp_path / "policies", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "policies" / "routes.yaml").write_text("routes: [{name: a}]\n")
    (tmp_path / "policies" / "broken.yaml").write_bytes(b"name: \xe9t\xe9\n")
    ran = as_process("serve", "--home", home.root, env={"DEID_POLICIES": str(tmp_path / "policies")})
    assert ran.code == 2
    assert f"{tmp_path / 'policies' / 'routes.yaml'}:1: " in ran.err
    assert f"{tmp_path / 'policies' / 'broken.yaml'}:1: is not UTF-8" in ran.err


def test_sighup_loads_the_policies_again_and_faults_leave_the_present_ones(served: GatewayProcess) -> None:
    def events() -> list[str]:
        return [json.loads(line)["event"] for line in served.log.read_text().splitlines() if line.startswith("{")]

    assert served.process is not None
    policy = served.policies / "research-basic.yaml"
    sound = policy.read_text()
    policy.write_text("name: [\n")
    served.process.send_signal(signal.SIGHUP)
    until(served, lambda: "policies_refused" in events())
    policy.write_text(sound.replace("DEMO-", "OTHER-"))
    served.process.send_signal(signal.SIGHUP)
    until(served, lambda: "policies_loaded" in events())
    assert served.ready()
    assert served.stop() == 0


def test_what_the_gateway_held_is_listed_shown_and_decided_from_outside(
    served: GatewayProcess, pydicom_files: list[Path]
) -> None:
    (path,) = [path for path in pydicom_files if path.name == SEGMENTATION]
    assert send(path, served.dicom_port) == 0x0000
    until(served, lambda: on(served, "held", "list", "--json").json)
    (row,) = on(served, "held", "list", "--json").json
    assert (row["reason"], row["stage"], row["policy"]) == ("not_assessed", "gate", "research-basic")
    status = on(served, "status", "--json").json
    assert status["running"] is True
    assert status["jobs"] == [{"state": "held", "reason": "not_assessed", "jobs": 1}]
    assert on(served, "held", "show", row["key"]).code == 0

    name = str(pydicom.dcmread(path).PatientName)
    refused = on(served, "held", "release", row["key"], "--by", "dpo", "--reason", f"{name} has agreed to it")
    assert refused.code == 2
    assert "names something out of the study" in refused.err

    again = on(served, "held", "rerun", row["key"], "--by", "dpo", "--reason", "tried once more")
    assert (again.code, again.out) == (0, "rerun: done\n")
    until(served, lambda: on(served, "held", "list", "--json").json)
    released = on(served, "held", "release", row["key"], "--by", "dpo", "--reason", "looked at every frame", "--json")
    assert (released.code, released.json["outcome"]) == (0, "done")
    until(served, lambda: on(served, "status", "--json").json["jobs"] == [{"state": "sent", "reason": "", "jobs": 1}])
    late = on(served, "held", "reject", row["key"], "--by", "dpo", "--reason", "changed my mind")
    assert late.code == 2
    assert "it is sent" in late.err
    verified = on(served, "ledger", "verify", "--json")
    assert (verified.code, verified.json["sound"]) == (0, True)
    ledger = served.home.ledger.read_text()
    assert "looked at every frame" in ledger
    assert name not in ledger
