"""Reports of storage commitment on associations of our own: when, what, how often, and to whom."""

from __future__ import annotations

import json
import os
import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydicom.data
import pytest
from houses import House, house, study, to_folder
from pydicom import Dataset
from pynetdicom import AE, evt
from pynetdicom.sop_class import StorageCommitmentPushModel  # type: ignore[attr-defined]

from gateway.app.commitments import GIVE_UP_S, CommitmentReports
from gateway.app.person.originals import remove_originals
from gateway.receive import Receiver, commitment
from gateway.receive.commitment import Asked
from gateway.receive.commitments import Commitments
from gateway.settings import Home
from tests import peers


@dataclass
class Modality:
    """Takes reports on associations that we open."""

    port: int = 0
    heard: queue.Queue[tuple[int, Dataset]] = field(default_factory=queue.Queue)
    status: int = 0x0000


@contextmanager
def modality(port: int = 0) -> Iterator[Modality]:
    made = Modality()

    def take(event: evt.Event) -> tuple[int, None]:
        made.heard.put((event.event_type, event.event_information))
        return made.status, None

    entity = AE("CT1")
    entity.add_supported_context(StorageCommitmentPushModel, scu_role=False, scp_role=True)
    server = entity.start_server(("127.0.0.1", port), block=False, evt_handlers=[(evt.EVT_N_EVENT_REPORT, take)])
    assert server is not None
    made.port = server.socket.getsockname()[1]
    try:
        yield made
    finally:
        server.shutdown()


def settings_for(port: int, when: str) -> dict[str, Any]:
    return {"commitment": when, "commitment_peers": f"CT1@127.0.0.1:{port}", "network_timeout_s": 5.0}


def ask(made: House, *datasets: Dataset, transaction: str = "1.2.9") -> None:
    p = made.parts
    asked = Dataset()
    asked.TransactionUID = transaction
    asked.ReferencedSOPSequence = []
    for dataset in datasets:
        item = Dataset()
        item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID = dataset.SOPClassUID, dataset.SOPInstanceUID
        asked.ReferencedSOPSequence.append(item)
    desk = Commitments(settings=p.settings, spool=p.spool, database=p.database, keys=p.keys)
    syntax = "1.2.840.10008.1.2"
    assert desk.take("CT1", commitment.encoded(asked, syntax), syntax) == (0, None)


def waiting(made: House) -> list[Path]:
    folder = made.parts.spool.commitments
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def told(report: tuple[int, Dataset]) -> tuple[int, int, list[int]]:
    """Event type, how many are committed, and the reasons of the others."""
    event, dataset = report
    failed = [int(item.FailureReason) for item in dataset.get("FailedSOPSequence", [])]
    return event, len(dataset.get("ReferencedSOPSequence", [])), failed


def test_what_was_taken_in_is_reported_once(home: Home, tmp_path: Path) -> None:
    with (
        modality() as ct,
        house(home, to_folder(tmp_path / "p", tmp_path / "a"), **settings_for(ct.port, "intake")) as made,
    ):
        datasets = study(2)
        made.receive(*datasets)
        stranger = study(1)[0]
        ask(made, *datasets, stranger)
        reports = CommitmentReports(made.parts)
        reports.once(time.time())
        assert told(ct.heard.get(timeout=5)) == (2, 2, [0x0112])
        assert waiting(made) == []
        reports.once(time.time())
        assert ct.heard.empty()


def test_after_the_decision_it_says_what_was_decided(home: Home, tmp_path: Path) -> None:
    with (
        modality() as ct,
        house(home, to_folder(tmp_path / "p", tmp_path / "a"), **settings_for(ct.port, "decision")) as made,
    ):
        sent, held = study(2), study(1, modality="XX")
        made.receive(*sent)
        ask(made, *sent)
        reports = CommitmentReports(made.parts)
        reports.once(time.time())
        assert ct.heard.empty()  # nothing is decided yet
        made.settle()
        reports.once(time.time())
        assert told(ct.heard.get(timeout=5)) == (1, 2, [])
        held[0].remove_private_tags()
        del held[0].PatientID
        key = made.deliver(*held)
        assert made.ends(key)[0][1] == "held"
        ask(made, *held, *sent, transaction="1.2.10")
        reports.once(time.time())
        assert told(ct.heard.get(timeout=5)) == (2, 2, [0x0110])


def test_a_sender_that_is_away_is_told_later_and_after_a_restart(home: Home, tmp_path: Path) -> None:
    policies = to_folder(tmp_path / "p", tmp_path / "a")
    port = peers.free_port()
    now = time.time()
    with house(home, policies, **settings_for(port, "intake")) as made:
        datasets = study(1)
        made.receive(*datasets)
        ask(made, *datasets)
        reports = CommitmentReports(made.parts)
        reports.once(now)
        assert len(waiting(made)) == 1
        with modality(port) as ct:
            reports.once(now + 1)  # its pause is not over
            assert ct.heard.empty()
            ct.status = 0x0110
            reports.once(now + 10)
            ct.heard.get(timeout=5)
            assert len(waiting(made)) == 1  # it heard, and did not take it
    with modality(port) as ct, house(home, policies, **settings_for(port, "intake")) as made:
        CommitmentReports(made.parts).once(now + 20)
        assert told(ct.heard.get(timeout=5)) == (1, 1, [])
        assert waiting(made) == []


def test_what_nobody_decides_or_takes_in_a_week_is_given_up(home: Home, tmp_path: Path) -> None:
    with (
        modality() as ct,
        house(home, to_folder(tmp_path / "p", tmp_path / "a"), **settings_for(ct.port, "decision")) as made,
    ):
        datasets = study(1)
        made.receive(*datasets)
        ask(made, *datasets)
        CommitmentReports(made.parts).once(time.time() + GIVE_UP_S + 10)
        assert told(ct.heard.get(timeout=5)) == (2, 0, [0x0110])
        assert waiting(made) == []


def test_many_instances_are_looked_up_together(home: Home, tmp_path: Path) -> None:
    with house(home, to_folder(tmp_path / "p", tmp_path / "a"), **settings_for(104, "intake")) as made:
        datasets = study(1)
        made.receive(*datasets)
        p = made.parts
        desk = Commitments(settings=p.settings, spool=p.spool, database=p.database, keys=p.keys)
        strangers = tuple((str(datasets[0].SOPClassUID), f"1.2.{number}") for number in range(1200))
        asked = Asked("1.2.9", ((str(datasets[0].SOPClassUID), str(datasets[0].SOPInstanceUID)), *strangers))
        failures = desk.failures(asked)
        assert failures is not None
        assert len(failures) == 1200
        assert datasets[0].SOPInstanceUID not in failures


def test_what_is_here_no_more_is_not_committed_to(home: Home, tmp_path: Path) -> None:
    """Refused for its person's sake, or past its time: the sender would give up the last copy."""
    with house(home, to_folder(tmp_path / "p", tmp_path / "a"), **settings_for(104, "intake")) as made:
        (dataset,) = study(1)
        key = made.deliver(dataset)
        p = made.parts
        desk = Commitments(settings=p.settings, spool=p.spool, database=p.database, keys=p.keys)
        asked = Asked("1.2.9", ((str(dataset.SOPClassUID), str(dataset.SOPInstanceUID)),))
        assert desk.failures(asked) == {}
        assert remove_originals(p, key, 1) == 1
        assert desk.failures(asked) == {dataset.SOPInstanceUID: 0x0112}
        made.receive(dataset)  # it came again, and is here
        assert desk.failures(asked) == {}


def test_a_damaged_request_keeps_no_other_from_its_answer(home: Home, tmp_path: Path) -> None:
    policies = to_folder(tmp_path / "p", tmp_path / "a")
    with modality() as ct, house(home, policies, **settings_for(ct.port, "intake")) as made:
        datasets = study(1)
        made.receive(*datasets)
        ask(made, *datasets)
        for name, body in (("a", b""), ("b", b"[]"), ("c", b'{"peer": "CT1", "instances": [[1]]}')):
            (made.parts.spool.commitments / f"{name}.json").write_bytes(body)
        for path in waiting(made)[-3:]:
            os.utime(path, (1, 1))
        CommitmentReports(made.parts).once(time.time())
        assert told(ct.heard.get(timeout=5)) == (1, 1, [])


@pytest.mark.peer
@pytest.mark.xdist_group("peers")
def test_orthanc_asks_and_hears(home: Home, tmp_path: Path) -> None:
    with peers.Orthanc(tmp_path, DicomAet="CT1", DicomModalities={}) as orthanc:
        settings = {**settings_for(orthanc.dicom.port, "intake"), "allowed_peers": "CT1@127.0.0.1", "dicom_port": 0}
        with house(home, to_folder(tmp_path / "p", tmp_path / "a"), **settings) as made:
            p = made.parts
            receiver = Receiver(settings=p.settings, spool=p.spool, database=p.database, keys=p.keys, metrics=p.metrics)
            receiver.start()
            try:
                orthanc.put("/modalities/deid", {"AET": "DEID", "Host": "127.0.0.1", "Port": receiver.port})
                instance = orthanc.post(
                    "/instances", Path(pydicom.data.get_testdata_file("CT_small.dcm")).read_bytes()
                )["ID"]
                job = orthanc.post(
                    "/modalities/deid/store",
                    json.dumps({"Resources": [instance], "StorageCommitment": True, "Synchronous": True}).encode(),
                )
                assert job["FailedInstancesCount"] == 0
                transaction = job["StorageCommitmentTransactionUID"]
                assert len(waiting(made)) == 1
                CommitmentReports(p).once(time.time())
                state = json.loads(orthanc.get(f"/storage-commitment/{transaction}"))
                assert state["Status"] == "Success"
                assert len(state["Success"]) == 1
            finally:
                receiver.stop()
