"""dcmtk as PACS, Orthanc as archive, and every DICOM file that pydicom carries: none lost, none crashes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pydicom
import pytest
from peers import Orthanc, dcmtk, need
from pydicom.uid import DeflatedExplicitVRLittleEndian, generate_uid
from running import accept_everything, dataset_sha256, policies_for, running, wait_idle

from gateway.app.serve import Gateway
from gateway.errors import REASONS
from gateway.settings import Home
from gateway.study import FINAL_STATES, Clearance, State

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

NODELAY = {**os.environ, "TCP_NODELAY": "1"}  # dcmtk as shipped waits 40 ms for each object


def made_distinct(files: list[Path], folder: Path) -> list[Path]:
    """Copies with UIDs and a Patient ID of their own: many test files share theirs, and would meet as conflicts."""
    folder.mkdir()
    copies = []
    for number, path in enumerate(files):
        ds = pydicom.dcmread(path)
        if "SOPClassUID" not in ds or "TransferSyntaxUID" not in ds.file_meta:
            continue
        ds.StudyInstanceUID, ds.SeriesInstanceUID = generate_uid(), generate_uid()
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = generate_uid()
        ds.PatientID = f"LEAK{number:04d}"
        try:
            ds.save_as(folder / f"{number:04d}.dcm")
        except (TypeError, ValueError, AttributeError):  # broken on purpose: those are sent as they are only
            continue
        copies.append(folder / f"{number:04d}.dcm")
    return copies


def dcmsend(files: list[Path], port: int) -> int:
    """Send all files; returns how many the gateway answered with success."""
    done = subprocess.run(
        [
            dcmtk("dcmsend"),
            "-v",
            "-aet",
            "PACS",
            "-aec",
            "DEID",
            "-nh",
            "-dn",
            "127.0.0.1",
            str(port),
            *map(str, files),
        ],
        env=NODELAY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told = re.search(r"with status SUCCESS\s*:\s*(\d+)", done.stdout + done.stderr)
    assert told, (done.stdout + done.stderr)[-2000:]
    return int(told.group(1))


def ends(gateway: Gateway) -> dict[str, int]:
    """Every received instance by the end of its study; fails on one that has no end, or an unknown reason."""
    database = gateway.parts.database
    counted: dict[str, int] = {}
    for study_key, generation in {
        (row.study_key, row.generation) for key, _ in database.spooled_names() for row in database.instances_of(key)
    }:
        jobs = database.jobs_of(study_key, generation)
        study = database.study(study_key, generation)
        assert study is not None
        states = [(str(job.state), job.reason) for job in jobs] or [(study.state, study.reason)]
        for state, reason in states:
            assert state in FINAL_STATES, (state, reason)
            assert state == State.SENT or reason in REASONS
            assert reason != "stage_failed"
            rows = database.instances_of(study_key, generation)
            counted[f"{state} {reason}"] = counted.get(f"{state} {reason}", 0) + len(rows)
    return counted


def test_every_test_file_ends_forwarded_or_held_and_what_arrives_is_what_was_cleared(
    tmp_path: Path, home: Home, pydicom_files: list[Path]
) -> None:
    need("dcmtk")
    need("orthanc")
    files = [path for path in pydicom_files if path.name != "DICOMDIR"]
    copies = made_distinct([path for path in files if path.parent.name == "test_files"], tmp_path / "copies")
    assert len(copies) > 60
    with Orthanc() as orthanc:
        policies = policies_for(tmp_path / "policies", orthanc.dicom.url, change=accept_everything)
        with running(home, policies, quiet_s=3.0) as gateway:
            taken = dcmsend(files, gateway.receiver.port) + dcmsend(copies, gateway.receiver.port)
            wait_idle(gateway, seconds=400)
            counted = ends(gateway)
            database = gateway.parts.database
            cleared = {
                instance.sop_instance_uid: instance
                for job in database.jobs_in(State.SENT)
                for instance in Clearance.from_json(job.clearance).instances
            }
        arrived = orthanc.files_by_sop_uid()
    print(f"\ntaken {taken}: {counted}")
    assert sum(counted.values()) == taken == len(database.spooled_names())
    assert taken > 200
    assert set(arrived) == set(cleared)
    differing = []
    for uid, data in arrived.items():
        path = tmp_path / f"{uid}.dcm"
        path.write_bytes(data)
        if dataset_sha256(path) != cleared[uid].sha256_dataset:
            differing.append(cleared[uid].transfer_syntax_uid)
    assert set(differing) <= {DeflatedExplicitVRLittleEndian}  # Orthanc inflates these when it takes them in
    # The copies are sound objects of one person each: most of them must get through.
    assert len(arrived) > 50
