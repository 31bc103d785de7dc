"""How messages leave: a signed POST to a webhook, or mail by STARTTLS. Each says in a few words why it failed.

An address or an answer of a server may hold a secret: words for people and for the log name the kind of failure alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import smtplib
import socket
import ssl
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, formataddr
from http.client import HTTPException
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from gateway.app.message.notices import Notice, lines_of, subject_of
from gateway.tls import TlsFiles, client_context

TIMEOUT_S = 15.0
SIGNATURE, IDENTITY = "X-Deid-Signature", "X-Deid-Message"


class NotSent(Exception):
    """`says` is for people and logs: a kind of failure, nothing of an address or an answer."""

    def __init__(self, says: str) -> None:
        super().__init__(says)
        self.says = says


@dataclass(frozen=True, slots=True)
class Message:
    """Notices that go together. `id` is the same on every try, so that a receiver can tell a repetition."""

    id: str
    at: float
    notices: tuple[Notice, ...]

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "at": self.at, "notices": [notice.as_json() for notice in self.notices]}

    @classmethod
    def of_json(cls, body: dict[str, Any]) -> Message:
        """Raises KeyError or TypeError for another shape."""
        return cls(str(body["id"]), float(body["at"]), tuple(map(Notice.of_json, body["notices"])))


class Channel(Protocol):
    """One way to reach people."""

    @property
    def name(self) -> str: ...

    def send(self, message: Message) -> str:
        """What the other side said, in a word. Raises NotSent, EnvironmentFault for files of ours."""


class _NoRedirect(HTTPRedirectHandler):
    """What is signed for one address goes to no other one."""

    def redirect_request(self, *_given: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Webhook:
    """POST of JSON. The header X-Deid-Signature is t=TIME,v1=HMAC-SHA256(key, TIME + "." + body) in hex."""

    url: str = field(repr=False)
    key: bytes = field(repr=False)
    tls: TlsFiles
    page: str
    name: str = "webhook"

    def send(self, message: Message) -> str:
        words = {
            "subject": subject_of(message.notices),
            "text": "\n".join(lines_of(message.notices)),
            "page": self.page,
        }
        body = json.dumps({**message.as_json(), **words}, ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "deid-gateway",
            IDENTITY: message.id,
            SIGNATURE: signature(self.key, body, int(time.time())),
        }
        handlers = [ProxyHandler(), _NoRedirect(), HTTPSHandler(context=client_context(self.tls))]
        try:
            with build_opener(*handlers).open(Request(self.url, body, headers), timeout=TIMEOUT_S) as answer:  # noqa: S310
                return f"answered {answer.status}"
        except HTTPError as error:
            error.close()
            raise NotSent(f"answered {error.code}") from None
        except URLError as error:
            raise NotSent(why(error.reason)) from None
        except (OSError, HTTPException) as error:
            raise NotSent(why(error)) from None


def signature(key: bytes, body: bytes, at: int) -> str:
    """The header that a receiver checks; it refuses old times, so that nobody plays a message again."""
    mac = hmac.new(key, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"


@dataclass(frozen=True, slots=True)
class Mail:
    """Plain text by SMTP. Without `tls_first` the server must offer STARTTLS: nothing is said before it."""

    host: str
    port: int
    tls_first: bool
    user: str
    password: str = field(repr=False)
    sender: str
    receivers: tuple[str, ...]
    tls: TlsFiles
    page: str
    name: str = "mail"

    def send(self, message: Message) -> str:
        try:
            with self._connected() as server:
                if self.user:
                    server.login(self.user, self.password)
                refused = server.send_message(self._letter(message), self.sender, list(self.receivers))
        except smtplib.SMTPNotSupportedError:
            raise NotSent("the mail server offers no STARTTLS, or no way to sign in") from None
        except smtplib.SMTPAuthenticationError as error:
            raise NotSent(f"the mail server does not take the account ({error.smtp_code})") from None
        except smtplib.SMTPRecipientsRefused:
            raise NotSent("the mail server takes none of the receivers") from None
        except smtplib.SMTPResponseException as error:
            raise NotSent(f"the mail server answered {error.smtp_code}") from None
        except (smtplib.SMTPException, OSError) as error:
            raise NotSent(why(error)) from None
        if refused:  # whoever was taken has it: sending again would tell them twice
            return f"taken for {len(self.receivers) - len(refused)} of {len(self.receivers)} receivers"
        return "taken"

    def _connected(self) -> smtplib.SMTP:
        context = client_context(self.tls)
        if self.tls_first:
            return smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=context)
        server = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
        return server

    def _letter(self, message: Message) -> EmailMessage:
        letter = EmailMessage()
        letter["Subject"] = f"[deid-gateway] {subject_of(message.notices)}"
        letter["From"] = formataddr(("De-identification gateway", self.sender))
        letter["To"] = ", ".join(self.receivers)
        letter["Date"] = format_datetime(datetime.fromtimestamp(message.at, UTC))
        letter["Message-ID"] = f"<{message.id}@{self.sender.rpartition('@')[2]}>"
        letter["Auto-Submitted"] = "auto-generated"
        page = f"\nHeld studies and releases: {self.page}\n" if self.page else ""
        body = "\n".join(f"- {line}" for line in lines_of(message.notices))
        letter.set_content(f"{body}\n{page}\nThis message names no patient and no study.\n")
        return letter


def why(error: object) -> str:
    """A kind of failure in words; never its text, which may quote an address or an answer."""
    match error:
        case ssl.SSLCertVerificationError():
            return "its certificate is not trusted; see DEID_NOTIFY_CA"
        case ssl.SSLError():
            return "TLS failed"
        case TimeoutError():
            return "no answer in time"
        case socket.gaierror():
            return "its name is not known"
        case ConnectionRefusedError():
            return "the connection was refused"
        case smtplib.SMTPServerDisconnected() | ConnectionError():
            return "the connection was lost"
    return f"failed ({type(error).__name__})"
