"""Archives for tests, made with pynetdicom (a second implementation of the protocol) or on a bare socket."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pydicom.uid import UID
from pynetdicom import AE, evt
from pynetdicom.presentation import build_context
from pynetdicom.sop_class import Verification  # type: ignore[attr-defined]

from gateway.forward import TransportOptions
from gateway.forward.dicom import DicomTransport

Answer = Callable[[int, evt.Event], int]


@dataclass
class Archive:
    """What a scripted storage SCP saw: SOP Instance UID -> sha256 of the data set, for what it answered as stored."""

    port: int = 0
    stored: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)  # SOP Instance UIDs in order of arrival
    associations: int = 0
    released: int = 0
    aborted: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"dicom://ARCHIVE@127.0.0.1:{self.port}"

    def transport(self, **options: object) -> DicomTransport:
        return DicomTransport.at(self.url, TransportOptions(**{"timeout_s": 20.0, **options}))  # type: ignore[arg-type]


def always_stored(_number: int, _event: evt.Event) -> int:
    return 0x0000


@contextlib.contextmanager
def archive(
    contexts: Sequence[tuple[str, Sequence[str]]],
    answer: Answer = always_stored,
    *,
    ae_title: str = "ARCHIVE",
    require_calling: Sequence[str] = (),
    max_pdu_bytes: int = 16382,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Archive]:
    """A storage SCP that accepts `contexts` (SOP class, syntaxes); request n, from 0, gets `answer(n, event)`."""
    seen = Archive()

    def on_store(event: evt.Event) -> int:
        with seen.lock:
            number = len(seen.requests)
            seen.requests.append(str(event.request.AffectedSOPInstanceUID))
        status = answer(number, event)
        if status == 0 or status & 0xF000 == 0xB000:
            with seen.lock:
                digest = hashlib.sha256(event.request.DataSet.getvalue()).hexdigest()
                seen.stored[str(event.request.AffectedSOPInstanceUID)] = digest
        return status

    def counter(name: str) -> Callable[[evt.Event], None]:
        def count(_event: evt.Event) -> None:
            with seen.lock:
                setattr(seen, name, getattr(seen, name) + 1)

        return count

    entity = AE(ae_title=ae_title)
    entity.maximum_pdu_size = max_pdu_bytes
    entity.maximum_associations = 50
    entity.require_called_aet = False
    entity.require_calling_aet = list(require_calling)
    entity.supported_contexts = [build_context(UID(a), [UID(s) for s in syntaxes]) for a, syntaxes in contexts]
    entity.add_supported_context(Verification)
    server = entity.start_server(
        ("127.0.0.1", 0),
        block=False,
        ssl_context=tls,
        evt_handlers=[
            (evt.EVT_C_STORE, on_store),
            (evt.EVT_REQUESTED, counter("associations")),
            (evt.EVT_RELEASED, counter("released")),
            (evt.EVT_ABORTED, counter("aborted")),
        ],
    )
    assert server is not None
    seen.port = server.socket.getsockname()[1]
    try:
        yield seen
    finally:
        server.shutdown()


@contextlib.contextmanager
def raw_archive(talk: Callable[[socket.socket], None]) -> Iterator[Archive]:
    """A listener that runs `talk` on every connection: for what no well-behaved implementation would say."""
    seen = Archive()
    closing = threading.Event()
    threads: list[threading.Thread] = []

    def one(link: socket.socket) -> None:
        with link, contextlib.suppress(OSError):
            link.settimeout(20)
            talk(link)

    def serve() -> None:
        while not closing.is_set():
            with contextlib.suppress(TimeoutError):
                link, _ = listener.accept()
                seen.associations += 1
                threads.append(threading.Thread(target=one, args=(link,), daemon=True))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        seen.port = listener.getsockname()[1]
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        try:
            yield seen
        finally:
            closing.set()
            server.join(5)


def read_pdu(link: socket.socket) -> tuple[int, bytes]:
    """Type and body of the next PDU."""
    head = _exactly(link, 6)
    return head[0], _exactly(link, int.from_bytes(head[2:6], "big"))


def _exactly(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        got = link.recv(count - len(data))
        if not got:
            raise ConnectionError
        data += got
    return data


def accept(link: socket.socket, *, max_pdu_bytes: int = 16384) -> None:
    """Read an A-ASSOCIATE-RQ and accept all its contexts, in bytes written by hand (PS3.8 Tables 9-17, 9-18)."""
    kind, body = read_pdu(link)
    assert kind == 1

    def item(number: int, value: bytes) -> bytes:
        return bytes([number, 0]) + len(value).to_bytes(2, "big") + value

    items, at = item(0x10, b"1.2.840.10008.3.1.1.1"), 68
    while at < len(body):
        number, length = body[at], int.from_bytes(body[at + 2 : at + 4], "big")
        value = body[at + 4 : at + 4 + length]
        if number == 0x20:
            abstract = int.from_bytes(value[6:8], "big")
            syntax = value[8 + abstract :]
            items += item(0x21, bytes([value[0], 0, 0, 0]) + syntax)
        at += 4 + length
    items += item(0x50, item(0x51, max_pdu_bytes.to_bytes(4, "big")) + item(0x52, b"2.25.1"))
    answer = body[:68] + items
    link.sendall(b"\x02\0" + len(answer).to_bytes(4, "big") + answer)


def read_message(link: socket.socket) -> tuple[int, int]:
    """Read one C-STORE or C-ECHO request with its data set. Context id and message id."""
    command, context_id, more_data = b"", 0, True
    while more_data:
        kind, body = read_pdu(link)
        if kind != 4:
            raise ConnectionError
        at = 0
        while at < len(body):
            length = int.from_bytes(body[at : at + 4], "big")
            context_id, control = body[at + 4], body[at + 5]
            if control & 1:
                command += body[at + 6 : at + 4 + length]
            if control & 2 and (not control & 1 or b"\x00\x00\x00\x08\x02\x00\x00\x00\x01\x01" in command):
                more_data = False
            at += 4 + length
    where = command.index(b"\x00\x00\x10\x01\x02\x00\x00\x00") + 8
    return context_id, int.from_bytes(command[where : where + 2], "little")


def response(context_id: int, *elements: tuple[int, bytes], control: int = 3) -> bytes:
    """A P-DATA-TF PDU with a command set of group 0000 elements."""
    command = b"".join(
        b"\0\0" + number.to_bytes(2, "little") + len(value).to_bytes(4, "little") + value for number, value in elements
    )
    value = bytes([context_id, control]) + command
    body = len(value).to_bytes(4, "big") + value
    return b"\x04\0" + len(body).to_bytes(4, "big") + body
