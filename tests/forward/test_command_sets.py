"""Command sets and PDUs against pynetdicom as an independent writer and reader."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pynetdicom.dimse_messages import C_ECHO_RQ, C_STORE_RQ, C_STORE_RSP
from pynetdicom.dimse_primitives import C_ECHO, C_STORE
from pynetdicom.dsutils import encode
from pynetdicom.pdu import A_ASSOCIATE_RQ, P_DATA_TF
from pynetdicom.status import STORAGE_SERVICE_CLASS_STATUS

from gateway.forward import dimse, pdus
from gateway.study import IMPLEMENTATION_CLASS_UID

uids = st.lists(st.integers(0, 10**9), min_size=2, max_size=6).map(lambda parts: ".".join(map(str, parts)))


@given(st.integers(1, 65535), uids, uids)
def test_a_store_request_is_the_one_pynetdicom_writes(message_id: int, sop_class: str, sop_instance: str) -> None:
    request = C_STORE()
    request.MessageID, request.Priority = message_id, 0
    request.AffectedSOPClassUID, request.AffectedSOPInstanceUID = sop_class, sop_instance
    request.DataSet = io.BytesIO(b"data")
    message = C_STORE_RQ()
    message.primitive_to_message(request)
    assert dimse.store_request(message_id, sop_class, sop_instance) == encode(message.command_set, True, True)


def test_an_echo_request_is_the_one_pynetdicom_writes() -> None:
    request = C_ECHO()
    request.MessageID, request.AffectedSOPClassUID = 7, "1.2.840.10008.1.1"
    message = C_ECHO_RQ()
    message.primitive_to_message(request)
    assert dimse.echo_request(7) == encode(message.command_set, True, True)


@given(st.integers(1, 65535), st.sampled_from(sorted(STORAGE_SERVICE_CLASS_STATUS)), st.text("ABC", max_size=60))
def test_a_response_of_pynetdicom_is_read(message_id: int, status: int, comment: str) -> None:
    answer = C_STORE()
    answer.MessageIDBeingRespondedTo, answer.Status = message_id, status
    answer.AffectedSOPClassUID, answer.AffectedSOPInstanceUID = "1.2.3", "1.2.3.4"
    answer.ErrorComment = comment or None
    message = C_STORE_RSP()
    message.primitive_to_message(answer)
    read = dimse.read_response(bytes(encode(message.command_set, True, True) or b""))
    assert read == dimse.Response(0x8001, message_id, status, has_data_set=False)


def test_every_storage_status_of_the_standard_means_what_the_standard_says() -> None:
    """PS3.4 Table B.2-1 and PS3.7 C, as pynetdicom lists them; "busy" is our name for Refused: Out of Resources."""
    for status, (category, _) in STORAGE_SERVICE_CLASS_STATUS.items():
        if status in (0x0107, 0x0116):
            continue  # warnings of the N- services; C-STORE has no such answer, so nothing says the object is stored
        kind = dimse.status_kind(status)
        expected = {"Success": "success", "Warning": "warning", "Failure": "failure", "Cancel": "failure"}[category]
        assert kind == ("busy" if 0xA700 <= status <= 0xA7FF else expected), f"{status:04X}"


@given(st.binary(min_size=1, max_size=2000), st.integers(128, 700).map(lambda n: n & ~1), st.booleans())
def test_fragments_are_even_fit_the_pdu_and_join_to_the_message(data: bytes, piece_bytes: int, even: bool) -> None:
    data += b"\0" * (len(data) & 1)
    command = dimse.store_request(1, "1.2.3", "1.2." + "3" * 40)
    pieces = [memoryview(data)[at : at + piece_bytes] for at in range(0, len(data), piece_bytes)]
    wire = b"".join(pdus.fragments(5, command, pieces, piece_bytes))
    joined = {True: b"", False: b""}
    lasts, count = [], 0
    while wire:
        length = 6 + int.from_bytes(wire[2:6], "big")
        pdu = P_DATA_TF()
        pdu.decode(wire[:length])
        wire = wire[length:]
        count += 1
        assert pdu.pdu_length <= piece_bytes + 6
        for value in pdu.presentation_data_value_items:
            assert value.context_id == 5
            control, fragment = value.presentation_data_value[0], value.presentation_data_value[1:]
            assert len(fragment) % 2 == 0
            joined[bool(control & 1)] += fragment
            if control & 2:
                lasts.append((bool(control & 1), count))
    assert joined == {True: command, False: data}
    commands = math.ceil(len(command) / piece_bytes)
    assert lasts == [(True, commands), (False, commands + len(pieces))]


@given(st.lists(st.tuples(uids, uids), min_size=1, max_size=128, unique=True))
def test_every_context_is_offered_alone_under_an_odd_id(pairs: list[tuple[str, str]]) -> None:
    contexts = [pdus.Context(*pair) for pair in pairs]
    request = A_ASSOCIATE_RQ()
    request.decode(pdus.associate_request(contexts, "DEID", "ARCHIVE", 131072))
    offered = [(item.context_id, item.abstract_syntax, item.transfer_syntax) for item in request.presentation_context]
    assert offered == [(2 * i + 1, c.sop_class_uid, [c.transfer_syntax_uid]) for i, c in enumerate(contexts)]
    assert request.user_information.maximum_length == 131072
    assert request.user_information.implementation_class_uid == IMPLEMENTATION_CLASS_UID
    assert (request.calling_ae_title, request.called_ae_title) == ("DEID", "ARCHIVE")


def test_more_contexts_than_an_association_holds_are_a_programming_fault() -> None:
    with pytest.raises(ValueError, match="128"):
        pdus.associate_request([pdus.Context("1.2", f"1.3.{i}") for i in range(129)], "A", "B", 131072)
