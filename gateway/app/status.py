"""What `status` tells: read from tables and files, without touching the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.app.levels import level_told
from gateway.app.policy.loaded import restore
from gateway.app.routing.echo import destinations_of
from gateway.app.routing.openings import Opening, Openings
from gateway.app.waiting import batches
from gateway.database import Database
from gateway.errors import EnvironmentFault, Hold, PolicyError
from gateway.flow.lock import is_taken
from gateway.ledger import Ledger
from gateway.policy import Destination
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, Settings
from gateway.spool import Spool
from gateway.study import State


@dataclass(frozen=True, slots=True)
class Status:
    """`jobs` maps (state, reason) to how many, `levels` (policy, level) to studies that leave at it. `ledger_fault` is
    "" for a sound one.
    """

    running: bool
    jobs: dict[tuple[str, str], int]
    receiving: int
    held_before_routing: int
    held_batches: int
    free_bytes: int
    ledger_lines: int
    ledger_fault: str
    levels: dict[tuple[str, str], int] = field(default_factory=dict)
    destinations: tuple[Opening, ...] = ()

    def as_json(self) -> dict[str, Any]:
        jobs = [{"state": s, "reason": r, "jobs": n} for (s, r), n in sorted(self.jobs.items())]
        return {
            "running": self.running,
            "jobs": jobs,
            "levels": [{"policy": p, "level": level, "studies": n} for (p, level), n in self.levels.items()],
            "receiving": self.receiving,
            "held_before_routing": self.held_before_routing,
            "held_by_scrub": self.held_batches,
            "free_bytes": self.free_bytes,
            "ledger_lines": self.ledger_lines,
            "ledger_fault": self.ledger_fault,
            "destinations": [
                {"destination": one.destination, "state": one.state, "waiting": one.waiting}
                for one in self.destinations
            ],
        }


def is_locked(home: Home) -> bool:
    """True when an engine process has this home."""
    return is_taken(home.engine_lock)


def _destinations(settings: Settings) -> Mapping[str, Destination]:
    """Those of the file; while it has faults, none: `policy check` tells them, and the gateway keeps what it has."""
    try:
        return destinations_of(settings.policies)
    except PolicyError:
        return {}


def read_status(home: Home, settings: Settings) -> Status:
    """Raises EnvironmentFault for an unreadable database or key; a damaged ledger is told in the status."""
    ledger = Ledger(home.ledger, Keys(master_key(home, settings)).ledger)
    try:
        lines, fault = len(ledger), ""
    except EnvironmentFault as error:
        lines, fault = ledger.verify().lines, str(error)
    database = Database.in_home(home.database, settings.database_url)
    try:
        return Status(
            running=is_locked(home),
            jobs=database.count_states(),
            receiving=len(database.studies_in("received")),
            held_before_routing=len(database.studies_in("held")),
            held_batches=sum(waiting.state != State.REFUSED for waiting in batches(home)),
            free_bytes=Spool(home.spool).free_bytes(),
            ledger_lines=lines,
            ledger_fault=fault,
            destinations=tuple(Openings(database, _destinations(settings)).all(database.cleared_by_destination())),
            levels=_levels(home, database),
        )
    finally:
        database.close()


def _levels(home: Home, database: Database) -> dict[tuple[str, str], int]:
    """Of policies that have levels and that this build can read."""
    found: dict[tuple[str, str], int] = {}
    for (name, digest, number), count in sorted(database.cleared_levels().items()):
        try:
            policy = restore((home.policy_snapshots / f"{digest}.json").read_text("utf-8"), digest)
        except (OSError, UnicodeDecodeError, Hold):
            continue
        if policy.escalate is not None:
            key = (name, level_told(policy, number))
            found[key] = found.get(key, 0) + count
    return found
