"""A peer that speaks the upper layer byte by byte, and so can misspeak it too. pynetdicom encodes its associations."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Sequence

from pydicom.uid import UID, ImplicitVRLittleEndian
from pynetdicom import build_context, pdu
from pynetdicom.pdu_primitives import A_ASSOCIATE, ImplementationClassUIDNotification, MaximumLengthNotification

CT = "1.2.840.10008.5.1.4.1.1.2"
ECHO = "1.2.840.10008.1.1"


def element(group: int, number: int, value: bytes) -> bytes:
    """One Implicit VR Little Endian element."""
    return struct.pack("<HHI", group, number, len(value)) + value


def uid(value: str) -> bytes:
    encoded = value.encode()
    return encoded + b"\0" * (len(encoded) % 2)


def dataset(sop: str = "1.2.3", study: str = "1.2", *, more: bytes = b"", expected: str = "") -> bytes:
    """A tiny Implicit VR Little Endian data set."""
    count = element(0x0020, 0x1208, expected.encode()) if expected else b""
    return (
        element(0x0008, 0x0016, uid(CT))
        + element(0x0008, 0x0018, uid(sop))
        + element(0x0020, 0x000D, uid(study))
        + count
        + more
    )


def store_command(
    sop: str = "1.2.3", *, sop_class: str = CT, message_id: int = 1, field: int = 1, data_set: bool = True
) -> bytes:
    body = (
        element(0, 0x0002, uid(sop_class))
        + element(0, 0x0100, struct.pack("<H", field))
        + element(0, 0x0110, struct.pack("<H", message_id))
        + element(0, 0x0700, struct.pack("<H", 0))
        + element(0, 0x0800, struct.pack("<H", 1 if data_set else 0x0101))
        + (element(0, 0x1000, uid(sop)) if sop else b"")
    )
    return element(0, 0, struct.pack("<I", len(body))) + body


def pdv(context_id: int, data: bytes, *, command: bool = False, last: bool = True) -> bytes:
    return struct.pack(">IBB", len(data) + 2, context_id, command | last << 1) + data


def p_data(*pdvs: bytes) -> bytes:
    body = b"".join(pdvs)
    return struct.pack(">BxI", 4, len(body)) + body


def associate_request(
    contexts: Iterable[tuple[str, Sequence[str]]] = ((CT, (ImplicitVRLittleEndian,)),),
    *,
    calling: str = "PACS",
    called: str = "DEID",
    application_context: str = "1.2.840.10008.3.1.1.1",
    longest: int = 16384,
) -> bytes:
    primitive = A_ASSOCIATE()
    primitive.calling_ae_title, primitive.called_ae_title = calling, called
    primitive.application_context_name = UID(application_context)
    proposed = []
    for index, (abstract, syntaxes) in enumerate(contexts):
        context = build_context(abstract, list(syntaxes))
        context.context_id = 2 * index + 1
        proposed.append(context)
    primitive.presentation_context_definition_list = proposed
    length = MaximumLengthNotification()
    length.maximum_length_received = longest
    implementation = ImplementationClassUIDNotification()
    implementation.implementation_class_uid = UID("1.2.3.4")
    primitive.user_information = [length, implementation]
    return pdu.A_ASSOCIATE_RQ(primitive).encode()


class RawPeer:
    """A connection. `answer` reads one PDU; `kinds` of PDUs are PS3.8's numbers."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            got = self.socket.recv(size - len(data))
            if not got:
                raise EOFError("closed by the receiver")
            data += got
        return data

    def answer(self) -> tuple[int, bytes]:
        """Type of the next PDU and its bytes, header included."""
        header = self._read(6)
        return header[0], header + self._read(struct.unpack(">I", header[2:])[0])

    def closed(self) -> bool:
        """Reads to the end; True when the receiver closed."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            return True
        return True

    def associate(self, *args: object, **options: object) -> pdu.A_ASSOCIATE_AC:
        self.send(associate_request(*args, **options))
        kind, data = self.answer()
        assert kind == 2, f"not accepted: {data.hex()}"
        accepted = pdu.A_ASSOCIATE_AC()
        accepted.decode(data)
        return accepted

    def rejection(self, *args: object, **options: object) -> tuple[int, int, int]:
        """Result, source and reason of the A-ASSOCIATE-RJ that this request gets."""
        self.send(associate_request(*args, **options))
        kind, data = self.answer()
        assert kind == 3, f"not rejected: {data.hex()}"
        return data[7], data[8], data[9]

    def abort_reason(self) -> tuple[int, int]:
        """Source and reason of the A-ABORT that must come now."""
        kind, data = self.answer()
        assert kind == 7, f"not an abort: {data.hex()}"
        return data[8], data[9]

    def status(self) -> int:
        """Status of the response that must come now."""
        return self.response()[0x0900]

    def response(self) -> dict[int, int | bytes]:
        """Command elements of the next response, shorts as numbers. One PDU with one whole command."""
        kind, data = self.answer()
        assert kind == 4, f"not P-DATA: {data.hex()}"
        assert data[11] == 3, "a command in one piece"
        values: dict[int, int | bytes] = {}
        position = 12
        while position < len(data):
            _, number, length = struct.unpack_from("<HHI", data, position)
            value = data[position + 8 : position + 8 + length]
            values[number] = int.from_bytes(value, "little") if length in (2, 4) and number < 0x1000 else value
            position += 8 + length
        return values

    def store(self, data: bytes, *, sop: str = "1.2.3", context_id: int = 1, sop_class: str = CT) -> int:
        """One C-STORE; its status."""
        self.send(p_data(pdv(context_id, store_command(sop, sop_class=sop_class), command=True)))
        piece = 16000
        for start in range(0, max(len(data), 1), piece):
            last = start + piece >= len(data)
            self.send(p_data(pdv(context_id, data[start : start + piece], last=last)))
        return self.status()

    def release(self) -> None:
        self.send(struct.pack(">BxI4x", 5, 4))
        kind, _ = self.answer()
        assert kind == 6
