"""How messages are cut into PDUs, and the requests that are refused (PS3.8 9.3.5, PS3.7 Annex C)."""

from __future__ import annotations

import struct

import pytest
from pydicom.uid import (
    ImplicitVRLittleEndian,
)

from tests.receive.raw_peer import CT, ECHO, dataset, element, p_data, pdv, store_command


class TestFragments:
    """PS3.8 9.3.5 and Annex E: how a message may be cut into PDVs and PDUs is the sender's choice."""

    def test_command_and_data_set_in_one_pdu(self, door):
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(pdv(1, store_command(), command=True), pdv(1, dataset())))
            assert peer.status() == 0x0000

    def test_one_byte_fragments(self, door):
        command, data = store_command(), dataset()
        pieces = [pdv(1, command[i : i + 1], command=True, last=i + 1 == len(command)) for i in range(len(command))]
        pieces += [pdv(1, data[i : i + 1], last=i + 1 == len(data)) for i in range(len(data))]
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(*pieces[:100]) + b"".join(p_data(piece) for piece in pieces[100:]))
            assert peer.status() == 0x0000
        assert door.kept()[0].read_bytes().endswith(data)

    def test_an_empty_last_fragment_ends_the_data_set(self, door):
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(pdv(1, store_command(), command=True)))
            peer.send(p_data(pdv(1, dataset(), last=False)) + p_data(pdv(1, b"")))
            assert peer.status() == 0x0000

    def test_two_requests_sent_without_waiting_are_answered_in_order(self, door):
        with door.peer() as peer:
            peer.associate()
            for number in (7, 8):
                peer.send(p_data(pdv(1, store_command(message_id=number), command=True), pdv(1, dataset())))
            assert [peer.response()[0x0120] for _ in range(2)] == [7, 8]

    def test_echo_and_cancel_between_stores(self, door):
        cancel = element(0, 0x0100, b"\xff\x0f") + element(0, 0x0120, b"\1\0") + element(0, 0x0800, b"\1\1")
        with door.peer() as peer:
            peer.associate([(CT, [ImplicitVRLittleEndian]), (ECHO, [ImplicitVRLittleEndian])])
            assert peer.store(dataset()) == 0x0000
            peer.send(p_data(pdv(1, cancel, command=True)))
            peer.send(p_data(pdv(3, store_command("", sop_class=ECHO, field=0x30, data_set=False), command=True)))
            assert peer.response()[0x0100] == 0x8030
            assert peer.store(dataset()) == 0x0000

    def test_an_answer_fits_the_longest_pdu_that_the_peer_takes(self, door):
        with door.peer() as peer:
            peer.associate(longest=64)
            peer.send(p_data(pdv(1, store_command(), command=True), pdv(1, dataset())))
            command, last = b"", False
            while not last:
                kind, data = peer.answer()
                assert kind == 4
                assert len(data) - 6 <= 64
                last = bool(data[11] & 2)
                command += data[12:]
            assert command[:12] == element(0, 0, struct.pack("<I", len(command) - 12))


class TestRequestsThatAreRefused:
    """PS3.7 Annex C and PS3.4 B.2.3: each with its own status, and the association goes on."""

    @pytest.mark.parametrize(
        ("command", "status"),
        [
            (store_command(sop_class="1.2.840.10008.5.1.4.1.1.4"), 0x0122),  # MR under a CT context
            (store_command(""), 0x0117),
            (store_command("1." * 32 + "1"), 0x0117),  # 65 characters
            (store_command(field=0x0020), 0x0211),  # C-FIND
            (store_command(field=0x0130), 0x0211),  # N-ACTION
        ],
    )
    def test_the_data_set_is_dropped_and_the_next_object_is_taken(self, door, command, status):
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(pdv(1, command, command=True), pdv(1, dataset())))
            assert peer.status() == status
            assert peer.store(dataset()) == 0x0000
        assert len(door.kept()) == 1

    def test_a_store_without_data_set_is_not_understood(self, door):
        with door.peer() as peer:
            peer.associate()
            peer.send(p_data(pdv(1, store_command(data_set=False), command=True)))
            assert peer.status() == 0xC000

    def test_a_store_under_the_verification_context_is_not_supported(self, door):
        with door.peer() as peer:
            peer.associate([(ECHO, [ImplicitVRLittleEndian])])
            peer.send(p_data(pdv(1, store_command(sop_class=ECHO), command=True), pdv(1, dataset())))
            assert peer.status() == 0x0122
