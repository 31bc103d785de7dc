"""What an archive transport is: one call that sends, one that asks whether it could.

A transport gets `Outgoing` values and opens them through `open_verified`, so bytes that differ from the clearance never
reach it. It reports every instance that it offered to the archive, then raises what is left to say: `Retry` when
sending again may help, else `Hold`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gateway.errors import Hold, Retry
from gateway.policy import Access
from gateway.study import ClearedInstance, Receipt

# PS3.5 9.1, but for leading zeros, which old originals bear and a policy may keep. Also keeps ".." out of file names.
_UID = re.compile(r"[0-9]+(\.[0-9]+)*")

NO_ANSWER = -1  # Receipt.status when nothing came back


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One cleared instance and the file that claims to be it."""

    cleared: ClearedInstance
    path: Path


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """What every transport may need to know of this gateway."""

    ae_title: str = "DEID"  # ours, calling
    timeout_s: float = 60.0  # longest silence of an archive, at connecting and at every read and write
    max_pdu_bytes: int = 131072  # largest PDU we take and the largest we send, whatever the archive allows
    base: Path = field(default_factory=Path.cwd)  # what a relative `folder:` URL is relative to
    access: Access = field(default_factory=Access)  # what it takes to be let in there


class Transport(Protocol):
    """How cleared files reach one archive. Safe to use from several threads: no state between calls."""

    def send(self, items: Sequence[Outgoing], on_receipt: Callable[[Receipt], None]) -> None:
        """Send all items, reporting each. Raises Retry or Hold after everything that could be sent was sent."""

    def probe(self) -> None:
        """Return when the archive would take something. Raises Retry, or EnvironmentFault when it is ours to mend."""


def is_uid(text: str) -> bool:
    """True for components of digits, 64 characters at most."""
    return len(text) <= 64 and _UID.fullmatch(text) is not None


@dataclass(slots=True)
class Tally:
    """What became of the instances of one call: reports each, remembers what went wrong, and raises it at the end."""

    on_receipt: Callable[[Receipt], None]
    answered: int = 0
    later: list[tuple[str, str]] = field(default_factory=list)  # (Retry reason, place)
    held: list[tuple[str, str]] = field(default_factory=list)  # (Hold reason, place)

    def delivered(self, name: str, status: int = 0, kind: str = "success") -> None:
        self.on_receipt(Receipt(name, status, kind))

    def refused(self, name: str, reason: str, at: str, status: int = NO_ANSWER) -> None:
        """The archive, or the folder, will not have this one: a person must look."""
        self.held.append((reason, at))
        self.on_receipt(Receipt(name, status, "failure"))

    def postponed(self, name: str, reason: str, at: str, status: int = NO_ANSWER) -> None:
        """Not this time."""
        self.later.append((reason, at))
        self.on_receipt(Receipt(name, status, "failure"))

    def close(self) -> None:
        """Raise Retry when anything is worth another try, else Hold when anything was refused, else return."""
        for kind, faults in ((Retry, self.later), (Hold, self.held)):
            if faults:
                reason, at = faults[0]
                more = sum(1 for other, _ in faults if other == reason) - 1
                raise kind(reason, at=f"{at}, and {more} more" if more else at)
