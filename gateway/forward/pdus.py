"""The PDUs of an outgoing association (PS3.8 9.3): built, taken apart, without any input or output.

pynetdicom's classes write the association request. Its answer is parsed here: theirs checks lengths with `assert`.
P-DATA-TF is a twelve-byte head before a slice of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from pynetdicom.pdu import A_ASSOCIATE_RQ
from pynetdicom.pdu_primitives import (
    A_ASSOCIATE,
    ImplementationClassUIDNotification,
    ImplementationVersionNameNotification,
    MaximumLengthNotification,
)
from pynetdicom.presentation import build_context

from gateway.study import IMPLEMENTATION_CLASS_UID, IMPLEMENTATION_VERSION_NAME

MAX_CONTEXTS = 128  # odd ids 1 to 255 (PS3.8 9.3.2.2)
ASSOCIATE_AC, ASSOCIATE_RJ, P_DATA, RELEASE_RQ, RELEASE_RP, ABORT = 2, 3, 4, 5, 6, 7
RELEASE_REQUEST = b"\x05\0\0\0\0\x04\0\0\0\0"
RELEASE_REPLY = b"\x06\0\0\0\0\x04\0\0\0\0"
ABORT_BY_USER = b"\x07\0\0\0\0\x04\0\0\0\0"
LAST = 2  # bits of a message control header (PS3.8 E.2)
_COMMAND = 1
_APPLICATION_CONTEXT = "1.2.840.10008.3.1.1.1"  # PS3.7 A.2.1
_PDV = struct.Struct(">BxIIBB")  # PDU type, PDU length, item length, context id, message control header


@dataclass(frozen=True, slots=True, order=True)
class Context:
    """What is negotiated: one SOP class in one transfer syntax (cases.md 73)."""

    sop_class_uid: str
    transfer_syntax_uid: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """What an A-ASSOCIATE-AC says. `max_pdu_bytes` 0 = no limit."""

    ids: dict[Context, int]  # accepted contexts
    results: dict[Context, int]  # every context offered -> result (PS3.8 Table 9-18), 0 = accepted
    max_pdu_bytes: int


def _numbered(contexts: Sequence[Context]) -> list[tuple[int, Context]]:
    return [(2 * index + 1, context) for index, context in enumerate(contexts)]


def associate_request(contexts: Sequence[Context], calling: str, called: str, max_pdu_bytes: int) -> bytes:
    """A-ASSOCIATE-RQ (PS3.8 9.3.2)."""
    if len(contexts) > MAX_CONTEXTS:
        raise ValueError("more than 128 presentation contexts")
    request = A_ASSOCIATE()
    request.application_context_name = _APPLICATION_CONTEXT
    request.calling_ae_title, request.called_ae_title = calling, called
    offered = []
    for context_id, context in _numbered(contexts):
        one = build_context(context.sop_class_uid, context.transfer_syntax_uid)
        one.context_id = context_id
        offered.append(one)
    request.presentation_context_definition_list = offered
    limit, ours, version = (
        MaximumLengthNotification(),
        ImplementationClassUIDNotification(),
        ImplementationVersionNameNotification(),
    )
    limit.maximum_length_received = max_pdu_bytes
    ours.implementation_class_uid = IMPLEMENTATION_CLASS_UID
    version.implementation_version_name = IMPLEMENTATION_VERSION_NAME
    request.user_information = [limit, ours, version]
    pdu = A_ASSOCIATE_RQ()
    pdu.from_primitive(request)
    return bytes(pdu.encode())


def read_accept(pdu: bytes, contexts: Sequence[Context]) -> Accepted:
    """A-ASSOCIATE-AC (PS3.8 9.3.3) as an answer to `contexts`. ValueError when malformed."""
    said: dict[int, tuple[int, bytes]] = {}
    limit = 0
    for kind, value in _items(pdu[74:]):
        if kind == 0x21 and len(value) >= 4:  # presentation context: id, reserved, result, reserved, transfer syntax
            syntaxes = [syntax for sub, syntax in _items(value[4:]) if sub == 0x40] if value[2] == 0 else []
            said[value[0]] = value[2], syntaxes[0] if syntaxes else b""
        elif kind == 0x50:  # user information
            limit = next((int.from_bytes(size, "big") for sub, size in _items(value) if sub == 0x51), 0)
    ids, results = {}, {}
    for context_id, context in _numbered(contexts):
        result, syntax = said.get(context_id, (2, b""))
        if result == 0 and syntax.rstrip(b"\0 ") != context.transfer_syntax_uid.encode():
            result = 4  # it accepted something that was not offered: there is no way to send under it
        results[context] = result
        if result == 0:
            ids[context] = context_id
    return Accepted(ids, results, limit)


def _items(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and value of each item (PS3.8 9.3.3.1). ValueError when the last one is cut off."""
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if at + 4 + length > len(data):
            raise ValueError("an item of an association PDU is cut off")
        yield data[at], data[at + 4 : at + 4 + length]
        at += 4 + length


def read_rejection(pdu: bytes) -> tuple[int, int, int]:
    """Result, source and reason of an A-ASSOCIATE-RJ (PS3.8 Table 9-21). ValueError when malformed."""
    if len(pdu) != 10:
        raise ValueError("malformed A-ASSOCIATE-RJ")
    return pdu[7], pdu[8], pdu[9]


def fragments(
    context_id: int, command: bytes, pieces: Iterable[bytes | memoryview], piece_bytes: int
) -> Iterator[bytes | memoryview]:
    """P-DATA-TF PDUs of one message (PS3.8 9.3.5, E.2): head, bytes, head, bytes …"""
    for at in range(0, len(command), piece_bytes):
        part = command[at : at + piece_bytes]
        last = LAST if at + piece_bytes >= len(command) else 0
        yield _PDV.pack(P_DATA, len(part) + 6, len(part) + 2, context_id, _COMMAND | last) + part
    waiting: bytes | memoryview | None = None
    for piece in chain(pieces, (None,)):
        if waiting is not None:
            last = LAST if piece is None else 0
            yield _PDV.pack(P_DATA, len(waiting) + 6, len(waiting) + 2, context_id, last)
            yield waiting
        waiting = piece


def response_values(body: bytes, context_id: int) -> Iterator[tuple[int, bytes]]:
    """Control header and bytes of each presentation data value of a P-DATA-TF PDU. ValueError when malformed."""
    at = 6
    while at < len(body):
        length = int.from_bytes(body[at : at + 4], "big")
        if length < 2 or at + 4 + length > len(body):
            raise ValueError("malformed presentation data value")
        control = body[at + 5]
        if body[at + 4] != context_id or not control & _COMMAND:
            raise ValueError("a data set, or another context, in a response")
        yield control, body[at + 6 : at + 4 + length]
        at += 4 + length
