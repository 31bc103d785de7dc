"""Command sets: Implicit VR Little Endian, group 0000 only (PS3.7 6.3.1, Annex E)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

LONGEST_BYTES = 64 * 1024
NO_DATA_SET = 0x0101
C_STORE_RQ, C_ECHO_RQ, C_CANCEL_RQ, N_EVENT_REPORT_RQ, N_ACTION_RQ = 0x0001, 0x0030, 0x0FFF, 0x0100, 0x0130
RESPONSE = 0x8000
LONGEST_UID = 64

# Status (PS3.7 Annex C, PS3.4 B.2.3)
SUCCESS = 0x0000
PROCESSING_FAILURE = 0x0110
INVALID_INSTANCE = 0x0117
CLASS_NOT_SUPPORTED = 0x0122
UNRECOGNIZED_OPERATION = 0x0211
OUT_OF_RESOURCES = 0xA700
NOT_OF_THIS_STUDY = 0xA900
NO_SUCH_INSTANCE, NO_SUCH_ACTION, RESOURCE_LIMITATION = 0x0112, 0x0123, 0x0213
CANNOT_UNDERSTAND = 0xC000

_ELEMENT = struct.Struct("<HHI")
_CLASS_UID, _REQUESTED_CLASS_UID, _FIELD, _MESSAGE_ID, _DATA_SET_TYPE = 0x0002, 0x0003, 0x0100, 0x0110, 0x0800
_INSTANCE_UID, _REQUESTED_INSTANCE_UID, _EVENT_TYPE, _ACTION_TYPE = 0x1000, 0x1001, 0x1002, 0x1008


class MalformedCommand(ValueError):
    """Not a command set, or one without the fields that every request has."""


@dataclass(frozen=True, slots=True)
class Command:
    """A request, or the answer to one of ours. UIDs are as sent, without padding, and not trusted; "" when absent.
    `action`: the action type of an N-ACTION, else 0.
    """

    field: int
    message_id: int
    has_data_set: bool
    class_uid: str
    instance_uid: str
    action: int = 0


def parse(encoded: bytes) -> Command:
    """Raises MalformedCommand. A C-CANCEL and an answer have no Message ID of their own; 0 stands for it."""
    values: dict[int, bytes] = {}
    position = 0
    while position < len(encoded):
        if len(encoded) - position < _ELEMENT.size:
            raise MalformedCommand
        group, element, length = _ELEMENT.unpack_from(encoded, position)
        position += _ELEMENT.size
        if group or length > len(encoded) - position:
            raise MalformedCommand
        values[element] = encoded[position : position + length]
        position += length
    field = _short(values, _FIELD)
    return Command(
        field=field,
        message_id=0 if field == C_CANCEL_RQ or field & RESPONSE else _short(values, _MESSAGE_ID),
        has_data_set=_short(values, _DATA_SET_TYPE) != NO_DATA_SET,
        class_uid=_uid(values, _CLASS_UID) or _uid(values, _REQUESTED_CLASS_UID),
        instance_uid=_uid(values, _INSTANCE_UID) or _uid(values, _REQUESTED_INSTANCE_UID),
        action=int.from_bytes(values.get(_ACTION_TYPE, b"")[:2], "little") if field == N_ACTION_RQ else 0,
    )


def _short(values: dict[int, bytes], element: int) -> int:
    value = values.get(element, b"")
    if len(value) != 2:
        raise MalformedCommand
    return int.from_bytes(value, "little")


def _uid(values: dict[int, bytes], element: int) -> str:
    return values.get(element, b"").decode("latin-1").strip(" \0")


def response(command: Command, status: int) -> bytes:
    """The command set that answers `command`. UIDs are echoed (PS3.7 9.3.1.2); without a data set."""
    return _whole(
        _named(_CLASS_UID, command.class_uid)
        + _element(_FIELD, struct.pack("<H", (command.field | RESPONSE) & 0xFFFF))
        + _element(0x0120, struct.pack("<H", command.message_id))
        + _element(_DATA_SET_TYPE, struct.pack("<H", NO_DATA_SET))
        + _element(0x0900, struct.pack("<H", status))
        + _named(_INSTANCE_UID, command.instance_uid)
    )


def event_report(class_uid: str, instance_uid: str, event: int, message_id: int) -> bytes:
    """The command set of an N-EVENT-REPORT of ours (PS3.7 10.3.1.1), which a data set follows."""
    return _whole(
        _named(_CLASS_UID, class_uid)
        + _element(_FIELD, struct.pack("<H", N_EVENT_REPORT_RQ))
        + _element(_MESSAGE_ID, struct.pack("<H", message_id))
        + _element(_DATA_SET_TYPE, struct.pack("<H", 0x0001))
        + _named(_INSTANCE_UID, instance_uid)
        + _element(_EVENT_TYPE, struct.pack("<H", event))
    )


def _element(number: int, value: bytes) -> bytes:
    return _ELEMENT.pack(0, number, len(value)) + value


def _named(number: int, value: str) -> bytes:
    encoded = value.encode("latin-1")
    return _element(number, encoded + b"\0" * (len(encoded) % 2)) if 0 < len(encoded) <= LONGEST_UID else b""


def _whole(body: bytes) -> bytes:
    return _element(0x0000, struct.pack("<I", len(body))) + body
