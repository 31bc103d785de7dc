"""Web archives for tests: a STOW-RS server on http.server, with or without TLS, whose answers a test scripts."""

from __future__ import annotations

import contextlib
import email.parser
import email.policy
import hashlib
import io
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pydicom

from tests.forward.consignments import data_set_bytes

Reply = tuple[int, bytes]
Answer = Callable[
    [int, str], Reply | None
]  # number of the request from 0, SOP Instance UID; None closes the connection


def entry(uid: str, **reason: int) -> dict[str, Any]:
    """One item of a response's sequence (PS3.18 I.2)."""
    tags = {"failure": "00081197", "warning": "00081196"}
    reasons = {tags[name]: {"vr": "US", "Value": [code]} for name, code in reason.items()}
    return {"00081155": {"vr": "UI", "Value": [uid]}, **reasons}


def stored(uid: str, **reason: int) -> bytes:
    return json.dumps({"00081199": {"vr": "SQ", "Value": [entry(uid, **reason)]}}).encode()


def failed(uid: str, code: int) -> bytes:
    return json.dumps({"00081198": {"vr": "SQ", "Value": [entry(uid, failure=code)]}}).encode()


def always_stored(_number: int, uid: str) -> Reply:
    return 200, stored(uid)


@dataclass
class WebArchive:
    """What it saw: SOP Instance UID -> sha256 of the data set, for what it answered as stored (200)."""

    port: int = 0
    scheme: str = "http"
    stored: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/dicom-web"


@contextlib.contextmanager
def web_archive(
    answer: Answer = always_stored, *, tls: ssl.SSLContext | None = None, probe_status: int = 200
) -> Iterator[WebArchive]:
    seen = WebArchive(scheme="https" if tls else "http")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with seen.lock:
                seen.headers.append(dict(self.headers))
            self._reply(probe_status, b"[]")

        def do_POST(self) -> None:
            assert self.path == "/dicom-web/studies"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if len(body) < int(self.headers["Content-Length"]):
                self.close_connection = True
                return
            head = f"MIME-Version: 1.0\r\nContent-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
            message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
            (part,) = message.iter_parts()  # type: ignore[attr-defined]
            assert part.get_content_type() == "application/dicom"
            file = part.get_payload(decode=True)
            uid = str(pydicom.dcmread(io.BytesIO(file)).SOPInstanceUID)
            with seen.lock:
                number = len(seen.requests)
                seen.requests.append(uid)
                seen.headers.append(dict(self.headers))
            reply = answer(number, uid)
            if reply is None:
                self.close_connection = True
                return
            if reply[0] == 200:
                with seen.lock:
                    seen.stored[uid] = hashlib.sha256(data_set_bytes(file)).hexdigest()
            self._reply(*reply)

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Type", "application/dicom+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # a client that breaks off a handshake

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    seen.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
