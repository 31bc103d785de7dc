"""The PDUs of PS3.8 9.3: pynetdicom reads association requests and writes acceptances; short answers by struct."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from pydicom.uid import UID
from pynetdicom import pdu
from pynetdicom.pdu_primitives import (
    A_ASSOCIATE,
    ImplementationClassUIDNotification,
    ImplementationVersionNameNotification,
    MaximumLengthNotification,
    SCP_SCU_RoleSelectionNegotiation,
)
from pynetdicom.presentation import PresentationContext

from gateway.errors import GatewayError
from gateway.receive import commitment
from gateway.receive.peers import Rejection
from gateway.study import IMPLEMENTATION_CLASS_UID, IMPLEMENTATION_VERSION_NAME

APPLICATION_CONTEXT_NAME = "1.2.840.10008.3.1.1.1"
LONGEST_REQUEST_BYTES = 1 << 20  # 128 contexts with all syntaxes are some 350 kB
_REQUEST = struct.Struct(">H2x16s16s32x")
# What pynetdicom raises over bytes that are no association request. It asserts lengths, indexes and unpacks.
_DECODING_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, struct.error)


class PduType(IntEnum):
    """PS3.8 Tables 9-11 to 9-26."""

    ASSOCIATE_RQ = 1
    ASSOCIATE_AC = 2
    ASSOCIATE_RJ = 3
    P_DATA_TF = 4
    RELEASE_RQ = 5
    RELEASE_RP = 6
    ABORT = 7


class AbortReason(IntEnum):
    """Reasons of the service provider (PS3.8 Table 9-26)."""

    NOT_SPECIFIED = 0
    UNRECOGNIZED_PDU = 1
    UNEXPECTED_PDU = 2
    UNEXPECTED_PARAMETER = 5
    INVALID_PARAMETER_VALUE = 6


class ProtocolFault(GatewayError):
    """The peer broke the protocol; the association is aborted for this reason."""

    def __init__(self, reason: AbortReason) -> None:
        self.reason = reason
        super().__init__(f"the peer broke the protocol: {reason.name.lower()}")


@dataclass(frozen=True, slots=True)
class Caller:
    """The fixed part of an A-ASSOCIATE-RQ: enough to turn a stranger away before anything else of it is parsed."""

    calling: str
    called: str
    speaks_version_1: bool


@dataclass(frozen=True, slots=True)
class Request:
    """The variable part. `longest_pdu_bytes` is what the peer takes, 0 = any."""

    application_context: str
    contexts: tuple[PresentationContext, ...]
    longest_pdu_bytes: int
    reports: bool = False  # it wants to be the SCP of storage commitment: an archive that reports to us


def read_caller(body: bytes) -> Caller:
    """Of the bytes after the PDU header. Raises ProtocolFault when it is too short."""
    if len(body) < _REQUEST.size:
        raise ProtocolFault(AbortReason.INVALID_PARAMETER_VALUE)
    version, called, calling = _REQUEST.unpack_from(body)
    # Bytes outside ASCII become characters that no setting can hold, so they match nothing.
    return Caller(_title(calling), _title(called), speaks_version_1=bool(version & 1))


def _title(field: bytes) -> str:
    return field.decode("ascii", "replace").strip(" \0")


def read_request(body: bytes) -> Request:
    """Raises ProtocolFault for anything that is not a whole request with contexts of odd, distinct ids."""
    request = pdu.A_ASSOCIATE_RQ()
    try:
        request.decode(struct.pack(">BxI", PduType.ASSOCIATE_RQ, len(body)) + body)
        primitive = request.to_primitive()
        contexts = tuple(primitive.presentation_context_definition_list)
        longest = primitive.maximum_length_received or 0
        roles = [one for one in primitive.user_information if isinstance(one, SCP_SCU_RoleSelectionNegotiation)]
        reports = any(role.sop_class_uid == commitment.CLASS_UID and role.scp_role for role in roles)
    except _DECODING_ERRORS:
        raise ProtocolFault(AbortReason.INVALID_PARAMETER_VALUE) from None
    ids = {context.context_id for context in contexts}
    named = all(context.context_id and context.abstract_syntax for context in contexts)
    if not contexts or len(ids) != len(contexts) or not named:
        raise ProtocolFault(AbortReason.INVALID_PARAMETER_VALUE)
    return Request(str(primitive.application_context_name or ""), contexts, longest, reports)


def accept(
    caller: Caller, contexts: Sequence[PresentationContext], *, longest_pdu_bytes: int, reports: bool = False
) -> bytes:
    """A-ASSOCIATE-AC (PS3.8 9.3.3); `reports`: the peer's role as SCP of storage commitment is accepted."""
    length = MaximumLengthNotification()
    length.maximum_length_received = longest_pdu_bytes
    implementation = ImplementationClassUIDNotification()
    implementation.implementation_class_uid = UID(IMPLEMENTATION_CLASS_UID)
    version = ImplementationVersionNameNotification()
    version.implementation_version_name = IMPLEMENTATION_VERSION_NAME
    primitive = A_ASSOCIATE()
    primitive.application_context_name = UID(APPLICATION_CONTEXT_NAME)
    primitive.calling_ae_title = caller.calling
    primitive.called_ae_title = caller.called
    primitive.result = 0
    primitive.result_source = 1
    primitive.presentation_context_definition_results_list = list(contexts)
    primitive.user_information = [length, implementation, version]
    if reports:
        role = SCP_SCU_RoleSelectionNegotiation()
        role.sop_class_uid, role.scu_role, role.scp_role = UID(commitment.CLASS_UID), False, True
        primitive.user_information = [*primitive.user_information, role]
    return bytes(pdu.A_ASSOCIATE_AC(primitive).encode())


def reject(rejection: Rejection) -> bytes:
    """A-ASSOCIATE-RJ (PS3.8 9.3.4)."""
    return struct.pack(">BxIxBBB", PduType.ASSOCIATE_RJ, 4, rejection.result, rejection.source, rejection.reason)


def abort(reason: AbortReason, *, by_provider: bool = True) -> bytes:
    """A-ABORT (PS3.8 9.3.8). Before an association exists the source is the service user (action AA-1), reason 0."""
    source, code = (2, reason) if by_provider else (0, 0)
    return struct.pack(">BxI2xBB", PduType.ABORT, 4, source, code)


def release_reply() -> bytes:
    """A-RELEASE-RP (PS3.8 9.3.7)."""
    return struct.pack(">BxI4x", PduType.RELEASE_RP, 4)


def command_pdus(command: bytes, *, context_id: int, longest_pdu_bytes: int, data: bool = False) -> bytes:
    """A whole command set as P-DATA-TF PDUs, one after another in one byte string, so that it leaves in one write.

    `data`: it is a data set.
    """
    room = max(2, longest_pdu_bytes - 6) & ~1 if longest_pdu_bytes else len(command)
    out = bytearray()
    for start in range(0, len(command), room):
        piece = command[start : start + room]
        control = (0 if data else 1) | (2 if start + room >= len(command) else 0)  # command fragment; the last
        out += struct.pack(">BxIIBB", PduType.P_DATA_TF, len(piece) + 6, len(piece) + 2, context_id, control) + piece
    return bytes(out)
