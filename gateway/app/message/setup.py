"""From settings to channels: whatever would keep a message from arriving, or let it travel in the clear, is refused
before the gateway starts.
"""

from __future__ import annotations

import ipaddress
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from gateway.app.message.channels import Channel, Mail, Webhook
from gateway.app.message.notices import EVENTS
from gateway.errors import EnvironmentFault, UsageError
from gateway.settings import Settings
from gateway.tls import TlsFiles, client_context

LEAST_KEY = 32


def channels_of(settings: Settings) -> list[Channel]:
    """Every channel that the settings name. Raises UsageError for settings under which a message would not arrive, or
    would travel in the clear.
    """
    unknown = sorted(set(settings.notify_events) - EVENTS.keys())
    if unknown:
        raise UsageError(f"DEID_NOTIFY_EVENTS: there is no event {', '.join(unknown)}; `deid-gateway notify events`")
    tls = TlsFiles(ca_file=settings.notify_ca)
    try:
        client_context(tls)
    except EnvironmentFault as error:
        raise UsageError(f"DEID_NOTIFY_CA: {error}") from error
    page = f"{settings.review_url.rstrip('/')}/queue" if settings.review_url else ""
    return [one for one in (_webhook(settings, tls, page), _mail(settings, tls, page)) if one is not None]


def _webhook(settings: Settings, tls: TlsFiles, page: str) -> Channel | None:
    url, key = (
        value.get_secret_value() if value is not None else ""
        for value in (settings.notify_webhook_url, settings.notify_webhook_key)
    )
    if not url and not key:
        return None
    parts = _split(url)
    if parts is None or parts.scheme not in ("https", "http") or not parts.hostname or parts.username:
        raise UsageError("DEID_NOTIFY_WEBHOOK_URL is an address such as https://alerts.hospital.example/deid")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise UsageError("DEID_NOTIFY_WEBHOOK_URL must begin with https://: messages do not travel in the clear")
    if len(key) < LEAST_KEY:
        raise UsageError(
            f"DEID_NOTIFY_WEBHOOK_KEY needs {LEAST_KEY} characters and more; openssl rand -hex 32 makes one"
        )
    return Webhook(url, key.encode(), tls, page)


def _mail(settings: Settings, tls: TlsFiles, page: str) -> Channel | None:
    password = settings.notify_mail_password.get_secret_value() if settings.notify_mail_password is not None else ""
    said = (
        settings.notify_mail_url,
        settings.notify_mail_from,
        settings.notify_mail_to,
        settings.notify_mail_user,
        password,
    )
    if not any(said):
        return None
    parts = _split(settings.notify_mail_url)
    ports = {"smtp": 587, "smtps": 465}
    if parts is None or parts.scheme not in ports or not parts.hostname or parts.username or parts.path.strip("/"):
        raise UsageError(
            "DEID_NOTIFY_MAIL_URL is smtp://host:587 or smtps://host:465; the account has settings of its own"
        )
    if not settings.notify_mail_to or not all(map(_is_address, (settings.notify_mail_from, *settings.notify_mail_to))):
        raise UsageError(
            "DEID_NOTIFY_MAIL_FROM is one address, DEID_NOTIFY_MAIL_TO one or more, such as dpo@hospital.example"
        )
    if bool(settings.notify_mail_user) is not bool(password):
        raise UsageError("DEID_NOTIFY_MAIL_USER and DEID_NOTIFY_MAIL_PASSWORD go together")
    return Mail(
        parts.hostname,
        parts.port or ports[parts.scheme],
        parts.scheme == "smtps",
        settings.notify_mail_user,
        password,
        settings.notify_mail_from,
        settings.notify_mail_to,
        tls,
        page,
    )


def _split(url: str) -> Any:
    """None for what is no address."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        return None
    return parts if url.isascii() and url.isprintable() and " " not in url else None


def _is_address(text: str) -> bool:
    name, address = parseaddr(text)
    user, at, host = address.partition("@")
    return not name and address == text and bool(user and at and host) and text.isascii() and text.isprintable()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"
