"""What people order: a back-load is begun, paused, resumed, stopped, and looked at. Each order is in the ledger."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.app.backload.lists import read_list
from gateway.database import Database
from gateway.database.backloads import DONE, ENTRY, FAILED, NOT_FOUND, PAUSED, RUNNING, STOPPED, STUDY, Backload
from gateway.errors import PolicyError, UsageError
from gateway.ledger import Ledger
from gateway.policy.document import close_match, read_document
from gateway.policy.folder import DESTINATIONS
from gateway.policy.sources import Source, resolve_sources
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, Settings

REASONS = {
    "destination_unknown": "the PACS does not know our AE title as a place to send to: register it there, then resume",
    "unreachable": "the PACS does not answer, or our TLS files cannot be read: see the log; it is tried again",
    "find_refused": "the PACS refused the query: see its log",
    "find_unusable": "the PACS answered with studies that were not asked for: it does not match by this attribute",
    "too_many_matches": "more than 10,000 studies: narrow the entry",
    "model_refused": "the PACS does not offer C-FIND, C-MOVE or C-GET to us: see its configuration",
    "retrieve_refused": "the PACS refused to send: see its log",
    "stalled": "the PACS told of no progress for a long time",
    "partial": "the PACS could not send every instance: see its log, and what our door refused",
    "not_arrived": "the PACS says that it sent, and it did not arrive here: see the address it has for our AE title",
    "unforeseen": "see the log; report it",
    "here_already": "all of it had arrived before",
}
TRANSITIONS = {  # verb -> event of the ledger, state after it, states before it
    "pause": ("backload_paused", PAUSED, (RUNNING,)),
    "resume": ("backload_resumed", RUNNING, (PAUSED,)),
    "stop": ("backload_stopped", STOPPED, (RUNNING, PAUSED)),
}
OUT_OF_HOURS, NO_SOURCE = "out of hours", "no source of that name"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a back-load is. `items`: (kind, state, reason) -> how many."""

    backload: Backload
    items: Mapping[tuple[str, str, str], int]
    waits: str = ""  # why nothing is asked for now: OUT_OF_HOURS, NO_SOURCE

    def count(self, kind: str, *states: str) -> int:
        """Items of a kind in these states, all when none is named."""
        return sum(n for (k, state, _), n in self.items.items() if k == kind and (not states or state in states))

    @property
    def ended(self) -> bool:
        return self.backload.state in (DONE, STOPPED)

    def as_json(self) -> dict[str, object]:
        return {
            "backload": self.backload.serial,
            "source": self.backload.source,
            "state": self.backload.state,
            "reason": self.backload.reason,
            "waits": self.waits,
            "entries": self._told(ENTRY),
            "studies": self._told(STUDY),
        }

    def _told(self, kind: str) -> list[dict[str, object]]:
        items = sorted(self.items.items())
        return [{"state": s, "reason": r, "count": n} for (k, s, r), n in items if k == kind]


def sources_of(folder: Path) -> Mapping[str, Source]:
    """Those of a policies folder. Raises PolicyError."""
    document = read_document(folder / DESTINATIONS)
    found = resolve_sources(document, folder) if document.data else {}
    if document.faults:
        raise PolicyError(document.faults)
    return found


def start(home: Home, settings: Settings, path: Path, source: str, *, actor: str, reason: str) -> int:
    """Begin a back-load; its number. A running gateway carries it out. Raises PolicyError or UsageError."""
    keys = Keys(master_key(home, settings))
    known = sources_of(settings.policies)
    if source not in known:
        there = ", ".join(sorted(known)) or "none"
        hint = close_match(source, known) or f"list it there under sources:; now there is {there}"
        raise UsageError(f"no source {source} in {DESTINATIONS}; {hint}")
    entries = read_list(path, keys)
    facts = {"source": source, "count": len(entries), "actor": actor, "reason_given": reason}
    Ledger(home.ledger, keys.ledger).append("backload_started", f"backload_started/{time.time_ns()}", **facts)
    database = Database.in_home(home.database, settings.database_url)
    try:
        return database.add_backload(source, entries)
    finally:
        database.close()


def order(home: Home, settings: Settings, serial: int, verb: str, *, actor: str, reason: str) -> None:
    """Pause, resume or stop one. Raises UsageError when it is in no state for that."""
    event, state, still = TRANSITIONS[verb]
    database = Database.in_home(home.database, settings.database_url)
    try:
        found = next((one for one in database.backloads() if one.serial == serial), None)
        if found is None or found.state not in still:
            raise UsageError(f"back-load {serial} is {found.state if found else 'not there'}; see `backload status`")
        facts = {"backload": serial, "actor": actor, "reason_given": reason}
        Ledger(home.ledger, Keys(master_key(home, settings)).ledger).append(
            event, f"backload/{serial}/{verb}/{time.time_ns()}", **facts
        )
        database.set_backload(serial, state, still=still)
    finally:
        database.close()


def progress(home: Home, settings: Settings, serial: int | None = None) -> list[Progress]:
    """Of one back-load, or of all. Raises UsageError for a number that is none."""
    known = sources_of(settings.policies)
    database = Database.in_home(home.database, settings.database_url)
    try:
        wanted = [one for one in database.backloads() if serial in (None, one.serial)]
        if serial is not None and not wanted:
            raise UsageError(f"there is no back-load {serial}; see `backload status`")
        return [Progress(one, database.count_items(one.serial), _waits(one, known)) for one in wanted]
    finally:
        database.close()


def _waits(backload: Backload, known: Mapping[str, Source]) -> str:
    if backload.state in (DONE, STOPPED):
        return ""
    if backload.source not in known:
        return NO_SOURCE
    return "" if known[backload.source].hours.open_at(time.time()) else OUT_OF_HOURS


def missing(home: Home, settings: Settings, serial: int) -> list[tuple[int, str, str]]:
    """(line of the list, state, reason) of what was not found, or failed."""
    database = Database.in_home(home.database, settings.database_url)
    try:
        return database.lines_of(serial, NOT_FOUND, FAILED)
    finally:
        database.close()
