"""`verify: storage-commitment`: sent means that the archive said it keeps every instance, and nothing less."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from houses import House, edit, house, route_all, study
from pydicom import Dataset
from pynetdicom import AE, AllStoragePresentationContexts, build_role, evt
from pynetdicom.sop_class import StorageCommitmentPushModel  # type: ignore[attr-defined]
from running import policies_for
from sqlalchemy import update

from gateway.app.promised import PATIENCE_S
from gateway.database.tables import promises
from gateway.flow import run_leg
from gateway.receive import Receiver
from gateway.receive.commitment import CLASS_UID, INSTANCE_UID
from gateway.settings import Home
from gateway.study import State
from tests import peers

PENDING = ("research-archive", "cleared", "commitment_pending")


@dataclass
class Keeper:
    """An archive with storage commitment. `keeps` says of each instance whether it is kept; `at_once`: it reports on
    the association that asked."""

    at_once: bool = True
    keeps: Callable[[str], bool] = lambda _uid: True
    action_status: int = 0x0000
    port: int = 0
    stored: list[str] = field(default_factory=list)
    asked: list[Dataset] = field(default_factory=list)

    def report(self, dataset: Dataset) -> tuple[int, Dataset]:
        uids = [str(item.ReferencedSOPInstanceUID) for item in dataset.ReferencedSOPSequence]
        made = Dataset()
        made.TransactionUID = dataset.TransactionUID
        kept = [item for item in dataset.ReferencedSOPSequence if self.keeps(str(item.ReferencedSOPInstanceUID))]
        lost = [item for item in dataset.ReferencedSOPSequence if not self.keeps(str(item.ReferencedSOPInstanceUID))]
        assert len(kept) + len(lost) == len(uids)
        if kept:
            made.ReferencedSOPSequence = kept
        for item in lost:
            item.FailureReason = 0x0112
        if lost:
            made.FailedSOPSequence = lost
        return (2 if lost else 1), made

    def tell(self, port: int, dataset: Dataset) -> int:
        """Report on an association of the archive's own, to the gateway's DICOM port."""
        entity = AE("ARCHIVE")
        entity.add_requested_context(StorageCommitmentPushModel)
        role = build_role(StorageCommitmentPushModel, scp_role=True)
        association = entity.associate("127.0.0.1", port, ae_title="DEID", ext_neg=[role])
        assert association.is_established
        event, made = self.report(dataset)
        status, _ = association.send_n_event_report(made, event, CLASS_UID, INSTANCE_UID)
        association.release()
        return int(status.Status)


@contextmanager
def keeping(keeper: Keeper, *, offers: bool = True) -> Iterator[Keeper]:
    def store(event: evt.Event) -> int:
        keeper.stored.append(str(event.request.AffectedSOPInstanceUID))
        return 0x0000

    def action(event: evt.Event) -> tuple[int, None]:
        keeper.asked.append(event.action_information)
        if keeper.at_once and keeper.action_status == 0:
            threading.Timer(0.2, lambda: _report(event.assoc, keeper, event.action_information)).start()
        return keeper.action_status, None

    entity = AE("ARCHIVE")
    for context in AllStoragePresentationContexts:
        entity.add_supported_context(str(context.abstract_syntax))
    if offers:
        entity.add_supported_context(StorageCommitmentPushModel)
    handlers = [(evt.EVT_C_STORE, store), (evt.EVT_N_ACTION, action)]
    server = entity.start_server(("127.0.0.1", 0), block=False, evt_handlers=handlers)
    assert server is not None
    keeper.port = server.socket.getsockname()[1]
    try:
        yield keeper
    finally:
        server.shutdown()


def _report(association: Any, keeper: Keeper, dataset: Dataset) -> None:
    event, made = keeper.report(dataset)
    association.send_n_event_report(made, event, CLASS_UID, INSTANCE_UID)


@contextmanager
def committing(home: Home, folder: Path, url: str, **settings: object) -> Iterator[House]:
    def change(policies: Path) -> None:
        edit(policies, "research-basic", lambda body: body.update(forward={"verify": "storage-commitment"}))
        route_all(policies, ("demo", "research-basic", "research-archive"))

    with house(home, policies_for(folder, url, change=change), network_timeout_s=5.0, **settings) as made:
        yield made


def step(made: House, times: int = 1) -> None:
    """Legs that are due, once each: a job that waits stays waiting."""
    made.close()
    for _ in range(times):
        for task in made.steps.pending():
            run_leg(made.steps, task)


def test_sent_when_the_archive_says_at_once_that_it_keeps_all(home: Home, tmp_path: Path) -> None:
    with (
        keeping(Keeper()) as archive,
        committing(home, tmp_path / "p", f"dicom://ARCHIVE@127.0.0.1:{archive.port}") as made,
    ):
        key = made.deliver(*study(3))
        assert made.ends(key) == [("research-archive", "sent", "")]
        (asked,) = archive.asked
        assert sorted(str(item.ReferencedSOPInstanceUID) for item in asked.ReferencedSOPSequence) == sorted(
            archive.stored
        )
        (promise,) = made.parts.database.promises_of(made.job(key).job_key)
        assert len(promise.kept) == 3


def test_waiting_until_the_archive_comes_back_and_says_so(home: Home, tmp_path: Path) -> None:
    with (
        keeping(Keeper(at_once=False)) as archive,
        committing(
            home,
            tmp_path / "p",
            f"dicom://ARCHIVE@127.0.0.1:{archive.port}",
            allowed_peers="ARCHIVE@127.0.0.1",
            dicom_port=0,
        ) as made,
    ):
        key = made.receive(*study(2))
        step(made, 4)
        assert made.ends(key) == [PENDING]
        step(made)
        assert len(archive.asked) == 1  # it is not asked again while it may still answer
        assert len(archive.stored) == 2
        p = made.parts
        receiver = Receiver(settings=p.settings, spool=p.spool, database=p.database, keys=p.keys, metrics=p.metrics)
        receiver.start()
        try:
            stranger = Dataset()
            stranger.update(archive.asked[0])
            stranger.TransactionUID = "2.25.1"
            assert archive.tell(receiver.port, stranger) == 0x0115  # nobody asked for that
            assert made.ends(key) == [PENDING]
            assert archive.tell(receiver.port, archive.asked[0]) == 0x0000
        finally:
            receiver.stop()
        step(made)
        assert made.ends(key) == [("research-archive", "sent", "")]
        assert len(archive.stored) == 2


def test_what_the_archive_does_not_keep_is_sent_and_asked_for_again(home: Home, tmp_path: Path) -> None:
    lost: list[str] = []

    def keeps(uid: str) -> bool:
        return uid not in lost

    with (
        keeping(Keeper(keeps=keeps)) as archive,
        committing(home, tmp_path / "p", f"dicom://ARCHIVE@127.0.0.1:{archive.port}") as made,
    ):
        real = archive.report

        def once(dataset: Dataset) -> tuple[int, Dataset]:
            lost[:] = (
                [str(dataset.ReferencedSOPSequence[0].ReferencedSOPInstanceUID)] if len(archive.asked) == 1 else []
            )
            return real(dataset)

        archive.report = once  # type: ignore[method-assign]
        key = made.receive(*study(3))
        step(made, 4)
        first = archive.stored[0]
        step(made, 3)
        assert made.ends(key) == [("research-archive", "sent", "")]
        assert [len(asked.ReferencedSOPSequence) for asked in archive.asked] == [3, 1]
        assert archive.stored.count(first) == 2
        assert len(archive.stored) == 4


def test_an_archive_that_never_answers_is_asked_again_and_then_a_person_looks(home: Home, tmp_path: Path) -> None:
    with (
        keeping(Keeper(at_once=False)) as archive,
        committing(home, tmp_path / "p", f"dicom://ARCHIVE@127.0.0.1:{archive.port}", retry_limit=3) as made,
    ):
        key = made.deliver(*study(1))
        assert made.ends(key) == [("research-archive", "held", "gave_up")]
        assert made.job(key).at == "commitment_pending"
        assert len(archive.asked) == 1
        job = made.job(key)
        with made.parts.database.transaction() as connection:
            connection.execute(update(promises).values(asked_at=promises.c.asked_at - PATIENCE_S - 1))
        archive.at_once = True
        assert made.decide("release", job.job_key) == "done"
        assert made.ends(key) == [("research-archive", "sent", "")]
        assert len(archive.asked) == 2
        assert len({asked.TransactionUID for asked in archive.asked}) == 2


@pytest.mark.parametrize(("offers", "status"), [(False, 0), (True, 0x0110)])
def test_an_archive_that_cannot_be_asked_holds_the_study(home: Home, tmp_path: Path, offers: bool, status: int) -> None:
    with (
        keeping(Keeper(action_status=status), offers=offers) as archive,
        committing(home, tmp_path / "p", f"dicom://ARCHIVE@127.0.0.1:{archive.port}") as made,
    ):
        key = made.deliver(*study(1))
        assert made.ends(key) == [("research-archive", "held", "commitment_unsupported")]


def test_a_folder_cannot_promise(home: Home, tmp_path: Path) -> None:
    with committing(home, tmp_path / "p", f"folder:{tmp_path / 'out'}") as made:
        key = made.deliver(*study(1))
        assert made.ends(key) == [("research-archive", "held", "commitment_unsupported")]
        assert made.job(key).state == State.HELD


@pytest.mark.peer
@pytest.mark.xdist_group("peers")
def test_orthanc_keeps_what_it_was_sent(home: Home, tmp_path: Path) -> None:
    port = peers.free_port()
    modalities = {"deid": {"AET": "DEID", "Host": "127.0.0.1", "Port": port}}
    with (
        peers.Orthanc(tmp_path, DicomModalities=modalities, StorageCommitmentReportsSize=100) as orthanc,
        committing(home, tmp_path / "p", orthanc.dicom.url, allowed_peers="ORTHANC@127.0.0.1", dicom_port=port) as made,
    ):
        p = made.parts
        receiver = Receiver(settings=p.settings, spool=p.spool, database=p.database, keys=p.keys, metrics=p.metrics)
        receiver.start()
        try:
            key = made.receive(*study(2))
            step(made, 4)
            job = made.job(key)
            peers.wait_until(
                lambda: (
                    all(one.answered_at for one in p.database.promises_of(job.job_key))
                    and bool(p.database.promises_of(job.job_key))
                ),
                seconds=20,
                what="Orthanc's report",
            )
            step(made)
        finally:
            receiver.stop()
        assert made.ends(key) == [("research-archive", "sent", "")]
        assert len(orthanc.instances()) == 2
