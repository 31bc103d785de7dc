"""Who may associate: deny by default (cases.md 27), with the rejection codes of PS3.8 9.3.4."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from gateway.settings import Settings


@dataclass(frozen=True, slots=True)
class Rejection:
    """Result, source and reason/diagnostic of an A-ASSOCIATE-RJ (PS3.8 Table 9-21); `label` is for metrics and logs."""

    label: str
    result: int
    source: int
    reason: int


PERMANENT, TRANSIENT = 1, 2
SERVICE_USER, ACSE, PRESENTATION = 1, 2, 3

APPLICATION_CONTEXT = Rejection("rejected_application_context", PERMANENT, SERVICE_USER, 2)
CALLING_AE = Rejection("rejected_calling_ae", PERMANENT, SERVICE_USER, 3)
CALLED_AE = Rejection("rejected_called_ae", PERMANENT, SERVICE_USER, 7)
PROTOCOL_VERSION = Rejection("rejected_protocol_version", PERMANENT, ACSE, 2)
STOPPING = Rejection("rejected_stopping", TRANSIENT, PRESENTATION, 1)  # temporary-congestion
TOO_MANY = Rejection("rejected_too_many", TRANSIENT, PRESENTATION, 2)  # local-limit-exceeded
TOO_MANY_OF_PEER = Rejection("rejected_too_many_of_peer", TRANSIENT, PRESENTATION, 2)  # local-limit-exceeded
BEHIND = Rejection("rejected_behind", TRANSIENT, PRESENTATION, 1)  # temporary-congestion
DISK_FULL = Rejection("rejected_disk_full", TRANSIENT, PRESENTATION, 2)  # local-limit-exceeded


def plain_address(host: str) -> str:
    """An address as it is compared: IPv4 written in IPv6 becomes IPv4, a zone index goes. Names come back unchanged."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def addresses_of(host: str) -> frozenset[str]:
    """What a host of the allow-list stands for now. Names are looked up each time: their addresses may change."""
    literal = plain_address(host)
    try:
        ipaddress.ip_address(literal)
    except ValueError:
        try:
            return frozenset(plain_address(str(info[4][0])) for info in socket.getaddrinfo(host, None))
        except OSError:
            return frozenset()  # a name that cannot be resolved lets nobody in
    return frozenset({literal})


class Peers:
    """The allow-list: calling AE title with its hosts and certificates, and the titles that we answer to."""

    def __init__(self, settings: Settings) -> None:
        self._called = frozenset({settings.ae_title, *settings.called_ae_titles})
        self._allowed: dict[str, list[tuple[str, str]]] = {}
        for peer in settings.allowed_peers:
            title, _, place = peer.partition("@")
            host, _, certificate = place.partition("#")
            self._allowed.setdefault(title, []).append((host, certificate))

    def reject(self, *, calling: str, called: str, host: str, certificate: str = "") -> Rejection | None:
        """Why this peer may not associate, or None when it may. AE titles are case-sensitive (PS3.5 6.2, AE).

        `certificate`: the fingerprint of what it showed, "" for nothing.
        """
        if called not in self._called:
            return CALLED_AE
        hosts = [place for place, asked in self._allowed.get(calling, []) if asked in ("", certificate)]
        if "*" in hosts or any(plain_address(host) in addresses_of(allowed) for allowed in hosts):
            return None
        return CALLING_AE
