"""What `status` tells: read from tables and files, without touching the engine."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from typing import Any

from gateway.app.waiting import batches
from gateway.database import Database
from gateway.errors import EnvironmentFault
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, Settings
from gateway.spool import Spool
from gateway.study import State


@dataclass(frozen=True, slots=True)
class Status:
    """`jobs` maps (state, reason) to how many; `ledger_fault` is "" for a sound one."""

    running: bool
    jobs: dict[tuple[str, str], int]
    receiving: int
    held_before_routing: int
    held_batches: int
    free_bytes: int
    ledger_lines: int
    ledger_fault: str

    def as_json(self) -> dict[str, Any]:
        jobs = [{"state": s, "reason": r, "jobs": n} for (s, r), n in sorted(self.jobs.items())]
        return {
            "running": self.running,
            "jobs": jobs,
            "receiving": self.receiving,
            "held_before_routing": self.held_before_routing,
            "held_by_scrub": self.held_batches,
            "free_bytes": self.free_bytes,
            "ledger_lines": self.ledger_lines,
            "ledger_fault": self.ledger_fault,
        }


def is_locked(home: Home) -> bool:
    """True when an engine process has this home."""
    if not home.engine_lock.exists():
        return False
    handle = os.open(home.engine_lock, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


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
        )
    finally:
        database.close()
