"""When a destination is sent to: in its hours, unless somebody paused it. And which study goes first.

What waits for a closed destination is in no queue: its forward leg ends without a successor, and the tables count it as
due again once the destination is open. Rejection notes of a recall do not wait for hours, only for a pause.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.database import Database
from gateway.flow import Leg, Next
from gateway.ledger import Ledger
from gateway.policy import Destination
from gateway.policy.routes import PRIORITIES, Routes
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, Settings

OPEN, PAUSED, OUT_OF_HOURS = "open", "paused", "out of hours"
FIRST, ROUTINE = 1, "routine"  # of the queues of legs: the smaller, the earlier
_RANKS = {name: FIRST + 1 + number for number, name in enumerate(PRIORITIES)}


@dataclass(frozen=True, slots=True)
class Opening:
    """A destination now. `opens_at` in UTC seconds, None when nobody knows; `waiting`: jobs that are cleared."""

    destination: str
    state: str
    waiting: int = 0
    opens_at: float | None = None
    actor: str = ""
    reason: str = ""


def rank_of(leg: Leg, route: str, routes: Routes) -> int:
    """Of a leg in its queue. What is not routed yet, what people asked for and recalls go first: nobody knows whether
    the first is urgent, and the others are.
    """
    if leg not in {Leg.SCRUB, Leg.GATE, Leg.FORWARD}:
        return FIRST if leg != Leg.RELEASE else _RANKS[ROUTINE]
    return _RANKS[next((rule.priority for rule in routes.routes if rule.name == route), ROUTINE)]


class Openings:
    """Of all destinations, at one time. Asks the database once."""

    def __init__(self, database: Database, destinations: Mapping[str, Destination], now: float | None = None) -> None:
        self._paused = database.paused()
        self._destinations = destinations
        self._now = time.time() if now is None else now

    def state(self, name: str) -> str:
        """OPEN, PAUSED or OUT_OF_HOURS. A destination that no file names any more is open: forward holds for it."""
        if name in self._paused:
            return PAUSED
        known = self._destinations.get(name)
        return OPEN if known is None or known.hours.open_at(self._now) else OUT_OF_HOURS

    def lets(self, task: Next, destination: str) -> bool:
        """Whether this leg may send there now; legs that send nothing always may."""
        if task.leg == Leg.FORWARD:
            return self.state(destination) == OPEN
        return task.leg != Leg.RECALL or destination not in self._paused

    def all(self, waiting: Mapping[str, int]) -> list[Opening]:
        """Every destination that is named, waited for, or paused."""
        return [self._opening(name, waiting) for name in sorted({*self._destinations, *waiting, *self._paused})]

    def _opening(self, name: str, waiting: Mapping[str, int]) -> Opening:
        state, count = self.state(name), waiting.get(name, 0)
        if state == PAUSED:
            return Opening(name, state, count, actor=self._paused[name].actor, reason=self._paused[name].reason)
        opens_at = self._destinations[name].hours.opens_at(self._now) if state == OUT_OF_HOURS else None
        return Opening(name, state, count, opens_at)


def openings_of(home: Home, settings: Settings, destinations: Mapping[str, Destination]) -> list[Opening]:
    """For people, without a gateway. Raises EnvironmentFault."""
    database = Database.in_home(home.database, settings.database_url)
    try:
        return Openings(database, destinations).all(database.cleared_by_destination())
    finally:
        database.close()


def set_paused(home: Home, settings: Settings, name: str, *, paused: bool, actor: str, reason: str) -> bool:
    """Pause or resume a destination; the ledger's line comes first. False when it was so already. Raises
    EnvironmentFault.
    """
    database = Database.in_home(home.database, settings.database_url)
    try:
        if (name in database.paused()) == paused:
            return False
        event = "destination_paused" if paused else "destination_resumed"
        facts = {"destination": name, "actor": actor, "reason_given": reason}
        Ledger(home.ledger, Keys(master_key(home, settings)).ledger).append(
            event, f"{event}/{name}/{time.time_ns()}", **facts
        )
        return database.pause(name, actor=actor, reason=reason) if paused else database.resume(name)
    finally:
        database.close()
