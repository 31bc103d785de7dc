"""Deny by default, with the result, source and reason that PS3.8 9.3.4 gives for each case."""

from __future__ import annotations

import socket
import struct
import subprocess
import time

import pytest
from pydicom.uid import ImplicitVRLittleEndian
from sqlalchemy.exc import OperationalError

from gateway.database import Database
from gateway.errors import EnvironmentFault
from gateway.receive import peers as allow_list
from gateway.receive.peers import Peers, plain_address
from tests.peers import dcmtk, wait_until
from tests.receive.raw_peer import CT, RawPeer, associate_request, dataset, p_data, pdv, store_command


def test_an_empty_allow_list_lets_nobody_in(open_door):
    with open_door(allowed_peers="").peer() as peer:
        assert peer.rejection() == (1, 1, 3)  # calling-AE-title-not-recognized


@pytest.mark.parametrize(
    ("allowed", "calling", "let_in"),
    [
        ("PACS@127.0.0.1", "PACS", True),
        ("PACS@*", "PACS", True),
        ("PACS@localhost", "PACS", True),
        ("CT@10.9.9.9,PACS@127.0.0.1", "PACS", True),
        ("PACS@10.9.9.9", "PACS", False),
        ("PACS@no-such-host.invalid", "PACS", False),
        ("PACS@127.0.0.1", "pacs", False),
        ("PACS@127.0.0.1", "PACS2", False),
        ("PACS@127.0.0.1", "*", False),
        ("CT@127.0.0.1", "PACS", False),
    ],
)
def test_calling_title_and_host_must_both_be_listed(open_door, allowed, calling, let_in):
    with open_door(allowed_peers=allowed).peer() as peer:
        if let_in:
            peer.associate(calling=calling)
        else:
            assert peer.rejection(calling=calling) == (1, 1, 3)


@pytest.mark.parametrize("called", ["DEID", "TRIAL_A"])
def test_every_listed_called_title_is_ours(open_door, called):
    with open_door(called_ae_titles="TRIAL_A").peer() as peer:
        peer.associate(called=called)
        assert peer.store(dataset()) == 0


def test_another_called_title_is_not_recognized(door):
    with door.peer() as peer:
        assert peer.rejection(called="SOMEBODY") == (1, 1, 7)
        assert peer.closed()
    assert door.ended("rejected_called_ae")


def test_a_foreign_application_context_is_not_supported(door):
    with door.peer() as peer:
        assert peer.rejection(application_context="1.2.3.4") == (1, 1, 2)


def test_another_protocol_version_is_not_supported(door):
    request = bytearray(associate_request())
    request[6:8] = b"\0\2"
    with door.peer() as peer:
        peer.send(bytes(request))
        kind, data = peer.answer()
        assert (kind, data[7], data[8], data[9]) == (3, 1, 2, 2)


def test_a_stranger_is_turned_away_before_its_request_is_parsed(door):
    """Garbage after the titles aborts a known peer; a stranger's is never looked at."""
    fixed = struct.pack(">H2x16s16s32x", 1, b"DEID".ljust(16), b"EVIL".ljust(16))
    body = fixed + b"\xff" * 100
    with door.peer() as peer:
        peer.send(struct.pack(">BxI", 1, len(body)) + body)
        assert peer.answer()[0] == 3


def test_more_associations_than_places_are_refused_for_now(open_door):
    door = open_door(max_associations=2)
    with door.peer() as first, door.peer() as second, door.peer() as third:
        first.associate()
        second.associate()
        assert third.rejection() == (2, 3, 2)  # transient, presentation, local-limit-exceeded
        first.release()
        assert first.closed()
        assert door.ended("released")
        with door.peer() as fourth:
            fourth.associate()
    assert door.ended("rejected_too_many")


def test_one_sender_takes_no_more_places_than_it_may_and_leaves_the_rest_to_others(open_door):
    door = open_door(max_associations=3, max_associations_per_peer=1, allowed_peers="PACS@127.0.0.1,CT@127.0.0.1")
    with door.peer() as first, door.peer() as second, door.peer() as other:
        first.associate()
        assert second.rejection() == (2, 3, 2)
        other.associate(calling="CT")
        first.release()
        assert door.ended("released")
        with door.peer() as again:
            again.associate()
    assert door.ended("rejected_too_many_of_peer")


def test_while_too_many_studies_wait_associations_are_refused_and_those_that_are_open_go_on(open_door, monkeypatch):
    monkeypatch.setattr("gateway.receive.arrival.LOOK_AT_QUEUE_EVERY_S", 0.0)
    door = open_door(max_waiting_studies=1)
    with door.peer() as peer:
        peer.associate()
        assert peer.store(dataset("1.2.1", "1.2"), sop="1.2.1") == 0
        with door.peer() as another:
            another.associate()  # as many as may wait
        assert peer.store(dataset("1.3.1", "1.3"), sop="1.3.1") == 0
        with door.peer() as late:
            assert late.rejection() == (2, 3, 1)  # transient, presentation, temporary-congestion
        assert peer.store(dataset("1.3.2", "1.3"), sop="1.3.2") == 0
        door.database.set_study(door.study_key("1.3"), 1, state="held", reason="no_route")  # waits for a person now
        with door.peer() as again:
            again.associate()
        monkeypatch.setattr(Database, "count_waiting", unanswered)
        with door.peer() as unsure:
            assert unsure.rejection() == (2, 3, 1)
    assert door.ended("rejected_behind", 2)


def unanswered(_database: Database) -> int:
    raise OperationalError("statement", {}, Exception("down"))


def test_below_the_watermark_associations_are_refused_and_stores_answered_a700(open_door, monkeypatch):
    door = open_door(min_free_bytes=1000)
    free = 2000
    monkeypatch.setattr(type(door.spool), "free_bytes", lambda _: free)
    with door.peer() as peer:
        peer.associate()
        assert peer.store(dataset()) == 0x0000
        free = 999
        assert peer.store(dataset()) == 0xA700
        with door.peer() as late:
            assert late.rejection() == (2, 3, 2)
        free = 1000
        assert peer.store(dataset()) == 0x0000
    assert door.ended("rejected_disk_full")
    assert door.value("deid_instances_received_total", result="out_of_resources") == 1
    assert door.parts() == []


def test_the_disk_is_looked_at_again_while_a_large_object_comes(open_door, monkeypatch):
    door = open_door(min_free_bytes=1000)
    free = [2000, 2000, 999]  # association, request, after 16 MiB
    monkeypatch.setattr(type(door.spool), "free_bytes", lambda _: free.pop(0) if len(free) > 1 else free[0])
    piece = pdv(1, b"\0" * 100_000, last=False)
    with door.peer() as peer:
        peer.associate()
        peer.send(p_data(pdv(1, store_command(), command=True)))
        for _ in range(180):
            peer.send(p_data(piece))
        wait_until(lambda: not door.parts(), seconds=10, what="the part is gone before the object has ended")
        peer.send(p_data(pdv(1, b"")))
        assert peer.status() == 0xA700


def test_a_taken_port_is_the_environments_fault(door, open_door):
    with pytest.raises(EnvironmentFault, match="DEID_DICOM_PORT"):
        open_door(dicom_port=door.port)


def test_after_stop_nobody_listens(open_door):
    door = open_door()
    door.receiver.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", door.port)) != 0


def test_rejections_have_the_numbers_of_the_standard():
    """PS3.8 Table 9-21, written out."""
    numbers = {
        name: (value.result, value.source, value.reason)
        for name, value in vars(allow_list).items()
        if isinstance(value, allow_list.Rejection)
    }
    assert numbers == {
        "APPLICATION_CONTEXT": (1, 1, 2),
        "CALLING_AE": (1, 1, 3),
        "CALLED_AE": (1, 1, 7),
        "PROTOCOL_VERSION": (1, 2, 2),
        "STOPPING": (2, 3, 1),
        "TOO_MANY": (2, 3, 2),
        "TOO_MANY_OF_PEER": (2, 3, 2),
        "BEHIND": (2, 3, 1),
        "DISK_FULL": (2, 3, 2),
    }


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("fe80::1%eth0", "fe80::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("pacs.hospital", "pacs.hospital"),
    ],
)
def test_addresses_are_compared_in_one_form(written, compared):
    assert plain_address(written) == compared


def test_a_peer_listed_by_ipv6_is_let_in_however_it_is_written(settings):
    allowed = Peers(settings(allowed_peers="PACS@2001:db8:0:0::1"))
    assert allowed.reject(calling="PACS", called="DEID", host="2001:db8::1") is None


@pytest.mark.peer
def test_dcmtk_understands_the_rejection(door):
    tool = dcmtk("echoscu")
    run = [tool, "-aec", "DEID", "127.0.0.1", str(door.port)]
    refused = subprocess.run([*run, "-aet", "EVIL"], capture_output=True, check=False)
    assert refused.returncode != 0
    assert b"Calling AE Title Not Recognized" in refused.stderr + refused.stdout
    assert subprocess.run([*run, "-aet", "PACS"], check=False).returncode == 0


class TestStrayConnections:
    """cases.md 70: load balancers' port checks leave nothing behind."""

    def test_200_bare_connects_leave_no_thread_and_no_socket(self, door):
        for _ in range(200):
            RawPeer(door.port).socket.close()
        assert door.ended("no_request", 200)
        assert door.receiver._open == {}
        with door.peer() as peer:
            peer.associate()
            assert peer.store(dataset()) == 0

    def test_connections_that_ask_for_nothing_are_dropped_after_the_timeout(self, open_door):
        door = open_door(network_timeout_s=0.3)
        with door.peer() as peer:
            began = time.monotonic()
            assert peer.abort_reason() == (0, 0)  # PS3.8 action AA-1: the service user's abort
            assert peer.closed()
            assert time.monotonic() - began < 3

    def test_more_connections_than_threads_are_closed_at_once(self, open_door):
        door = open_door(max_associations=1)
        idle = [RawPeer(door.port) for _ in range(1 + 64)]
        with door.peer() as peer:
            assert peer.closed()
        assert door.ended("no_room")
        for peer in idle:
            peer.socket.close()

    @pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00" + b"\0" * 200])
    def test_other_protocols_are_aborted(self, door, greeting):
        with door.peer() as peer:
            peer.send(greeting)
            assert peer.abort_reason() == (0, 0)

    def test_an_associate_request_of_absurd_length_is_not_read(self, door):
        with door.peer() as peer:
            peer.send(struct.pack(">BxI", 1, 0xFFFFFFFF))
            assert peer.abort_reason() == (0, 0)


def test_a_second_associate_request_is_unexpected(door):
    with door.peer() as peer:
        peer.associate([(CT, [ImplicitVRLittleEndian])])
        peer.send(associate_request())
        assert peer.abort_reason() == (2, 2)
    assert door.ended("aborted_protocol")
