"""Short PDUs and command sets are written by hand here: byte for byte what pynetdicom writes."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pynetdicom import pdu
from pynetdicom.dimse_messages import C_ECHO_RQ, C_ECHO_RSP, C_STORE_RQ, C_STORE_RSP
from pynetdicom.dimse_primitives import C_ECHO, C_STORE
from pynetdicom.pdu_primitives import A_ABORT, A_ASSOCIATE, A_P_ABORT, A_RELEASE

from gateway.receive import commands, pdus
from gateway.receive.pdus import AbortReason
from gateway.receive.peers import Rejection

CT = "1.2.840.10008.5.1.4.1.1.2"


def test_a_release_reply():
    primitive = A_RELEASE()
    primitive.result = "affirmative"
    assert pdus.release_reply() == pdu.A_RELEASE_RP(primitive).encode() == bytes.fromhex("06000000000400000000")


@pytest.mark.parametrize("reason", list(AbortReason))
def test_an_abort_by_the_provider(reason):
    primitive = A_P_ABORT()
    primitive.provider_reason = int(reason)
    assert pdus.abort(reason) == pdu.A_ABORT_RQ(primitive).encode()


def test_an_abort_by_the_user():
    primitive = A_ABORT()
    primitive.abort_source = 0
    assert pdus.abort(AbortReason.UNEXPECTED_PDU, by_provider=False) == pdu.A_ABORT_RQ(primitive).encode()


@pytest.mark.parametrize(("result", "source", "reason"), [(1, 1, 3), (1, 1, 7), (1, 2, 2), (2, 3, 2)])
def test_a_rejection(result, source, reason):
    primitive = A_ASSOCIATE()
    primitive.result, primitive.result_source, primitive.diagnostic = result, source, reason
    assert pdus.reject(Rejection("x", result, source, reason)) == pdu.A_ASSOCIATE_RJ(primitive).encode()


def encoded_by_pynetdicom(message: object, primitive: object, context_id: int, longest: int) -> tuple[bytes, bytes]:
    """The command set, and the PDUs it travels in."""
    message.primitive_to_message(primitive)
    command, sent = b"", b""
    for p_data in message.encode_msg(context_id, longest):
        sent += pdu.P_DATA_TF(p_data).encode()
        command += b"".join(value[1:] for _, value in p_data.presentation_data_value_list if value[0] & 1)
    return command, sent


@pytest.mark.parametrize("longest", [0, 16384, 64, 30])
@pytest.mark.parametrize("status", [0x0000, 0xA700, 0x0110])
def test_a_store_response(status, longest):
    primitive = C_STORE()
    primitive.MessageIDBeingRespondedTo = 513
    primitive.AffectedSOPClassUID, primitive.AffectedSOPInstanceUID = CT, "1.2.3.45"
    primitive.Status = status
    expected, sent = encoded_by_pynetdicom(C_STORE_RSP(), primitive, 5, longest)
    command = commands.Command(1, 513, has_data_set=True, class_uid=CT, instance_uid="1.2.3.45")
    ours = commands.response(command, status)
    assert ours == expected
    assert pdus.command_pdus(ours, context_id=5, longest_pdu_bytes=longest) == sent


def test_an_echo_response():
    primitive = C_ECHO()
    primitive.MessageIDBeingRespondedTo, primitive.Status = 3, 0
    primitive.AffectedSOPClassUID = "1.2.840.10008.1.1"
    expected, _ = encoded_by_pynetdicom(C_ECHO_RSP(), primitive, 1, 0)
    command = commands.Command(0x30, 3, has_data_set=False, class_uid="1.2.840.10008.1.1", instance_uid="")
    assert commands.response(command, 0) == expected


@given(
    st.integers(0, 65535),
    st.from_regex(r"1(\.[1-9][0-9]{0,6}){1,6}", fullmatch=True),
    st.sampled_from([C_STORE, C_ECHO]),
)
def test_a_request_that_pynetdicom_wrote_is_read_back(message_id, instance_uid, kind):
    primitive = kind()
    primitive.MessageID, primitive.AffectedSOPClassUID = message_id, CT
    if kind is C_STORE:
        primitive.AffectedSOPInstanceUID, primitive.Priority, primitive.DataSet = instance_uid, 2, io.BytesIO(b"x")
        encoded, _ = encoded_by_pynetdicom(C_STORE_RQ(), primitive, 1, 0)
        assert commands.parse(encoded) == commands.Command(1, message_id, True, CT, instance_uid)
    else:
        encoded, _ = encoded_by_pynetdicom(C_ECHO_RQ(), primitive, 1, 0)
        assert commands.parse(encoded) == commands.Command(0x30, message_id, False, CT, "")
