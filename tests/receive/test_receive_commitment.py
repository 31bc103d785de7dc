"""Storage commitment: what is answered, where, and that nothing is promised that is not on disk (PS3.4 Annex J)."""

from __future__ import annotations

import queue
import struct
from collections.abc import Callable

import pydicom
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydicom import Dataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, ImplicitVRLittleEndian
from pynetdicom import AE, evt
from pynetdicom.sop_class import StorageCommitmentPushModel  # type: ignore[attr-defined]

from gateway.errors import UsageError
from gateway.receive import commitment
from gateway.receive.commitment import Asked, NoRequest, read_asked, report
from gateway.settings import Home, load_settings
from tests.receive.conftest import Door
from tests.receive.raw_peer import associate_request, element, p_data, pdv, uid

Open = Callable[..., Door]
INSTANCE = commitment.INSTANCE_UID


@pytest.fixture
def ct() -> pydicom.Dataset:
    return pydicom.dcmread(pydicom.data.get_testdata_file("CT_small.dcm"))


def wanted(*sops: str, transaction: str = "1.2.9") -> Dataset:
    dataset = Dataset()
    dataset.TransactionUID = transaction
    dataset.ReferencedSOPSequence = []
    for sop in sops:
        item = Dataset()
        item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID = CTImageStorage, sop
        dataset.ReferencedSOPSequence.append(item)
    return dataset


class Sender:
    """A modality that stores and asks, over one association, and hears reports on it."""

    def __init__(self, port: int) -> None:
        self.reports: queue.Queue[tuple[int, Dataset]] = queue.Queue()
        entity = AE("PACS")
        entity.acse_timeout = entity.dimse_timeout = entity.network_timeout = 10
        entity.add_requested_context(CTImageStorage, ExplicitVRLittleEndian)
        entity.add_requested_context(StorageCommitmentPushModel)
        self.association = entity.associate(
            "127.0.0.1", port, ae_title="DEID", evt_handlers=[(evt.EVT_N_EVENT_REPORT, self._heard)]
        )
        assert self.association.is_established

    def _heard(self, event: evt.Event) -> tuple[int, None]:
        self.reports.put((event.event_type, event.event_information))
        return 0x0000, None

    def store(self, dataset: pydicom.Dataset) -> int:
        return int(self.association.send_c_store(dataset).Status)

    def ask(self, dataset: Dataset, action: int = 1, instance: str = INSTANCE) -> int:
        status, _ = self.association.send_n_action(dataset, action, StorageCommitmentPushModel, instance)
        return int(status.Status)


def told(dataset: Dataset) -> tuple[list[str], dict[str, int]]:
    committed = [str(item.ReferencedSOPInstanceUID) for item in dataset.get("ReferencedSOPSequence", [])]
    failed = dataset.get("FailedSOPSequence", [])
    return committed, {str(item.ReferencedSOPInstanceUID): int(item.FailureReason) for item in failed}


def test_what_is_on_disk_is_committed_on_the_same_association(open_door: Open, ct: pydicom.Dataset) -> None:
    door = open_door(commitment="intake")
    sender = Sender(door.port)
    assert sender.store(ct) == 0
    assert sender.ask(wanted(ct.SOPInstanceUID)) == 0
    event, dataset = sender.reports.get(timeout=10)
    assert event == commitment.COMMITTED
    assert dataset.TransactionUID == "1.2.9"
    assert told(dataset) == ([ct.SOPInstanceUID], {})
    assert sender.ask(wanted(ct.SOPInstanceUID, "1.2.3.4", transaction="1.2.10")) == 0
    event, dataset = sender.reports.get(timeout=10)
    assert event == commitment.FAILURES_EXIST
    assert told(dataset) == ([ct.SOPInstanceUID], {"1.2.3.4": 0x0112})
    assert sender.store(ct) == 0  # the association goes on
    sender.association.release()
    assert door.ended("released")


def test_what_is_no_request_is_refused_and_changes_nothing(open_door: Open, ct: pydicom.Dataset) -> None:
    door = open_door(commitment="intake")
    sender = Sender(door.port)
    assert sender.ask(wanted("1.2.3"), action=2) == 0x0123
    assert sender.ask(wanted("1.2.3"), instance="1.2.3") == 0x0112
    assert sender.ask(wanted()) == 0x0115
    nameless = wanted("1.2.3")
    del nameless.TransactionUID
    assert sender.ask(nameless) == 0x0115
    assert sender.store(ct) == 0
    assert sender.reports.empty()
    sender.association.release()


def test_without_it_the_context_is_not_accepted(open_door: Open) -> None:
    entity = AE("PACS")
    entity.add_requested_context(StorageCommitmentPushModel)
    entity.add_requested_context(CTImageStorage)
    association = entity.associate("127.0.0.1", open_door().port, ae_title="DEID")
    assert [str(context.abstract_syntax) for context in association.accepted_contexts] == [CTImageStorage]
    association.release()


def test_nothing_is_promised_for_a_decision_that_could_not_be_reported(open_door: Open) -> None:
    door = open_door(commitment="decision")
    sender = Sender(door.port)
    assert sender.ask(wanted("1.2.3")) == 0x0110
    sender.association.release()


def test_with_an_address_the_request_is_on_disk_before_its_success(open_door: Open) -> None:
    door = open_door(commitment="intake", commitment_peers="PACS@127.0.0.1:104")
    sender = Sender(door.port)
    assert sender.ask(wanted("1.2.3", "1.2.4")) == 0
    assert sender.ask(wanted("1.2.3", "1.2.4")) == 0  # asked again: one request
    (kept,) = door.spool.commitments.glob("*.json")
    assert kept.stat().st_mode & 0o077 == 0
    door.spool.sweep(frozenset())
    assert kept.exists()
    assert sender.reports.empty()
    sender.association.release()


def test_an_answer_to_nothing_and_an_object_of_the_wrong_class_are_faults(open_door: Open) -> None:
    door = open_door(commitment="intake")
    body = (
        element(0, 0x0002, uid(commitment.CLASS_UID))
        + element(0, 0x0100, struct.pack("<H", 0x8100))
        + element(0, 0x0120, struct.pack("<H", 1))
        + element(0, 0x0800, struct.pack("<H", 0x0101))
        + element(0, 0x0900, struct.pack("<H", 0))
    )
    with door.peer() as peer:
        peer.send(associate_request([(commitment.CLASS_UID, (ImplicitVRLittleEndian,))]))
        assert peer.answer()[0] == 2
        peer.send(p_data(pdv(1, element(0, 0, struct.pack("<I", len(body))) + body, command=True)))
        assert peer.answer()[0] == 7  # A-ABORT


def test_a_request_without_end_is_cut_off(open_door: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commitment, "LONGEST_BYTES", 2000)
    sender = Sender(open_door(commitment="intake").port)
    assert sender.ask(wanted(*(f"1.2.{number}" for number in range(100)))) == 0x0213
    assert sender.ask(wanted("1.2.3")) == 0
    sender.association.release()


# -- what is said -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, ExplicitVRLittleEndian])
def test_a_request_is_read_as_pydicom_wrote_it(syntax: str) -> None:
    asked = read_asked(commitment.encoded(wanted("1.2.3", "1.2.4"), syntax), syntax)
    assert asked == Asked("1.2.9", ((CTImageStorage, "1.2.3"), (CTImageStorage, "1.2.4")))
    event, dataset = report(asked, {"1.2.4": 0x0110})
    assert (event, told(dataset)) == (2, (["1.2.3"], {"1.2.4": 0x0110}))
    event, dataset = report(asked, {})
    assert (event, "FailedSOPSequence" in dataset) == (1, False)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_none(data: bytes) -> None:
    whole = commitment.encoded(wanted("1.2.3"), ImplicitVRLittleEndian)
    for blob in (data, whole[: len(data)] + data, whole + data):
        try:
            read_asked(blob, ImplicitVRLittleEndian)
        except NoRequest:
            continue


@pytest.mark.parametrize(
    "wrong", [{"commitment": "later"}, {"commitment_peers": "CT1@host"}, {"commitment_peers": "CT1@host:0"}]
)
def test_settings_that_do_not_fit_are_refused(home: Home, wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        load_settings(home.root, **wrong)
