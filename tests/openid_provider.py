"""A small OpenID provider on loopback: discovery, keys, authorization with PKCE, RS256. It can be told to lie.

Its keys and tokens are made with cryptography alone, so that what reads them here is judged by something else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT, SECRET = "deid-review", "a client's secret"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


@dataclass
class OpenIdProvider:
    """`claims` go over those of a token, `head` over its header; `signed` False leaves the signature out."""

    issuer: str = ""
    kid: str = "first"
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))
    shown_key: rsa.RSAPrivateKey | None = None  # another one than it signs with
    sub: str = "0a1b2c"
    claims: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    head: dict[str, Any] = field(default_factory=dict)
    signed: bool = True
    groups: object = ("staff", "deid-reviewers")
    name: str = "Anna.B"
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "end_session_endpoint": f"{self.issuer}/leave",
                **self.about,
            }
        if path == "/keys":
            shown = (self.shown_key or self.key).public_key().public_numbers()
            key = {"kty": "RSA", "kid": self.kid, "use": "sig", "n": number(shown.n), "e": number(shown.e)}
            return 200, {"keys": [key]}
        if path == "/token":
            return self._token(form, authorization)
        return 404, {}

    def sign_in(self, address: str) -> str:
        """What a browser is sent back to once the person has signed in at this address."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.issuer}/authorize?")
        assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == ("code", CLIENT, "S256")
        code = f"code{len(self.codes)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.issuer})}"

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        asked = self.codes.pop(form.get("code", ""), None)
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        proof = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if (
            asked is None
            or authorization != f"Basic {basic}"
            or proof != asked["code_challenge"]
            or form.get("redirect_uri") != asked["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        access = "an access token"
        half = hashlib.sha256(access.encode()).digest()[:16]
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": self.sub,
            "iat": now,
            "exp": now + 300,
            "at_hash": b64(half),
        }
        claims |= {"nonce": asked["nonce"], "preferred_username": self.name, "groups": self.groups, **self.claims}
        claims = {name: value for name, value in claims.items() if value is not None}
        return 200, {"access_token": access, "token_type": "Bearer", "id_token": self.id_token(claims)}

    def id_token(self, claims: dict[str, Any]) -> str:
        head = {"alg": "RS256", "kid": self.kid, **self.head}
        head = {name: value for name, value in head.items() if value is not None}
        body = ".".join(b64(json.dumps(part).encode()) for part in (head, claims))
        signature = self.key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256()) if self.signed else b""
        return f"{body}.{b64(signature)}"


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
    provider = OpenIdProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if urlsplit(self.path).path == "/authorize":  # whoever comes is signed in already
                self.send_response(303)
                self.send_header("Location", provider.sign_in(f"{provider.issuer}{self.path}"))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self._send(*provider.answer(urlsplit(self.path).path, {}, ""))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._send(*provider.answer(self.path, form, self.headers.get("authorization", "")))

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
