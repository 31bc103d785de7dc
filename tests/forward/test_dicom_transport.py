"""C-STORE SCU: answers, contexts, lost associations (cases.md 68, 73, 77, 79; PS3.4 B.2.3, PS3.8 9.3)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydicom.uid import (
    JPEG2000,
    CTImageStorage,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEGLSLossless,
    MRImageStorage,
    RLELossless,
)
from pynetdicom import AllStoragePresentationContexts, evt

from gateway.errors import GatewayError, Hold, Retry
from gateway.forward import TransportOptions, verified
from gateway.forward.association import Peer
from gateway.forward.dicom import FRUITLESS, DicomTransport
from gateway.study import Receipt
from tests.forward.archives import Answer, archive
from tests.forward.consignments import Consignment, consign, consignment, instance
from tests.peers import free_port

CT = [(CTImageStorage, [ExplicitVRLittleEndian])]


def outcome(transport: DicomTransport, goods: Consignment) -> tuple[dict[str, Receipt], GatewayError | None]:
    """Receipts by instance, each instance reported once at most, and what was raised."""
    receipts: list[Receipt] = []
    raised: GatewayError | None = None
    try:
        transport.send(goods.items, receipts.append)
    except (Retry, Hold) as error:
        raised = error
    assert len({receipt.name for receipt in receipts}) == len(receipts)
    return {receipt.name: receipt for receipt in receipts}, raised


def statuses(*codes: int) -> Answer:
    """The n-th request gets the n-th code, later ones success."""
    return lambda number, _event: codes[number] if number < len(codes) else 0


@pytest.mark.parametrize("status", [0xB000, 0xB006, 0xB007])
def test_a_warning_is_delivered_and_kept_apart_from_success(tmp_path: Path, status: int) -> None:
    goods = consignment(tmp_path, 2)
    with archive(CT, statuses(status)) as there:
        receipts, raised = outcome(there.transport(), goods)
    assert raised is None
    assert receipts == {"0001": Receipt("0001", status, "warning"), "0002": Receipt("0002", 0, "success")}


@pytest.mark.parametrize("status", [0xA900, 0xA9FF, 0xC000, 0xC123, 0x0110, 0x0117, 0x0122, 0x0124, 0x0210, 0xB0FF])
def test_a_failure_holds_the_study_after_the_others_went(tmp_path: Path, status: int) -> None:
    goods = consignment(tmp_path, 3)
    with archive(CT, statuses(0, status)) as there:
        receipts, raised = outcome(there.transport(), goods)
        assert len(there.requests) == 3
    assert isinstance(raised, Hold)
    assert raised.reason == "archive_refuses"
    assert raised.at == f"instance 0002 (status {status:04X})"
    assert [(r.status, r.kind) for r in receipts.values()] == [(0, "success"), (status, "failure"), (0, "success")]


def test_out_of_resources_is_tried_again_later_and_the_others_go_now(tmp_path: Path) -> None:
    goods = consignment(tmp_path, 3)
    with archive(CT, statuses(0, 0xA700)) as there:
        receipts, raised = outcome(there.transport(), goods)
    assert isinstance(raised, Retry)
    assert raised.reason == "archive_busy"
    assert [r.kind for r in receipts.values()] == ["success", "failure", "success"]


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


def test_only_the_syntax_that_the_archive_takes_goes_and_the_rest_is_held(tmp_path: Path) -> None:
    """Case 73: one context for each class and syntax, so that the peer's choice cannot be a wrong one."""
    paths = [tmp_path / f"{index}.dcm" for index in range(6)]
    for index, path in enumerate(paths):
        instance(path, syntax=JPEG2000 if index % 2 else ExplicitVRLittleEndian, payload=bytes([index]) * 64)
    goods = consign(paths)
    with archive([(CTImageStorage, [JPEG2000])]) as there:
        receipts, raised = outcome(there.transport(), goods)
        compressed = {i.sop_instance_uid: i.sha256_dataset for i in goods.clearance.instances[1::2]}
        assert there.stored == compressed
        assert there.associations == 1
    assert isinstance(raised, Hold)
    assert raised.reason == "archive_refuses_syntax"
    assert raised.at == "instance 0001 (transfer syntax not supported), and 2 more"
    assert {name for name, r in receipts.items() if r.kind == "failure"} == {"0001", "0003", "0005"}
    assert {name for name, r in receipts.items() if r.kind == "success"} == {"0002", "0004", "0006"}


def test_an_archive_that_takes_nothing_that_is_offered_holds(tmp_path: Path) -> None:
    goods = consignment(tmp_path, 2)
    with archive([(MRImageStorage, [ExplicitVRLittleEndian])]) as there:
        receipts, raised = outcome(there.transport(), goods)
    assert isinstance(raised, Hold)
    assert raised.reason == "archive_refuses_syntax"
    assert "SOP class not supported" in raised.at
    assert {r.kind for r in receipts.values()} == {"failure"}


def test_sixty_classes_in_five_syntaxes_need_three_associations(tmp_path: Path) -> None:
    """Case 73: at most 128 contexts an association (PS3.8 9.3.2.2)."""
    classes = [context.abstract_syntax for context in AllStoragePresentationContexts[:60]]
    syntaxes = [ExplicitVRLittleEndian, ImplicitVRLittleEndian, JPEG2000, JPEGLSLossless, RLELossless]
    paths = []
    for number, (sop_class, syntax) in enumerate((c, s) for c in classes for s in syntaxes):
        paths.append(tmp_path / f"{number}.dcm")
        instance(paths[-1], sop_class=sop_class, syntax=syntax, payload=bytes(8))
    goods = consign(paths)
    with archive([(sop_class, syntaxes) for sop_class in classes]) as there:
        receipts, raised = outcome(there.transport(), goods)
        assert there.associations == 3
        assert there.stored == goods.sent_hashes
    assert raised is None
    assert len(receipts) == 300


@pytest.mark.parametrize(
    "syntax", [ImplicitVRLittleEndian, ExplicitVRBigEndian, DeflatedExplicitVRLittleEndian, RLELossless]
)
def test_data_sets_go_out_as_they_lie_in_the_file_in_every_encoding(tmp_path: Path, syntax: str) -> None:
    goods = consignment(tmp_path, 3, syntax=syntax)
    with archive([(CTImageStorage, [syntax])]) as there:
        _, raised = outcome(there.transport(), goods)
        assert there.stored == goods.sent_hashes
    assert raised is None


@pytest.mark.parametrize("size", [1, 2, 245, 246, 247, 4090, 4091, 40_000])
@pytest.mark.parametrize("whole_bytes", [0, verified.WHOLE_BYTES])
def test_every_length_is_cut_into_pdus_without_loss(
    tmp_path: Path, size: int, whole_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files go from memory, large ones from disk; both meet every edge of a PDU."""
    monkeypatch.setattr(verified, "WHOLE_BYTES", whole_bytes)
    instance(tmp_path / "one.dcm", payload=bytes(range(256)) * (size // 256) + bytes(size % 256))
    goods = consign([tmp_path / "one.dcm"])
    with archive(CT, max_pdu_bytes=4096) as there:
        _, raised = outcome(there.transport(), goods)
        assert there.stored == goods.sent_hashes
    assert raised is None


def test_an_odd_length_is_held_before_an_archive_hangs_on_it(tmp_path: Path) -> None:
    """Case 49, PS3.8 E.1: Orthanc never answers a message with an odd fragment."""
    goods = consignment(tmp_path, 3)
    goods.files["0002"].write_bytes(goods.files["0002"].read_bytes() + b"\0")
    goods = consign(list(goods.files.values()))
    with archive(CT) as there:
        receipts, raised = outcome(there.transport(), goods)
        assert len(there.stored) == 2
    assert isinstance(raised, Hold)
    assert raised.reason == "output_invalid"
    assert receipts["0002"] == Receipt("0002", -1, "failure")


def test_a_large_file_that_changes_while_it_is_sent_is_not_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified, "WHOLE_BYTES", 0)
    instance(tmp_path / "large.dcm", payload=bytes(3 << 20))
    goods = consign([tmp_path / "large.dcm"])
    opened = verified.open_verified

    def changed_after_the_first_hash(item: object) -> object:
        file = opened(item)  # type: ignore[arg-type]
        with open(tmp_path / "large.dcm", "r+b") as other:
            other.seek(2 << 20)
            other.write(b"other")
        return file

    monkeypatch.setattr("gateway.forward.dicom.open_verified", changed_after_the_first_hash)
    with archive(CT) as there:
        _, raised = outcome(there.transport(), goods)
        assert there.requests == []
    assert isinstance(raised, Hold)
    assert raised.reason == "clearance_broken"


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


def test_a_receipt_is_given_at_once_not_at_the_end(tmp_path: Path) -> None:
    """What was answered before a crash is known after it."""
    goods = consignment(tmp_path, 3)
    order: list[str] = []

    def answer(number: int, _event: evt.Event) -> int:
        order.append(f"asked {number}")
        return 0

    with archive(CT, answer) as there:
        there.transport().send(goods.items, lambda receipt: order.append(f"receipt {receipt.name}"))
    assert order == ["asked 0", "receipt 0001", "asked 1", "receipt 0002", "asked 2", "receipt 0003"]


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


def test_the_callers_order_is_kept_within_a_context(tmp_path: Path) -> None:
    goods = consignment(tmp_path, 10)
    with archive(CT) as there:
        outcome(there.transport(), goods)
        assert there.requests == [one.sop_instance_uid for one in goods.clearance.instances]


def test_a_probe_of_an_archive_that_rejects_us_says_so(tmp_path: Path) -> None:
    with archive(CT, require_calling=["SOMEBODY"]) as there:
        probe: Callable[[], None] = there.transport().probe
        with pytest.raises(Retry) as caught:
            probe()
    assert caught.value.reason == "archive_rejects_us"


@pytest.mark.parametrize(
    ("url", "peer"),
    [
        ("dicom://ARCHIVE@10.0.0.8:104", Peer("10.0.0.8", 104, "ARCHIVE")),
        ("dicom://A%20/#?:@B@host.example:11112", Peer("host.example", 11112, "A%20/#?:@B")),
        ("dicom://TWO WORDS@[::1]:4242", Peer("::1", 4242, "TWO WORDS")),
    ],
)
def test_a_title_is_taken_as_it_is_written(url: str, peer: Peer) -> None:
    """The policy loader passes titles on unescaped; `#`, `%` and `@` belong to an AE title (PS3.5 6.2)."""
    assert DicomTransport.at(url, TransportOptions()).peer == peer


def test_an_odd_title_reaches_the_archive_unchanged(tmp_path: Path) -> None:
    titles: list[str] = []

    def answer(_number: int, event: evt.Event) -> int:
        titles.extend((event.assoc.requestor.ae_title, event.assoc.requestor.primitive.called_ae_title))
        return 0

    with archive(CT, answer) as there:
        url = there.url.replace("ARCHIVE", "A#B@C%20")
        transport = DicomTransport.at(url, TransportOptions(ae_title="SIXTEEN/LETTERS!"))
        transport.send(consignment(tmp_path, 1).items, lambda receipt: None)
    assert titles == ["SIXTEEN/LETTERS!", "A#B@C%20"]
