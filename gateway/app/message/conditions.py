"""What a machine's state asks people to do: archives that take nothing, a full disk, a certificate about to end.

Read off tables and files each time somebody asks: by /metrics, and by the notices that people get.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from gateway.app.parts import Parts
from gateway.app.release.references import MODELS
from gateway.errors import EnvironmentFault
from gateway.gate import all_cards, folders_of
from gateway.policy import Policy
from models.cards import CardError, find_card

TRIES = 3  # failed in a row: the archive is down, not busy
LOW = 2.0  # times the free space below which nothing is taken: time to act
DAY_S = 24 * 3600.0
EXPIRING_S = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class Disk:
    """Where the spool lies, in bytes. Below `least` associations are refused."""

    free: int
    total: int
    least: int

    @property
    def low(self) -> bool:
        return self.free < LOW * self.least


def disk(parts: Parts) -> Disk:
    """Raises OSError."""
    usage = shutil.disk_usage(parts.spool.root)
    return Disk(usage.free, usage.total, parts.settings.min_free_bytes)


def retrying(parts: Parts) -> dict[str, tuple[int, int]]:
    """Of each destination that is sent to again: how many jobs, and the most tries in a row that failed.

    A destination that takes everything has (0, 0). Raises what the database raises.
    """
    return {**dict.fromkeys(sorted(parts.policies.current.destinations), (0, 0)), **parts.database.retrying()}


def expiries(parts: Parts) -> dict[str, float]:
    """When what we rely on ends, in UTC seconds: "review_certificate", and "card NAME" for a card of a policy in force.

    Raises EnvironmentFault for a certificate that cannot be read.
    """
    found = {}
    if parts.settings.review_tls_certificate is not None:
        found["review_certificate"] = _end_of(parts.settings.review_tls_certificate)
    folders = folders_of(parts.home.root / MODELS)
    for name in sorted({name for policy in parts.policies.current.policies.values() for name in _cards_of(policy)}):
        try:
            last = find_card(name, folders)[0].valid_until
        except CardError:  # the gate holds what it would judge, and says so
            continue
        if last is not None:
            found[f"card {name}"] = datetime(last.year, last.month, last.day, tzinfo=UTC).timestamp() + DAY_S
    return found


def _cards_of(policy: Policy) -> set[str]:
    """Of everything that judges or generates."""
    return {*all_cards(policy), *(str(name) for _, stage in policy.pixels if (name := getattr(stage, "card", "")))}


def ledger_holds(parts: Parts) -> bool:
    """False when a line was found to be changed or missing, and when it cannot be read on."""
    try:
        _ = len(parts.ledger)
    except (EnvironmentFault, OSError):
        return False
    return not parts.ledger.fault


def _end_of(path: Path) -> float:
    """The earliest end in a PEM file: a chain ends with its first link."""
    try:
        chain = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        raise EnvironmentFault(f"{path} is no certificate that can be read; see DEID_REVIEW_TLS_CERTIFICATE") from error
    return min(one.not_valid_after_utc.timestamp() for one in chain)
