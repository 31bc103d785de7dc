"""Rotation of the key that pseudonyms are made with, and whether every key that somebody depends on is there."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.database import Database
from gateway.durable import writing
from gateway.errors import EnvironmentFault
from gateway.ledger import Ledger
from gateway.pseudonyms import KeyRing, Keys, RingKey, master_key
from gateway.pseudonyms.ring import RING
from gateway.settings import Home, Settings
from gateway.vault import key_fault as vault_key_fault

LOCK = "ring.lock"


@dataclass(frozen=True, slots=True)
class KeyState:
    """A key of the ring, and how many people (of any project) it has mapped."""

    key: RingKey
    people: int


def ring_of(home: Home, keys: Keys) -> KeyRing:
    """The ring of a home."""
    return KeyRing(home.keys, keys.master)


def key_states(home: Home, settings: Settings) -> list[KeyState]:
    """Every key in order; also those that tables name and the ring has lost, as faults. Raises EnvironmentFault."""
    ring = ring_of(home, Keys(master_key(home, settings)))
    database = Database.in_home(home.database, settings.database_url)
    try:
        people = database.people_by_key()
    finally:
        database.close()
    known = [KeyState(key, people.pop(key.id, 0)) for key in ring.listed()]
    return known + [KeyState(_lost(name), count) for name, count in sorted(people.items())]


def _lost(name: str) -> RingKey:
    return RingKey(name, "", active=False, fault=f"the key {name} is not in the ring; restore HOME/keys")


def faults(home: Home, settings: Settings) -> list[str]:
    """What is wrong with the keys of a home, [] when all is well. Raises EnvironmentFault for master key and ring."""
    found = [state.key.fault for state in key_states(home, settings) if state.key.fault]
    of_vault = vault_key_fault(home.keys, home.vault)
    return found + ([of_vault] if of_vault else [])


def require_keys(ring: KeyRing, database: Database) -> None:
    """Raise EnvironmentFault unless every key that somebody was mapped with is there: before anything is received."""
    there = {key.id: key.fault for key in ring.listed()}
    for name in database.people_by_key():
        fault = there.get(name, _lost(name).fault)
        if fault:
            raise EnvironmentFault(fault)


def rotate(home: Home, settings: Settings, *, actor: str, reason: str) -> str:
    """Put a new key in force for people who come from now on; its id. In the ledger before it takes effect.

    A crash on the way leaves the ring as it was, perhaps beside a key file that nobody uses.
    """
    keys = Keys(master_key(home, settings))
    ring = ring_of(home, keys)
    with _locked(home.keys / LOCK):
        old, text = ring.active, secrets.token_hex(32)
        new, path, contents = ring.with_new_key(text)
        with writing(path) as file:
            file.write(text.encode() + b"\n")
        Ledger(home.ledger, keys.ledger).append(
            "key_rotated", f"key/{new}/{time.time_ns()}", actor=actor, reason_given=reason, key=new, before=old
        )
        with writing(home.keys / RING) as file:
            file.write(contents)
    return new


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
