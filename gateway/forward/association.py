"""One outgoing association: connect, negotiate, store and echo, release (PS3.8).

A blocking socket, no background thread, a timeout at every wait. pynetdicom's own reactor is not used: it polls every
millisecond and copies each data set several times (370 files/s, DCMTK's storescu 720, on the same files), and its
chunked sender hung under load (performance.md).
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gateway.errors import EnvironmentFault, Retry
from gateway.forward import dimse, pdus
from gateway.forward.pdus import Context
from gateway.policy import Access
from gateway.tls import client_context

RELEASE_S = 5.0
_MAX_REPLY_BYTES = 1 << 20
_MIN_PIECE_BYTES = 128
_GATHER_BYTES, _GATHER_BUFFERS = 1 << 20, 512  # for one sendmsg; IOV_MAX is 1024
_QUICKACK = getattr(socket, "TCP_QUICKACK", None)  # Linux


@dataclass(frozen=True, slots=True)
class Peer:
    """An archive; `tls`: spoken to over TLS, with what it takes to be let in."""

    host: str
    port: int
    ae_title: str
    tls: Access | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Association:
    """An established association. Use `associate`. Every method raises Retry when the connection is lost:
    archive_unreachable after a silence of `timeout_s`, archive_aborted otherwise."""

    def __init__(self, link: socket.socket, peer: Peer, max_pdu_bytes: int) -> None:
        self._link = link
        self._peer = peer
        self._max_pdu_bytes = max_pdu_bytes
        self._piece_bytes = 0
        self._message_id = 0
        self.accepted: dict[Context, int] = {}  # context -> its id
        self.results: dict[Context, int] = {}  # context -> result (PS3.8 Table 9-18), 0 = accepted

    def negotiate(self, contexts: Sequence[Context], calling: str) -> None:
        """Offer the contexts. Raises Retry archive_rejects_us, or archive_busy when it is congested."""
        self._write([pdus.associate_request(contexts, calling, self._peer.ae_title, self._max_pdu_bytes)])
        kind, pdu = self._read_pdu()
        try:
            if kind == pdus.ASSOCIATE_RJ:
                raise _rejection(self._peer, *pdus.read_rejection(pdu))
            if kind != pdus.ASSOCIATE_AC:
                raise self._lost("no answer to A-ASSOCIATE")
            answer = pdus.read_accept(pdu, contexts)
        except ValueError:
            raise self._lost("malformed answer to A-ASSOCIATE") from None
        self.accepted, self.results = answer.ids, answer.results
        # A fragment is even and leaves 6 bytes for its own head (PS3.8 9.3.5, E.1).
        self._piece_bytes = (min(answer.max_pdu_bytes or self._max_pdu_bytes, self._max_pdu_bytes) - 6) & ~1
        if self._piece_bytes < _MIN_PIECE_BYTES:
            raise self._lost("its maximum PDU length")

    @property
    def piece_bytes(self) -> int:
        """How many bytes of a data set fit in one PDU."""
        return self._piece_bytes

    def store(
        self,
        context: Context,
        sop_instance_uid: str,
        pieces: Iterable[bytes | memoryview],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> int:
        """Send one data set, in pieces of at most `piece_bytes`, do `meanwhile`, and wait for the archive's status."""
        message_id = self._next_message_id()
        request = dimse.store_request(message_id, context.sop_class_uid, sop_instance_uid)
        context_id = self.accepted[context]
        self._write(pdus.fragments(context_id, request, pieces, self._piece_bytes))
        meanwhile()
        return self._read_status(context_id, message_id, dimse.STORE_RESPONSE)

    def echo(self, context: Context) -> int:
        """C-ECHO; the status."""
        message_id = self._next_message_id()
        context_id = self.accepted[context]
        self._write(pdus.fragments(context_id, dimse.echo_request(message_id), (), self._piece_bytes))
        return self._read_status(context_id, message_id, dimse.ECHO_RESPONSE)

    def _next_message_id(self) -> int:
        self._message_id = self._message_id % 0xFFFF + 1
        return self._message_id

    def _read_status(self, context_id: int, message_id: int, expected: int) -> int:
        answer = self._read_response(context_id)
        if answer.field != expected or answer.message_id != message_id or answer.has_data_set or answer.status is None:
            raise self._lost("an answer to something else")
        return answer.status

    def _read_response(self, context_id: int) -> dimse.Response:
        command = bytearray()
        while True:
            kind, body = self._read_pdu()
            if kind != pdus.P_DATA:
                if kind == pdus.RELEASE_RQ:  # it may ask at any time; what is under way is lost
                    self._write([pdus.RELEASE_REPLY])
                raise self._lost(
                    "A-RELEASE-RQ" if kind == pdus.RELEASE_RQ else "A-ABORT" if kind == pdus.ABORT else "protocol"
                )
            try:
                for control, fragment in pdus.response_values(body, context_id):
                    command += fragment
                    if control & pdus.LAST:
                        return dimse.read_response(bytes(command))
            except ValueError:
                raise self._lost("malformed response") from None
            if len(command) > _MAX_REPLY_BYTES:
                raise self._lost("endless response")

    def release(self) -> None:
        """End in order. Everything is answered by now, so a peer that does not answer this is let go in silence."""
        with contextlib.suppress(Retry, OSError):
            self._link.settimeout(min(RELEASE_S, self._link.gettimeout() or RELEASE_S))
            self._write([pdus.RELEASE_REQUEST])
            self._read_pdu()

    def abort(self) -> None:
        """A-ABORT by the service user, without waiting."""
        with contextlib.suppress(OSError):
            self._link.settimeout(0)
            self._link.send(pdus.ABORT_BY_USER)

    def _lost(self, how: str) -> Retry:
        return Retry("archive_aborted", at=f"{self._peer} ({how})")

    def _silent(self) -> Retry:
        return Retry("archive_unreachable", at=f"{self._peer} (silent)")

    def _write(self, buffers: Iterable[bytes | memoryview]) -> None:
        """Send all buffers, gathered into few system calls."""
        try:
            for group in _gathered(buffers):
                if isinstance(self._link, ssl.SSLSocket):  # it has no sendmsg
                    self._link.sendall(b"".join(group))
                    continue
                while group:
                    sent = self._link.sendmsg(group)
                    while group and sent >= len(group[0]):
                        sent -= len(group.pop(0))
                    if sent:
                        group[0] = memoryview(group[0])[sent:]
        except TimeoutError:
            raise self._silent() from None
        except OSError:
            raise self._lost("connection closed") from None

    def _read_pdu(self) -> tuple[int, bytes]:
        """Type and whole bytes of the next PDU."""
        head = self._read(6)
        length = int.from_bytes(head[2:6], "big")
        if length > _MAX_REPLY_BYTES:
            raise self._lost("protocol")
        return head[0], head + self._read(length)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        try:
            while len(data) < count:
                if _QUICKACK is not None:
                    # DCMTK answers in two writes with Nagle on: unless the first is acknowledged at once, the second
                    # comes 40 ms later. The kernel forgets this option, so it is set before every read.
                    self._link.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
                got = self._link.recv(count - len(data))
                if not got:
                    raise self._lost("connection closed")
                data += got
        except TimeoutError:
            raise self._silent() from None
        except OSError:
            raise self._lost("connection closed") from None
        return bytes(data)


@contextlib.contextmanager
def associate(
    peer: Peer, contexts: Sequence[Context], *, calling: str, timeout_s: float, max_pdu_bytes: int
) -> Iterator[Association]:
    """An association over at most 128 contexts, released at the end and aborted on any error.

    Raises Retry: archive_unreachable (no connection, or silence), archive_untrusted, archive_access,
    archive_rejects_us, archive_busy, archive_aborted.
    """
    with _connected(peer, timeout_s) as link:
        association = Association(link, peer, max_pdu_bytes)
        try:
            association.negotiate(contexts, calling)
            yield association
        except BaseException:
            association.abort()
            raise
        association.release()


def _connected(peer: Peer, timeout_s: float) -> socket.socket:
    try:
        link = socket.create_connection((peer.host, peer.port), timeout=timeout_s)
    except OSError:
        raise Retry("archive_unreachable", at=str(peer)) from None
    with contextlib.ExitStack() as stack:
        stack.enter_context(link)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        secure = link if peer.tls is None else _secured(link, peer, peer.tls)
        stack.pop_all()
        return secure


def _secured(link: socket.socket, peer: Peer, access: Access) -> socket.socket:
    """The connection after a handshake with an archive that we believe."""
    try:
        return client_context(access.tls).wrap_socket(link, server_hostname=access.server_name or peer.host)
    except EnvironmentFault as error:
        raise Retry("archive_access", at=f"{peer} ({error})") from None
    except ssl.SSLCertVerificationError as error:
        raise Retry("archive_untrusted", at=f"{peer} (certificate: {error.verify_message})") from None
    except OSError:
        raise Retry("archive_unreachable", at=f"{peer} (no TLS)") from None


def _rejection(peer: Peer, result: int, source: int, reason: int) -> Retry:
    """A-ASSOCIATE-RJ as one of our reasons: congestion passes (source 3), the rest is for an administrator."""
    busy = source == 3 and reason in (1, 2)
    at = f"{peer} (result {result}, source {source}, reason {reason})"
    return Retry("archive_busy" if busy else "archive_rejects_us", at=at)


def _gathered(buffers: Iterable[bytes | memoryview]) -> Iterator[list[bytes | memoryview]]:
    """Runs of buffers for one system call each: bounded in bytes, so that a streamed file is never whole in memory."""
    group: list[bytes | memoryview] = []
    size = 0
    for buffer in buffers:
        group.append(buffer)
        size += len(buffer)
        if size >= _GATHER_BYTES or len(group) >= _GATHER_BUFFERS:
            yield group
            group, size = [], 0
    if group:
        yield group
