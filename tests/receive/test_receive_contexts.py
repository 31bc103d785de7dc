"""Presentation contexts: every storage class, every transfer syntax, nothing unknown (PS3.8 9.3.3.2)."""

from __future__ import annotations

from pydicom.uid import (
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
)

from gateway.receive.contexts import STORAGE_CLASSES
from gateway.study import IMPLEMENTATION_CLASS_UID
from tests.receive.raw_peer import CT, RawPeer, p_data, pdv, store_command


class TestContexts:
    """What is accepted in negotiation."""

    def test_every_transfer_syntax_is_accepted(self, door):
        # By number, so that this list is not the code's: PS3.6 Table A-1, retired ones too.
        numbers = [
            *("1.2", "1.2.1", "1.2.1.98", "1.2.1.99", "1.2.2", "1.2.5", "1.2.8.1"),
            *(f"1.2.4.{n}" for n in (*range(50, 67), 70, 80, 81, *range(90, 96), *range(100, 109))),
            *(f"1.2.4.{n}" for n in (110, 111, 112, 201, 202, 203, 204, 205)),
            *(f"1.2.4.{n}.1" for n in range(100, 107)),
        ]
        contexts = [(CT, [f"1.2.840.10008.{number}"]) for number in numbers]
        with door.peer() as peer:
            accepted = peer.associate(contexts)
            assert [item.result_reason for item in accepted.presentation_context] == [0] * len(contexts)
            assert [[item.transfer_syntax] for item in accepted.presentation_context] == [s for _, s in contexts]

    def test_every_storage_class_is_accepted_in_associations_of_128_contexts(self, door):
        everything = sorted(STORAGE_CLASSES)
        assert len(everything) > 180
        for start in (0, 128):
            with door.peer() as peer:
                accepted = peer.associate([(c, [ExplicitVRLittleEndian]) for c in everything[start : start + 128]])
                assert {item.result_reason for item in accepted.presentation_context} == {0}
                assert accepted.presentation_context[-1].presentation_context_id in (255, 2 * len(everything[128:]) - 1)

    def test_of_several_syntaxes_the_senders_first_is_taken(self, door):
        with door.peer() as peer:
            accepted = peer.associate([(CT, ["1.2.3.4", JPEG2000Lossless, ImplicitVRLittleEndian])])
            assert accepted.presentation_context[0].transfer_syntax == JPEG2000Lossless

    def test_unknown_classes_and_syntaxes_are_refused_each_with_its_reason(self, door):
        with door.peer() as peer:
            accepted = peer.associate(
                [
                    ("1.2.840.10008.5.1.4.1.2.2.1", [ImplicitVRLittleEndian]),  # Study Root FIND
                    ("1.2.840.10008.1.3.10", [ImplicitVRLittleEndian]),  # DICOMDIR
                    ("1.3.6.1.4.1.9999.1", [ImplicitVRLittleEndian]),
                    (CT, ["1.2.3.4"]),
                    (CT, [ImplicitVRLittleEndian]),
                ]
            )
            assert [item.result_reason for item in accepted.presentation_context] == [3, 3, 3, 4, 0]
            peer.send(p_data(pdv(1, store_command(), command=True)))
            assert peer.abort_reason() == (2, 6)

    def test_private_classes_are_accepted_when_listed(self, open_door):
        door = open_door(private_sop_classes="1.3.6.1.4.1.9999.1")
        with door.peer() as peer:
            accepted = peer.associate([("1.3.6.1.4.1.9999.1", [ImplicitVRLittleEndian])])
            assert accepted.presentation_context[0].result_reason == 0

    def test_our_pdu_limit_and_implementation_are_announced(self, open_door):
        with RawPeer(open_door(max_pdu_bytes=65536).port) as peer:
            user = {type(item).__name__: item for item in peer.associate().user_information.user_data}
            assert user["MaximumLengthSubItem"].maximum_length_received == 65536
            assert user["ImplementationClassUIDSubItem"].implementation_class_uid == IMPLEMENTATION_CLASS_UID
