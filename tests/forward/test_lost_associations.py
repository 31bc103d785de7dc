"""Associations that are refused, break, or fall silent (cases.md 68, 77, 79; PS3.8 9.3.4, 9.3.8)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pynetdicom import evt

from gateway.errors import Retry
from gateway.forward.dicom import FRUITLESS
from gateway.study import Receipt
from tests.forward.archives import archive
from tests.forward.consignments import Consignment, consignment
from tests.forward.outcomes import CT, outcome
from tests.peers import free_port


def test_busy_warning_abort_are_three_different_things(tmp_path: Path) -> None:
    """Case 68: shown as sent though the PACS answered A700."""
    goods = consignment(tmp_path, 3)

    def answer(number: int, event: evt.Event) -> int:
        if number == 2:
            event.assoc.abort()
        return [0xA700, 0xB000, 0x0000][number]

    with archive(CT, answer) as there:
        receipts, raised = outcome(there.transport(), goods)
        assert len(there.requests) == 3
    assert [(r.status, r.kind) for r in receipts.values()] == [
        (0xA700, "failure"),
        (0xB000, "warning"),
        (-1, "failure"),
    ]
    assert isinstance(raised, Retry)
    assert raised.reason == "archive_busy"


def test_an_abort_loses_one_instance_and_the_rest_goes_over_a_new_association(tmp_path: Path) -> None:
    goods = consignment(tmp_path, 6)

    def answer(number: int, event: evt.Event) -> int:
        if number == 2:
            event.assoc.abort()
        return 0

    with archive(CT, answer) as there:
        receipts, raised = outcome(there.transport(), goods)
        assert there.associations == 2
    assert [r.kind for r in receipts.values()] == ["success", "success", "failure", "success", "success", "success"]
    assert receipts["0003"].status == -1
    assert isinstance(raised, Retry)
    assert raised.reason == "archive_aborted"


def test_an_archive_that_aborts_everything_is_left_alone_after_a_few(tmp_path: Path) -> None:
    goods = consignment(tmp_path, 20)

    def answer(_number: int, event: evt.Event) -> int:
        event.assoc.abort()
        return 0

    with archive(CT, answer) as there:
        receipts, raised = outcome(there.transport(), goods)
        assert there.associations == FRUITLESS == len(receipts)
    assert isinstance(raised, Retry)
    assert raised.reason == "archive_aborted"


def test_an_archive_that_rejects_our_title_is_asked_once_for_fifty_files(tmp_path: Path) -> None:
    """Case 77: N files × 4 retries."""
    goods = consignment(tmp_path, 50)
    with archive(CT, require_calling=["SOMEBODY"]) as there:
        receipts, raised = outcome(there.transport(ae_title="DEID"), goods)
        assert there.requests == []
        again, raised_again = outcome(there.transport(ae_title="SOMEBODY"), goods)
        assert there.stored == goods.sent_hashes
        assert len(there.requests) == 50
    assert isinstance(raised, Retry)
    assert raised.reason == "archive_rejects_us"
    assert "result 1, source 1, reason 3" in raised.at  # PS3.8 Table 9-21: calling AE title not recognized
    assert receipts == {}
    assert raised_again is None
    assert len(again) == 50


def test_a_closed_port_is_tried_once(tmp_path: Path) -> None:
    with archive(CT) as there:
        closed = there.transport()
    gone = replace(closed, peer=replace(closed.peer, port=free_port()))
    receipts, raised = outcome(gone, consignment(tmp_path, 50))
    assert receipts == {}
    assert isinstance(raised, Retry)
    assert raised.reason == "archive_unreachable"


def test_an_object_that_an_archive_cannot_bear_does_not_keep_back_the_others(tmp_path: Path) -> None:
    """Every third one makes it hang up; whatever the order, all the others arrive in one call."""
    goods = consignment(tmp_path, 30)
    bad = {one.sop_instance_uid for one in goods.clearance.instances[::3]}

    def answer(_number: int, event: evt.Event) -> int:
        if event.request.AffectedSOPInstanceUID in bad:
            event.assoc.abort()
            return 0xC000
        return 0

    with archive(CT, answer) as there:
        receipts, raised = outcome(there.transport(), goods)
        assert there.stored == {uid: sha for uid, sha in goods.sent_hashes.items() if uid not in bad}
    assert isinstance(raised, Retry)
    assert raised.reason == "archive_aborted"
    assert len(receipts) == 30


def test_an_archive_that_stops_answering_is_let_go_after_the_timeout(tmp_path: Path) -> None:
    goods = consignment(tmp_path, 4)
    go_on = threading.Event()

    def answer(number: int, _event: evt.Event) -> int:
        if number:
            go_on.wait(20)
        return 0

    with archive(CT, answer) as there:
        started = time.monotonic()
        receipts, raised = outcome(there.transport(timeout_s=0.7), goods)
        took_s = time.monotonic() - started
        time.sleep(0.2)
        go_on.set()
    assert took_s < 5
    assert isinstance(raised, Retry)
    assert raised.reason == "archive_unreachable"
    assert [(r.status, r.kind) for r in receipts.values()] == [(0, "success")] + [(-1, "failure")] * 3


def test_eight_senders_at_once_lose_nothing(tmp_path: Path) -> None:
    """Case 79."""
    loads = [consignment(tmp_path / str(sender), 20) for sender in range(8)]
    results: list[dict[str, Receipt]] = []
    with archive(CT) as there:
        transport = there.transport()

        def send(goods: Consignment) -> None:
            receipts, raised = outcome(transport, goods)
            assert raised is None
            results.append(receipts)

        senders = [threading.Thread(target=send, args=(goods,)) for goods in loads]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert there.stored == {uid: sha for goods in loads for uid, sha in goods.sent_hashes.items()}
        assert len(there.requests) == 160
    assert [len(receipts) for receipts in results] == [20] * 8


@pytest.mark.parametrize("fault", [RuntimeError, KeyboardInterrupt])
def test_when_the_caller_cannot_note_a_receipt_sending_stops_and_the_association_is_aborted(
    tmp_path: Path, fault: type[BaseException]
) -> None:
    goods = consignment(tmp_path, 5)

    def full_disk(_receipt: Receipt) -> None:
        raise fault

    with archive(CT) as there:
        with pytest.raises(fault):
            there.transport().send(goods.items, full_disk)
        time.sleep(0.3)
        assert there.aborted == 1
        assert len(there.requests) == 1


def test_a_probe_of_an_archive_that_rejects_us_says_so(tmp_path: Path) -> None:
    with archive(CT, require_calling=["SOMEBODY"]) as there:
        probe: Callable[[], None] = there.transport().probe
        with pytest.raises(Retry) as caught:
            probe()
    assert caught.value.reason == "archive_rejects_us"
