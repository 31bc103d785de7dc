"""Wishes that are carried out at once: by the gateway that runs on the home, or here when none does."""

from __future__ import annotations

import time

from gateway.app.course import decide_leg
from gateway.app.serve import wire
from gateway.app.status import is_locked
from gateway.app.steps import StudySteps
from gateway.database import Database
from gateway.errors import EnvironmentFault
from gateway.flow import run_leg
from gateway.flow.lock import StoreLock
from gateway.flow.pause import Pause
from gateway.settings import Home, Settings

POLL_S = 0.1


def outcome_of(home: Home, settings: Settings, serial: int, *, wait_s: float) -> str:
    """What became of a wish, "" while nobody has taken it up. Where no gateway runs, it is carried out in this process,
    under the lock that a gateway would have; what follows from it (sending) waits for the next start.

    Raises what opening a gateway raises: EnvironmentFault, PolicyError.
    """
    if not is_locked(home):
        store_url = settings.database_url or f"sqlite:///{home.engine_database}"
        lock = StoreLock(home.engine_lock, store_url, brief=True)
        try:
            lock.take()
        except EnvironmentFault:  # one that runs elsewhere on the same database, or that started just now
            return _awaited(home, settings, serial, wait_s)
        try:
            _carry_out(home, settings, serial)
        finally:
            lock.release()
        wait_s = 0.0
    return _awaited(home, settings, serial, wait_s)


def _carry_out(home: Home, settings: Settings, serial: int) -> None:
    parts = wire(home, settings)
    try:
        run_leg(StudySteps(parts), decide_leg(serial), Pause(home.engine_lock).working())
    finally:
        parts.workers.close()
        parts.database.close()


def _awaited(home: Home, settings: Settings, serial: int, wait_s: float) -> str:
    database = Database.in_home(home.database, settings.database_url)
    deadline = time.monotonic() + wait_s
    try:
        while True:
            intent = database.intent(serial)
            if intent is not None and intent.done_at is not None:
                return intent.outcome
            if time.monotonic() >= deadline:
                return ""
            time.sleep(POLL_S)
    finally:
        database.close()
