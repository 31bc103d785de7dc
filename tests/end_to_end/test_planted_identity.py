"""A planted identity in many places: nothing leaves with it, and nothing of it lies anywhere but in the spool."""

from __future__ import annotations

import io
import logging
import time
from pathlib import Path

import pydicom
import pytest
from planting import ID, NAME, PLACES, found_in
from pynetdicom import AE
from pynetdicom.dimse_primitives import C_STORE
from running import PACS, archive, policies_for, running, the_job, wait_idle

from gateway.app.intake import dataset_offset
from gateway.observe import start_logging
from gateway.settings import Home
from gateway.study import State


def send_encoded(data: bytes, port: int) -> int:
    """The data set of a file, byte by byte as it is, as a PACS sends it."""
    offset = dataset_offset(io.BytesIO(data))
    meta = pydicom.dcmread(io.BytesIO(data), stop_before_pixels=True).file_meta
    scu = AE(ae_title=PACS)
    scu.add_requested_context(meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID)
    association = scu.associate("127.0.0.1", port, ae_title="DEID")
    assert association.is_established
    association._reactor_checkpoint.clear()  # else pynetdicom's own thread may take the answer
    while not association._is_paused:
        time.sleep(0.001)
    try:
        request = C_STORE()
        request.MessageID = 1
        request.AffectedSOPClassUID = meta.MediaStorageSOPClassUID
        request.AffectedSOPInstanceUID = meta.MediaStorageSOPInstanceUID
        request.Priority = 2
        request.DataSet = io.BytesIO(data[offset:])
        association.dimse.send_msg(request, association.accepted_contexts[0].context_id)
        _, answer = association.dimse.get_msg(block=True)
        return int(answer.Status)
    finally:
        association._reactor_checkpoint.set()
        association.release()


def outside_the_spool(home: Home) -> list[Path]:
    """Everything that a running gateway wrote, but the originals."""
    return [path for path in home.root.rglob("*") if not path.is_relative_to(home.spool)]


def test_no_planted_identity_leaves_or_lies_outside_the_spool(tmp_path: Path, home: Home) -> None:
    log = io.StringIO()
    start_logging(log, level=logging.DEBUG)
    received = tmp_path / "received"
    received.mkdir()
    files = {name: place.file() for name, place in PLACES.items()}
    with archive(received) as kept, running(home, policies_for(tmp_path / "policies", kept.url)) as gateway:
        for name, data in files.items():
            assert send_encoded(data, gateway.receiver.port) == 0x0000, name
        wait_idle(gateway)
        ends = {
            name: the_job(gateway, pydicom.dcmread(io.BytesIO(data), stop_before_pixels=True))
            for name, data in files.items()
        }
        gateway.refresh_metrics()
        from prometheus_client import generate_latest

        metrics = generate_latest(gateway.parts.metrics.registry)

    # Every place is one that the Basic Profile cleans, so cleaning must succeed: a held study is a needless loss.
    assert {name: (job.state, job.reason, job.at) for name, job in ends.items() if job.state != State.SENT} == {}
    assert len(list(received.iterdir())) == len(files)
    for path in received.iterdir():
        assert found_in(path.read_bytes()) == []
        assert found_in(path.name.encode()) == []
    assert found_in(metrics) == []
    assert found_in(log.getvalue().encode()) == []
    assert log.getvalue()
    for path in outside_the_spool(home):
        assert found_in(str(path.relative_to(home.root)).encode()) == []
        if path.is_file():
            assert found_in(path.read_bytes()) == [], path.relative_to(home.root)
    # The search can find: the originals are full of it.
    assert any(NAME in path.read_bytes().decode("latin-1") for path in home.spool.rglob("*.dcm"))
    assert found_in(ID.encode())


def test_what_the_header_leaves_is_held_by_the_gate_and_named_by_place_only(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that keeps a free text (with a reason) keeps the name in it: the gate must see it, and not say it."""
    import yaml
    from planting import base, encoded

    from gateway.app.decisions import stored_verdicts

    def keep_comments(folder: Path) -> None:
        policy = yaml.safe_load((folder / "research-basic.yaml").read_text())
        policy["header"]["keep"] = {"StudyDescription": "a test of the gate"}
        (folder / "research-basic.yaml").write_text(yaml.safe_dump(policy))

    log = io.StringIO()
    start_logging(log)
    ds = base()
    ds.StudyDescription = "for Leaktest Zzsynth"
    with archive() as kept:
        policies = policies_for(tmp_path / "policies", kept.url, change=keep_comments)
        with running(home, policies) as gateway:
            assert send_encoded(encoded(ds), gateway.receiver.port) == 0x0000
            wait_idle(gateway)
            job = the_job(gateway, ds)
    assert (job.state, job.reason) == (State.HELD, "residual_identifier")
    findings = [finding for verdict in stored_verdicts(job) for finding in verdict.findings]
    assert any("0008,1030" in finding.where.lower() for finding in findings)
    assert kept.received == {}
    for path in outside_the_spool(home):
        if path.is_file() and not path.is_relative_to(home.work):  # the candidate itself is what is held
            assert found_in(path.read_bytes()) == [], path.relative_to(home.root)
    assert found_in(log.getvalue().encode()) == []
