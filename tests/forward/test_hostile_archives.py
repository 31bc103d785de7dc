"""Archives that speak no DICOM, or bad DICOM: each ends in Retry within the timeout, never in another exception."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import Retry
from gateway.forward import pdus
from gateway.forward.dimse import read_response
from gateway.study import Receipt
from tests.forward.archives import accept, raw_archive, read_message, read_pdu, response
from tests.forward.consignments import consignment

US = struct.Struct("<H").pack


def store_response(
    context_id: int, message_id: int, *, field: int = 0x8001, status: int | None = 0, data_set: int = 0x0101
) -> bytes:
    elements = [(0x0100, US(field)), (0x0120, US(message_id)), (0x0800, US(data_set))]
    return response(context_id, *elements, *([] if status is None else [(0x0900, US(status))]))


def silence(link: socket.socket) -> None:
    link.recv(1)
    time.sleep(4)


def hang_up(link: socket.socket) -> None:
    link.close()


def web_server(link: socket.socket) -> None:
    link.recv(100)
    link.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def garbage_accept(link: socket.socket) -> None:
    read_pdu(link)
    link.sendall(b"\x02\0\0\0\0\x50" + b"\xff" * 80)


def short_reject(link: socket.socket) -> None:
    read_pdu(link)
    link.sendall(b"\x03\0\0\0\0\x01\0")


def tiny_pdus(link: socket.socket) -> None:
    accept(link, max_pdu_bytes=8)
    read_pdu(link)


def huge_pdu(link: socket.socket) -> None:
    accept(link)
    read_message(link)
    link.sendall(b"\x04\0\xff\xff\xff\xff")
    time.sleep(1)


def answered(make: Callable[[int, int], bytes]) -> Callable[[socket.socket], None]:
    """A peer that accepts, then answers every request with the bytes of `make(context id, message id)`."""

    def talk(link: socket.socket) -> None:
        accept(link)
        while True:
            link.sendall(make(*read_message(link)))

    return talk


def endless(link: socket.socket) -> None:
    accept(link)
    context_id, _ = read_message(link)
    part = response(context_id, (0x0902, b"x" * 60_000), control=1)
    while True:
        link.sendall(part)


def reads_nothing(link: socket.socket) -> None:
    accept(link)
    time.sleep(4)


TALKS = {
    "silence": (silence, "archive_unreachable"),
    "reads nothing": (reads_nothing, "archive_unreachable"),
    "hang up": (hang_up, "archive_aborted"),
    "web server": (web_server, "archive_aborted"),
    "garbage accept": (garbage_accept, "archive_aborted"),
    "short reject": (short_reject, "archive_aborted"),
    "tiny pdus": (tiny_pdus, "archive_aborted"),
    "huge pdu": (huge_pdu, "archive_aborted"),
    "endless": (endless, "archive_aborted"),
    "other message": (answered(lambda c, m: store_response(c, m + 1)), "archive_aborted"),
    "other context": (answered(lambda c, m: store_response(c + 2, m)), "archive_aborted"),
    "echo answer": (answered(lambda c, m: store_response(c, m, field=0x8030)), "archive_aborted"),
    "no status": (answered(lambda c, m: store_response(c, m, status=None)), "archive_aborted"),
    "with a data set": (answered(lambda c, m: store_response(c, m, data_set=1)), "archive_aborted"),
    "wide status": (answered(lambda c, m: response(c, (0x0100, US(0x8001)), (0x0900, b"\0" * 4))), "archive_aborted"),
    "truncated command": (answered(lambda c, m: response(c)[:-2] + b"\0\0"), "archive_aborted"),
    "release request": (answered(lambda c, m: b"\x05\0\0\0\0\x04\0\0\0\0"), "archive_aborted"),
    "abort": (answered(lambda c, m: b"\x07\0\0\0\0\x04\0\0\0\0"), "archive_aborted"),
}


@pytest.mark.parametrize("name", TALKS)
def test_a_peer_that_breaks_the_protocol_is_retried_and_nothing_counts_as_sent(tmp_path: Path, name: str) -> None:
    talk, reason = TALKS[name]
    goods = consignment(tmp_path, 2, payload=b"x" * (6 << 20) if name == "reads nothing" else b"x" * 64)
    receipts: list[Receipt] = []
    with raw_archive(talk) as there:
        started = time.monotonic()
        with pytest.raises(Retry) as caught:
            there.transport(timeout_s=1.5).send(goods.items, receipts.append)
        assert time.monotonic() - started < 12
    assert caught.value.reason == reason
    assert all(receipt.kind == "failure" for receipt in receipts)


def test_a_hand_written_peer_that_keeps_the_protocol_is_served(tmp_path: Path) -> None:
    """The peer above is right when it wants to be, so its failures are failures of what it says."""
    goods = consignment(tmp_path, 3)
    receipts: list[Receipt] = []
    with raw_archive(answered(store_response)) as there:
        there.transport(timeout_s=5).send(goods.items, receipts.append)
    assert receipts == [Receipt(name, 0, "success") for name in goods.files]


@given(st.binary(max_size=200))
def test_any_bytes_as_a_command_set_are_a_response_or_a_value_error(data: bytes) -> None:
    try:
        read_response(data)
    except ValueError as error:
        assert not error.__cause__  # noqa: PT017  nothing foreign comes with it


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300), st.binary(max_size=40))
def test_any_bytes_as_an_answer_to_an_association_are_an_answer_or_a_value_error(body: bytes, start: bytes) -> None:
    contexts = [pdus.Context("1.2.840.10008.1.1", "1.2.840.10008.1.2")]
    for head in (b"", b"\0\1\0\0" + b"A" * 64, b"\0\1\0\0" + b"A" * 64 + b"\x21\0\0\x10\1\0\0\0\x40\0\0\x08"):
        data = head + start + body
        for read in (lambda pdu: pdus.read_accept(pdu, contexts), pdus.read_rejection):
            with contextlib.suppress(ValueError):
                read(b"\2\0" + len(data).to_bytes(4, "big") + data)


def test_a_large_instance_is_streamed(tmp_path: Path) -> None:
    """Case 72: memory does not grow with the file. 96 MB go out while less than 16 MB are held."""
    goods = consignment(tmp_path, 1, payload=bytes(96 << 20))
    receipts: list[Receipt] = []
    with raw_archive(answered(store_response)) as there:
        transport = there.transport()
        tracemalloc.start()
        try:
            transport.send(goods.items, receipts.append)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert [receipt.kind for receipt in receipts] == ["success"]
    assert peak_bytes < 16 << 20


def test_logs_name_our_instances_the_archive_and_reasons_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gateway")
    goods = consignment(tmp_path, 4)
    answers = iter([0xA900, 0xB000])

    def make(context_id: int, message_id: int) -> bytes:
        status = next(answers, None)
        return b"\x07\0\0\0\0\x04\0\0\0\0" if status is None else store_response(context_id, message_id, status=status)

    with raw_archive(answered(make)) as there, pytest.raises(Retry):
        there.transport(timeout_s=5).send(goods.items, lambda receipt: None)
    text = "".join(f"{record.msg} {record.args}" for record in caplog.records)
    assert "instance_refused" in text
    assert "A900" in text
    assert "association_lost" in text
    for one in goods.clearance.instances:
        assert one.sop_instance_uid not in text
        assert one.sop_class_uid not in text
