"""A webhook and a mail server on loopback, with TLS by an authority of their own, that fail as they are told."""

from __future__ import annotations

import contextlib
import datetime as dt
import email
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """A certificate that signs itself, for 127.0.0.1, and its key."""

    certificate: Path
    key: Path

    def server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


def authority(folder: Path) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=2))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "authority.pem", folder / "authority.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    private.chmod(0o600)
    return Authority(certificate, private)


@dataclass
class Hook:
    """Requests that came, as (headers, body); `answers` are the next statuses, then 204."""

    url: str = ""
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)


@contextlib.contextmanager
def webhook(signed: Authority) -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.came.append((dict(self.headers), body))
            status = hook.answers.pop(0) if hook.answers else 204
            self.send_response(status)
            if status in (301, 307):
                self.send_header("Location", hook.url + "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_given: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.socket = signed.server().wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hook.url = f"https://127.0.0.1:{server.server_address[1]}/deid"
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


@dataclass
class Post:
    """Letters that came, who they were for, and whether each came by TLS. `refuse` is a status for the next one."""

    port: int = 0
    letters: list[EmailMessage] = field(default_factory=list)
    receivers: list[list[str]] = field(default_factory=list)
    by_tls: list[bool] = field(default_factory=list)
    refuse: list[str] = field(default_factory=list)


@contextlib.contextmanager
def mail_server(signed: Authority | None, account: tuple[str, str] | None = None) -> Iterator[Post]:
    """Without an authority it offers no STARTTLS."""
    post = Post()

    class Handler:
        async def handle_DATA(self, _server: SMTP, session: Any, envelope: Any) -> str:
            if post.refuse:
                return post.refuse.pop(0)
            message = email.message_from_bytes(envelope.content, policy=default)
            assert isinstance(message, EmailMessage)
            post.letters.append(message)
            post.receivers.append(envelope.rcpt_tos)
            post.by_tls.append(session.ssl is not None)
            return "250 OK"

    def authenticated(_server: SMTP, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        return AuthResult(success=account == (data.login.decode(), data.password.decode()), handled=False)

    more: dict[str, Any] = {}
    if signed is not None:
        more = {"tls_context": signed.server(), "require_starttls": True}
    if account is not None:
        more |= {"authenticator": authenticated, "auth_required": True}
    controller = Controller(Handler(), hostname="127.0.0.1", port=0, **more)
    controller.port = _free()
    controller.start()
    post.port = controller.port
    try:
        yield post
    finally:
        controller.stop()


def _free() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
