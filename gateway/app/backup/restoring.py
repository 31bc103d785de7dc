"""Restoring a backup into an empty home and an empty database.

Every file is compared with what the backup says of it before anything is believed. The keys come last: a folder
without them is no home, so that what was cut off half-way is never served.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gateway.app.backup.contents import APART
from gateway.app.backup.making import FILES, FORMAT, HOME, MANIFEST, TABLES, seal_of
from gateway.app.backup.tables import read_tables, require_empty
from gateway.app.keyring import require_keys, ring_of
from gateway.app.person.wishes import Rights
from gateway.database import Database
from gateway.durable import PART, writing
from gateway.errors import EnvironmentFault, UsageError
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key, read_key
from gateway.settings import Home, Settings

_MAY_LIE_THERE = frozenset({"lost+found", ".env"})
UNFIT = "the backup cannot be used"


@dataclass(frozen=True, slots=True)
class Restored:
    """`made_at` is when the backup was made, in UTC seconds; `wishes`: rights that only its ledger knew of."""

    files: int
    rows: int
    made_at: float
    wishes: int


def restore_backup(source: Path, home: Home, settings: Settings, keys_from: Path | None) -> Restored:
    """Make a home out of a backup. `keys_from`: where its keys were kept; None where DEID_KEY names the only one.

    Raises UsageError for a home or a database that is not empty, EnvironmentFault for a damaged or foreign backup.
    """
    if home.root.is_dir() and any(path.name not in _MAY_LIE_THERE for path in home.root.iterdir()):
        raise UsageError(f"{home.root} is not empty; restore into a new home")
    manifest = _manifest(source)
    keys = _keys(home, settings, keys_from)
    listed = _listed(source, manifest, keys)
    home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.root.chmod(0o700)
    database = Database.in_home(home.database, settings.database_url)
    try:
        require_empty(database)
        for one in listed:
            _restore_file(source, home, one)
        rows = read_tables(home.root / TABLES, database)
        (home.root / TABLES).unlink()
        ledger = Ledger(home.ledger, keys.ledger)
        report = ledger.verify()
        if not report.sound:
            raise EnvironmentFault(f"{UNFIT}: its ledger is damaged at line {report.line}: {report.fault}")
        _bring_keys(home, keys_from)
        require_keys(ring_of(home, keys), database)
        wishes = Rights(database, ledger, keys).restore_from_ledger()
        made_at = float(manifest["made_at"])
        ledger.append("restored", f"restored/{time.time_ns()}", made_at=made_at, files=len(listed), rows=rows)
    finally:
        database.close()
    return Restored(len(listed), rows, made_at, wishes)


def _manifest(source: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((source / MANIFEST).read_bytes())
        fits = manifest["format"] == FORMAT and bool(manifest["seal"]) and float(manifest["made_at"]) > 0
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{source} is no backup; name a folder that `deid-gateway backup` made") from None
    if not fits:
        raise EnvironmentFault(f"{UNFIT}: another version made it; restore it with that one")
    return manifest


def _keys(home: Home, settings: Settings, keys_from: Path | None) -> Keys:
    """Of the environment, else of the folder they were kept in."""
    if settings.key is not None or settings.key_file is not None:
        return Keys(master_key(home, settings))
    if keys_from is None:
        raise UsageError("a backup holds no keys; name the folder that has them with --keys, or set DEID_KEY_FILE")
    return Keys(read_key(keys_from / home.master_key.name, hint="name the folder that has the keys with --keys"))


def _listed(source: Path, manifest: dict[str, Any], keys: Keys) -> list[dict[str, Any]]:
    try:
        data = (source / FILES).read_bytes()
    except OSError as error:
        raise EnvironmentFault(f"{UNFIT}: {FILES} cannot be read; look at the disk it is on") from error
    if not hmac.compare_digest(str(manifest["seal"]), seal_of(keys, data)):
        raise EnvironmentFault(f"{UNFIT}: it was changed, or these are not its keys; name those of its time (--keys)")
    return [json.loads(line) for line in data.splitlines()]


def _restore_file(source: Path, home: Home, one: dict[str, Any]) -> None:
    place = PurePosixPath(one["path"])
    target = home.root / (place.relative_to(HOME) if place.parts[0] == HOME else place)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with open(source / place, "rb") as reading, open(target, "xb") as file:
            os.fchmod(file.fileno(), 0o600)
            shutil.copyfileobj(reading, file, 1 << 20)
        with open(target, "rb") as file:
            same = hashlib.file_digest(file, "sha256").hexdigest() == one["sha256"]
    except FileNotFoundError:
        same = False
    if not same:
        raise EnvironmentFault(f"{UNFIT}: {place} is missing or was changed; take another backup")


def _bring_keys(home: Home, keys_from: Path | None) -> None:
    """Last of all, with the folders that are empty in a backup."""
    os.sync()
    coming = home.root / f"{APART}{PART}"
    coming.mkdir(mode=0o700)
    for path in sorted(keys_from.iterdir()) if keys_from is not None else ():
        with writing(coming / path.name) as file:
            file.write(path.read_bytes())
    coming.rename(home.root / APART)
    home.create(generate_key=False)
