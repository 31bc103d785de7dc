"""A socket read into one reused buffer.

TCP_NODELAY on our writes and TCP_QUICKACK after every read: a sender that leaves Nagle on and writes each C-STORE in
two pieces waits for our ACK of the first; with a delayed ACK that is 40 ms a file. Linux clears TCP_QUICKACK by itself,
so it is set again each time. Where the option does not exist the receiver works, slower.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from contextlib import suppress

from gateway.errors import GatewayError
from gateway.tls import fingerprint

BUFFER_BYTES = 256 * 1024
SLOWEST_BYTES_PER_S = 16 * 1024  # a peer that trickles slower than this for a whole PDU is as good as silent
DRAIN_S = 1.0
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
_HEADER = struct.Struct(">BxI")
_PDV = struct.Struct(">IBB")


class PeerLost(GatewayError):
    """The connection ended without a release: closed, reset, or cut by `stop`."""


class PeerSilent(GatewayError):
    """Nothing came, or too little, for the network timeout."""


class Wire:
    """One connected socket. Not thread-safe, except `cut` and `stop_reading`."""

    def __init__(self, connection: socket.socket, *, timeout_s: float) -> None:
        self._socket = connection
        self._timeout_s = timeout_s
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._deadline = float("inf")
        connection.settimeout(timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def secure(self, context: ssl.SSLContext) -> str:
        """Shake hands as a TLS server, within one timeout; the fingerprint of the peer's certificate, "" for none.

        Raises PeerLost when the peer speaks no TLS of ours, or shows no certificate that we believe.
        """
        try:
            self._socket = context.wrap_socket(self._socket, server_side=True)
            return fingerprint(self._socket.getpeercert(binary_form=True))
        except OSError:
            raise PeerLost("no TLS") from None

    def set_timeout(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        with suppress(OSError):
            self._socket.settimeout(timeout_s)

    def _fill(self) -> None:
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == BUFFER_BYTES:
            kept = self._end - self._start
            self._buffer[:kept] = self._buffer[self._start : self._end]
            self._start, self._end = 0, kept
        try:
            got = self._socket.recv_into(self._view[self._end :])
            if _QUICKACK is not None:
                self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        except TimeoutError:
            raise PeerSilent("the peer sent nothing within the network timeout") from None
        except OSError:
            raise PeerLost("the connection broke") from None
        if not got:
            raise PeerLost("the peer closed the connection")
        self._end += got
        if time.monotonic() > self._deadline:
            raise PeerSilent("the peer sends too slowly")

    def _need(self, size: int) -> int:
        while self._end - self._start < size:
            self._fill()
        start = self._start
        self._start += size
        return start

    def header(self) -> tuple[int, int]:
        """Type and length of the next PDU (PS3.8 9.3.1). From here on the whole PDU has a deadline.

        Raises PeerLost, PeerSilent: as all reads here do.
        """
        self._deadline = float("inf")
        if self._start == self._end:
            self._fill()  # between PDUs a peer may be silent for one whole timeout
        self._deadline = time.monotonic() + self._timeout_s
        kind, length = _HEADER.unpack_from(self._buffer, self._need(6))
        self._deadline += length / SLOWEST_BYTES_PER_S
        return kind, length

    def pdv_header(self) -> tuple[int, int, int]:
        """Item length, context id and message control header of a PDV (PS3.8 9.3.5.1, Annex E.2)."""
        length, context_id, control = _PDV.unpack_from(self._buffer, self._need(6))
        return length, context_id, control

    def some(self, limit: int) -> memoryview:
        """Between 1 and `limit` bytes, as they came. The view is valid until the next read."""
        if self._start == self._end:
            self._fill()
        start = self._start
        self._start = min(self._end, start + limit)
        return self._view[start : self._start]

    def exactly(self, size: int) -> bytes:
        """`size` bytes; the caller has bounded `size`."""
        parts = bytearray()
        while len(parts) < size:
            parts += self.some(size - len(parts))
        return bytes(parts)

    def send(self, data: bytes) -> None:
        """One write. Raises PeerLost or PeerSilent."""
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise PeerSilent("the peer takes nothing") from None
        except OSError:
            raise PeerLost("the connection broke") from None

    def stop_reading(self) -> None:
        """From another thread: the reader finds the connection closed, but can still write."""
        with suppress(OSError):
            _shut(self._socket, socket.SHUT_RD)

    def cut(self) -> None:
        """From another thread: end it now."""
        with suppress(OSError):
            _shut(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Say that we are done, give the peer a moment to read it (closing over unread bytes would send a reset that
        destroys our last PDU), then close. The ARTIM timer of PS3.8 9.1.5, shortened."""
        with suppress(OSError, ValueError):
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.settimeout(DRAIN_S)
                self._socket = self._socket.unwrap()  # close_notify (RFC 8446 6.1)
        with suppress(OSError):
            _shut(self._socket, socket.SHUT_WR)
            until = time.monotonic() + DRAIN_S
            while (left := until - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not self._socket.recv_into(self._view):
                    break
        self._socket.close()


def _shut(connection: socket.socket, how: int) -> None:
    """Shut the connection. An SSLSocket's own method would drop TLS with it, and go on in the clear."""
    socket.socket.shutdown(connection, how)
