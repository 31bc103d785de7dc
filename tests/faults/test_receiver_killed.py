"""kill -9 of one receiver process of a whole gateway: it is missed, it comes back, and no study is lost."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from peers import wait_until
from planting import base
from pydicom.uid import generate_uid
from running import GatewayProcess, archive, policies_for, send

from bench.receiving.receivers import listening_pids
from gateway.settings import Home
from gateway.study import State

STUDIES = 8


def readiness(gateway: GatewayProcess) -> dict[str, bool]:
    try:
        with urlopen(f"http://127.0.0.1:{gateway.http_port}/readyz", timeout=10) as answer:
            return dict(json.loads(answer.read()))
    except HTTPError as unwell:
        return dict(json.loads(unwell.read()))


def metrics(gateway: GatewayProcess) -> list[str]:
    with urlopen(f"http://127.0.0.1:{gateway.http_port}/metrics", timeout=10) as answer:
        return str(answer.read().decode()).splitlines()


def send_until_taken(gateway: GatewayProcess, sent: list[str]) -> None:
    """A PACS: each object again and again until it is told that it is safe."""
    for number in range(STUDIES):
        ds = base()
        ds.PatientID = f"LEAK{number:04d}"
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = generate_uid()
        while send(ds, gateway.dicom_port) != 0x0000:
            time.sleep(0.05)
        sent.append(str(ds.SOPInstanceUID))


@pytest.mark.timeout(300)
def test_a_killed_receiver_is_missed_comes_back_and_loses_no_study(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    with archive() as kept:
        environment = {"DEID_WORKERS": "1", "DEID_QUIET_S": "0.5", "DEID_RECEIVERS": "2"}
        gateway = GatewayProcess(home, policies_for(tmp_path / "policies", kept.url), environment)
        gateway.start(wait=False)
        try:
            gateway.wait_ready(seconds=120)
            assert gateway.process is not None
            receivers = [pid for pid in listening_pids(gateway.dicom_port) if pid != gateway.process.pid]
            assert len(receivers) == 2
            assert "deid_receiver_processes 2.0" in metrics(gateway)
            sent: list[str] = []
            pacs = threading.Thread(target=send_until_taken, args=(gateway, sent), daemon=True)
            pacs.start()
            wait_until(lambda: len(sent) >= 2, seconds=60, what="work has begun")
            os.kill(receivers[0], signal.SIGKILL)
            wait_until(lambda: not readiness(gateway)["receiver"], seconds=30, what="it is missed")
            wait_until(lambda: all(readiness(gateway).values()), seconds=60, what="it is back")
            assert "deid_receiver_processes_lost_total 1.0" in metrics(gateway)
            assert "deid_receiver_processes 2.0" in metrics(gateway)
            pacs.join(60)
            assert len(sent) == STUDIES
            database = gateway.database()
            wait_until(
                lambda: [job.state for job in database.jobs_in()] == [State.SENT] * STUDIES, seconds=90, what="all sent"
            )
            database.close()
        finally:
            code = gateway.stop()
    assert code == 0
    assert sum(len(arrivals) for arrivals in kept.received.values()) == STUDIES
    assert listening_pids(gateway.dicom_port) == []
