"""The review page wired to a gateway: its desk, its accounts, its address. Loopback unless TLS is told of."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from gateway.app.parts import Parts
from gateway.app.review.desk import ReviewDesk
from gateway.errors import UsageError
from gateway.review import Accounts, Doors, ReviewPages, Role
from gateway.review.asking import require_issuer
from gateway.review.known_people import KnownPeople
from gateway.review.provider import Provider, Registration
from gateway.review.tokens import Tokens
from gateway.settings import Home, Settings
from gateway.tls import TlsFiles
from gateway.web import WebServer

DEFAULT_PORT = 8081
FOLDER, ACCOUNTS, TOKENS, PEOPLE = "review", "accounts.json", "tokens.json", "people.json"


def accounts_of(home: Home) -> Accounts:
    """The accounts of a home."""
    return Accounts(home.root / FOLDER / ACCOUNTS)


def tokens_of(home: Home) -> Tokens:
    """The tokens of a home's API."""
    return Tokens(home.root / FOLDER / TOKENS)


def people_of(home: Home) -> KnownPeople:
    """Whom the sign-in provider of a home vouched for."""
    return KnownPeople(home.root / FOLDER / PEOPLE)


def provider_of(values: Settings) -> Provider | None:
    """By the settings; None where people sign in by local accounts alone. Raises UsageError. Nobody is asked yet."""
    if not values.review_oidc_issuer:
        return None
    require_issuer(values.review_oidc_issuer)
    pairs = [pair.partition("=")[::2] for pair in values.review_oidc_roles]
    unknown = sorted({role for role, _ in pairs} - set(Role))
    if unknown or len({value for _, value in pairs}) < len(pairs):
        raise UsageError(f"DEID_REVIEW_OIDC_ROLES: each value gives one role; one of {', '.join(Role)}")
    registration = Registration(
        issuer=values.review_oidc_issuer,
        client_id=values.review_oidc_client_id,
        roles={value: Role(role) for role, value in pairs},
        secret_file=values.review_oidc_secret_file,
        ca_file=values.review_oidc_ca,
        name_claim=values.review_oidc_name_claim,
        role_claim=values.review_oidc_role_claim,
    )
    registration.secret()
    return Provider(registration)


def doors_of(home: Home, values: Settings) -> Doors:
    """By what people and programs get in. Raises UsageError, and EnvironmentFault for files that cannot be read."""
    doors = Doors(accounts_of(home), tokens_of(home), people_of(home), provider_of(values))
    for file in (doors.accounts, doors.tokens, doors.people):
        file.all()
    return doors


class ReviewPage:
    """One page over one gateway. Raises UsageError for settings under which passwords would travel in the clear."""

    def __init__(self, parts: Parts) -> None:
        values = parts.settings
        require_private(values)
        self._values = values
        self._home, self._accounts = parts.home, accounts_of(parts.home)
        provider_of(values)
        self._desk = ReviewDesk(parts)
        port = DEFAULT_PORT if values.review_port is None else values.review_port
        tls = TlsFiles(certificate_file=values.review_tls_certificate, key_file=values.review_tls_key)
        self._server = WebServer(values.review_host, port, "the review page", "REVIEW", tls)

    @property
    def url(self) -> str:
        """Where a person finds it; "" before the start."""
        return next(iter(origins(self._values, self._server.port))) if self._server.port else ""

    @property
    def alive(self) -> bool:
        return self._server.alive

    @property
    def has_accounts(self) -> bool:
        """False when nobody could sign in."""
        return bool(self._accounts.all() or self._values.review_oidc_issuer)

    def start(self) -> None:
        """Raises EnvironmentFault when the port is taken, or for accounts, tokens and people that cannot be read."""
        doors = doors_of(self._home, self._values)
        self._server.bind()
        self._server.start(ReviewPages(self._desk, doors, origins(self._values, self._server.port)).app)

    def stop(self) -> None:
        self._server.stop()
        self._desk.close()


def require_private(values: Settings) -> None:
    """Raise UsageError unless what is typed into the page stays on this machine or travels by TLS."""
    if (values.review_tls_certificate is None) is not (values.review_tls_key is None):
        raise UsageError("DEID_REVIEW_TLS_CERTIFICATE and DEID_REVIEW_TLS_KEY go together")
    url = urlsplit(values.review_url)
    if values.review_url and (
        url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/") or url.query or url.username
    ):
        raise UsageError("DEID_REVIEW_URL is scheme, host and port alone, such as https://deid.hospital.example")
    if values.review_url and url.scheme == "http" and not _is_loopback(url.hostname or ""):
        raise UsageError("DEID_REVIEW_URL must begin with https://: passwords do not travel in the clear")
    safe = values.review_tls_certificate is not None or url.scheme == "https"
    if not (safe or _is_loopback(values.review_host)):
        raise UsageError(
            f"the review page would answer on {values.review_host} without TLS; set DEID_REVIEW_TLS_CERTIFICATE and "
            "DEID_REVIEW_TLS_KEY, or DEID_REVIEW_URL=https://… behind a proxy that speaks TLS"
        )


def origins(values: Settings, port: int) -> tuple[str, ...]:
    """The addresses it answers to, as a browser writes them: those of other names are refused (DNS rebinding)."""
    if values.review_url:
        url = urlsplit(values.review_url)
        return (f"{url.scheme}://{url.netloc}".casefold().removesuffix(":443" if url.scheme == "https" else ":80"),)
    scheme = "https" if values.review_tls_certificate is not None else "http"
    return tuple(f"{scheme}://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.casefold() == "localhost"
