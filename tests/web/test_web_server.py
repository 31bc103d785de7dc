"""The server itself: its port, its certificate, what it tells of itself, and that it ends."""

from __future__ import annotations

import io
import json
import logging
import socket
import ssl
import sys
import threading
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gateway.errors import EnvironmentFault
from gateway.observe import start_logging
from gateway.tls import TlsFiles, fingerprint
from gateway.web import WebServer
from tests.certificates import Authority

HELLO = PlainTextResponse("hello")


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost, and its key; the authority's is `folder`/test-authority.pem."""
    pair = Authority(folder).issue("localhost", "localhost")
    return pair.certificate, pair.key


def made(port: int, certificate_file: Path | None = None, key_file: Path | None = None) -> WebServer:
    tls = TlsFiles(certificate_file=certificate_file, key_file=key_file)
    return WebServer("127.0.0.1", port, "the review page", "REVIEW", tls)


def test_it_answers_and_gives_its_port_back() -> None:
    server = made(0)
    server.start(HELLO)
    port = server.port
    with urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        assert answer.read() == b"hello"
        assert "server" not in answer.headers
    server.stop()
    assert not server.alive
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_with_a_certificate_it_speaks_tls_and_nothing_else(tmp_path: Path) -> None:
    public, private = certificate(tmp_path)
    server = made(0, public, private)
    server.start(HELLO)
    try:
        context = ssl.create_default_context(cafile=tmp_path / "test-authority.pem")
        with urlopen(f"https://localhost:{server.port}/", timeout=10, context=context) as answer:
            assert answer.read() == b"hello"
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"hello" not in plain.recv(1024)
    finally:
        server.stop()


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """Who has it reads every picture and password on the wire. Kubernetes mounts secrets 0440 to the pod's group."""
    public, private = certificate(tmp_path)
    for mode in (0o644, 0o604, 0o660, 0o610):
        private.chmod(mode)
        server = made(0, public, private)
        with pytest.raises(EnvironmentFault, match=f"open to others .mode {mode:04o}"):
            server.start(HELLO)
        assert server.port == 0
    for mode in (0o400, 0o600, 0o440, 0o640):
        private.chmod(mode)
        server = made(0, public, private)
        server.start(HELLO)
        server.stop()


def test_no_address_and_no_text_of_an_error_is_logged_or_told() -> None:
    """Addresses hold what somebody typed; texts of exceptions quote values."""

    async def breaks(_request: Request) -> Response:
        raise ValueError("ZZSYNTH^LEAKTEST")

    written = io.StringIO()
    root, hooks = logging.getLogger(), (sys.excepthook, threading.excepthook, logging.raiseExceptions)
    before = root.handlers[:], root.level
    start_logging(written)
    server = made(0)
    try:
        server.start(Starlette(routes=[Route("/breaks", breaks)]))
        for where in ("/breaks?name=ZZSYNTH", "/ZZSYNTH"):
            with pytest.raises(HTTPError) as told:
                urlopen(f"http://127.0.0.1:{server.port}{where}", timeout=10)
            assert b"ZZSYNTH" not in told.value.read()
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as strange:
            strange.sendall(b"ZZSYNTH /x\r\n\r\n")
            assert b"ZZSYNTH" not in strange.recv(1024)
    finally:
        server.stop()
        root.handlers[:], root.level = before[0], before[1]
        sys.excepthook, threading.excepthook, logging.raiseExceptions = hooks
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [line["exception"] for line in lines if "exception" in line] == ["ValueError"]
    assert "ZZSYNTH" not in written.getvalue()
    assert "breaks" not in written.getvalue()


def test_a_port_that_is_taken_and_a_certificate_that_is_none_are_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = made(taken.getsockname()[1])
        with pytest.raises(EnvironmentFault, match="DEID_REVIEW_PORT"):
            server.bind()
    (tmp_path / "a.pem").write_text("no certificate")
    server = made(0, tmp_path / "a.pem", tmp_path / "missing.pem")
    with pytest.raises(EnvironmentFault, match="DEID_REVIEW_TLS_CERTIFICATE"):
        server.start(HELLO)
    assert server.port == 0


def test_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first = authority.issue("localhost", "localhost")
    was = fingerprint(first.der)
    server = made(0, first.certificate, first.key)
    server.start(HELLO)
    try:
        assert shown(server.port, authority.file) == was
        renewed = authority.issue("renewed", "localhost")
        renewed.key.replace(first.key)
        with pytest.raises(ssl.SSLError):  # half of it is there: better nothing than the wrong one
            shown(server.port, authority.file)
        renewed.certificate.replace(first.certificate)
        assert shown(server.port, authority.file) == fingerprint(first.der) != was
        assert server.alive
    finally:
        server.stop()


def shown(port: int, ca_file: Path) -> str:
    context = ssl.create_default_context(cafile=ca_file)
    link = socket.create_connection(("127.0.0.1", port), timeout=10)
    with link, context.wrap_socket(link, server_hostname="localhost") as secure:
        return fingerprint(secure.getpeercert(binary_form=True))
