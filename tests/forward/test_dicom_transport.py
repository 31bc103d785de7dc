"""C-STORE SCU: answers, contexts, lost associations (cases.md 68, 73, 77, 79; PS3.4 B.2.3, PS3.8 9.3)."""

from __future__ import annotations

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

from gateway.errors import Hold, Retry
from gateway.forward import TransportOptions, verified
from gateway.forward.association import Peer
from gateway.forward.dicom import DicomTransport
from gateway.study import Receipt
from tests.forward.archives import archive
from tests.forward.consignments import consign, consignment, instance
from tests.forward.outcomes import CT, outcome, statuses


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


def test_the_callers_order_is_kept_within_a_context(tmp_path: Path) -> None:
    goods = consignment(tmp_path, 10)
    with archive(CT) as there:
        outcome(there.transport(), goods)
        assert there.requests == [one.sop_instance_uid for one in goods.clearance.instances]


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
