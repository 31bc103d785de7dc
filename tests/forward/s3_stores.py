"""S3 stores for tests: enough of the protocol on http.server, with the faults and the gaps that a test asks for."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gateway.policy import Access
from gateway.policy.destinations import Store
from tests.forward.consignments import data_set_bytes

BUCKET = "research"
# number of the PUT from 0 -> status and body instead of storing, "cut" to end the connection, None to store
Fault = Callable[[int], tuple[int, bytes] | str | None]


@dataclass
class S3Store:
    """What is in it, by key, and what it was asked."""

    port: int = 0
    scheme: str = "http"
    objects: dict[str, bytes] = field(default_factory=dict)
    encrypted: dict[str, str] = field(default_factory=dict)  # key -> how
    puts: list[str] = field(default_factory=list)
    asked: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def access(self, **more: str) -> Access:
        return Access(store=Store(endpoint=f"{self.scheme}://127.0.0.1:{self.port}", **more))

    def stored(self) -> dict[str, str]:
        """SOP Instance UID -> sha256 of the data set."""
        names = {key.rpartition("/")[2].removesuffix(".dcm"): body for key, body in self.objects.items()}
        return {uid: hashlib.sha256(data_set_bytes(body)).hexdigest() for uid, body in names.items()}


@contextlib.contextmanager
def s3_store(
    fault: Fault = lambda _number: None,
    *,
    checksums: bool = True,
    conditions: bool = True,
    encrypts: bool = True,
    spoils: bool = False,
    looks: int = 0,
    tls: ssl.SSLContext | None = None,
) -> Iterator[S3Store]:
    """`checksums`: it computes and tells them; `conditions`: it heeds If-None-Match; `encrypts`: it does as asked;
    `spoils`: it keeps other bytes than it took; `looks`: the status of every HEAD, 0 for what is right.
    """
    seen = S3Store(scheme="https" if tls else "http")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._note()
            if looks:
                self._reply(looks)
            elif self.path == f"/{BUCKET}":
                self._reply(200)
            elif self.path in seen.objects:
                self._reply(200, headers=self._told())
            else:
                self._reply(404)

        def do_GET(self) -> None:
            self._note()
            self._reply(200 if self.path in seen.objects else 404, seen.objects.get(self.path, b""))

        def do_PUT(self) -> None:
            self._note()
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if len(body) < int(self.headers["Content-Length"]):
                self.close_connection = True
                return
            with seen.lock:
                number = len(seen.puts)
                seen.puts.append(self.path)
            answer = fault(number)
            if answer == "cut":
                self.close_connection = True
                self.connection.close()
            elif isinstance(answer, tuple):
                self._reply(*answer)
            elif hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
                self._reply(400, b"<Error><Code>XAmzContentSHA256Mismatch</Code></Error>")
            elif conditions and self.headers["If-None-Match"] == "*" and self.path in seen.objects:
                self._reply(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            else:
                seen.objects[self.path] = body[:-1] + b"?" if spoils else body
                asked = self.headers["x-amz-server-side-encryption"]
                seen.encrypted |= {self.path: asked} if asked and encrypts else {}
                self._reply(200, headers=self._told())

        def _note(self) -> None:
            with seen.lock:
                seen.asked.append((self.command, self.path, dict(self.headers)))

        def _told(self) -> dict[str, str]:
            """Of the object that is here."""
            digest = base64.b64encode(hashlib.sha256(seen.objects[self.path]).digest()).decode()
            how = seen.encrypted.get(self.path)
            return {
                **({"x-amz-checksum-sha256": digest} if checksums else {}),
                **({"x-amz-server-side-encryption": how} if how else {}),
            }

        def _reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    seen.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
