"""The server itself: its port, its certificate, what it tells of itself, and that it ends."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
from pathlib import Path
from urllib.request import urlopen

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.responses import PlainTextResponse

from gateway.errors import EnvironmentFault
from gateway.review import ReviewServer

HELLO = PlainTextResponse("hello")


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


def test_it_answers_and_gives_its_port_back() -> None:
    server = ReviewServer("127.0.0.1", 0)
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
    server = ReviewServer("127.0.0.1", 0, certificate=public, key=private)
    server.start(HELLO)
    try:
        context = ssl.create_default_context(cafile=str(public))
        with urlopen(f"https://localhost:{server.port}/", timeout=10, context=context) as answer:
            assert answer.read() == b"hello"
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"hello" not in plain.recv(1024)
    finally:
        server.stop()


def test_a_port_that_is_taken_and_a_certificate_that_is_none_are_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = ReviewServer("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(EnvironmentFault, match="DEID_REVIEW_PORT"):
            server.bind()
    (tmp_path / "a.pem").write_text("no certificate")
    server = ReviewServer("127.0.0.1", 0, certificate=tmp_path / "a.pem", key=tmp_path / "missing.pem")
    with pytest.raises(EnvironmentFault, match="DEID_REVIEW_TLS_CERTIFICATE"):
        server.start(HELLO)
    assert server.port == 0
