"""Making a backup beside a running gateway.

Legs rest for as long as it takes to begin a look at the tables and to link the files of the home: then rows and files
belong together, and copying takes its time. Receiving goes on meanwhile, and so does sending, which changes no file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from gateway.app.backup.contents import APART, link_home, stage_of
from gateway.app.backup.tables import require_schema, snapshot, write_tables
from gateway.database import SCHEMA_VERSION
from gateway.durable import PART, sync_folder, writing
from gateway.errors import UsageError
from gateway.flow.pause import Pause
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, derive, master_key
from gateway.settings import Home, Settings

MANIFEST, FILES, TABLES, HOME = "manifest.json", "files.jsonl", "tables.sqlite", "home"
LEDGER = "ledger.jsonl"
FORMAT = 1
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Made:
    """A backup. `rested_s`: how long legs had to wait."""

    files: int
    size_bytes: int
    rows: int
    rested_s: float


def make_backup(home: Home, settings: Settings, target: Path, *, keys_to: Path | None, patience_s: float) -> Made:
    """A whole backup at `target`, or nothing there. Raises UsageError, EnvironmentFault, and OSError of the disk.

    `keys_to`: a new folder for the keys of the home, never below `target`.
    """
    for path in (target, keys_to):
        if path is not None and (path.exists() or home.root in path.parents):
            raise UsageError(f"{path} is there already, or lies in the home; name a new folder elsewhere")
    if keys_to is not None and target in keys_to.parents:
        raise UsageError("keys beside the backup open it for whoever finds it; name a folder elsewhere for them")
    keys = Keys(master_key(home, settings))
    ledger = Ledger(home.ledger, keys.ledger)
    part = target.with_name(target.name + PART)
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700, parents=True)
    try:
        made = _write(home, settings.database_url or f"sqlite:///{home.database}", ledger, keys, part, patience_s)
        if keys_to is not None:
            _copy_keys(home, keys_to)
        os.sync()
        part.rename(target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    ledger.append("backed_up", f"backed_up/{time.time_ns()}", files=made.files, rows=made.rows)
    return made


def _write(home: Home, url: str, ledger: Ledger, keys: Keys, part: Path, patience_s: float) -> Made:
    with stage_of(home) as stage, snapshot(url) as tables:
        with Pause(home.engine_lock).alone(patience_s=patience_s):
            began, made_at = time.monotonic(), time.time()
            require_schema(tables)
            entries = link_home(home, stage)
            whole, head = ledger.extent()
            rested_s = time.monotonic() - began
        files = [
            _copied(stage / one.path, part / HOME / one.path, one.size, part) for one in entries if one.path != LEDGER
        ]
        # Lines that the ledger has beyond the tables are of decisions that are taken again, to the same end. It is read
        # where it is: it only grows, and without links the stage has a copy of before its extent was known.
        if whole:
            files.append(_copied(home.ledger, part / HOME / LEDGER, whole, part))
        if head:
            files.append(_written(part / HOME / f"{LEDGER}.head", head, part))
        rows = write_tables(tables, part / TABLES)
    files.append(_described(part / TABLES, part))
    listed = "".join(json.dumps(one) + "\n" for one in files).encode()
    with writing(part / FILES) as file:
        file.write(listed)
    manifest = {"format": FORMAT, "schema": SCHEMA_VERSION, "made_at": made_at, "files": len(files), "rows": rows}
    with writing(part / MANIFEST) as file:
        file.write(json.dumps({**manifest, "seal": seal_of(keys, listed)}, indent=1).encode())
    return Made(len(files), sum(int(str(one["size"])) for one in files), rows, rested_s)


def seal_of(keys: Keys, listed: bytes) -> str:
    """Nobody without the master key can change a file of a backup unseen."""
    return derive(keys.master, "backup", hashlib.sha256(listed).hexdigest()).hex()


def _copied(source: Path, target: Path, size: int, below: Path) -> dict[str, object]:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), size
    with open(source, "rb") as reading, open(target, "xb") as file:
        os.fchmod(file.fileno(), 0o600)
        while left and (chunk := reading.read(min(left, _CHUNK_BYTES))):
            file.write(chunk)
            digest.update(chunk)
            left -= len(chunk)
    return {"path": str(target.relative_to(below)), "size": size - left, "sha256": digest.hexdigest()}


def _written(target: Path, data: bytes, below: Path) -> dict[str, object]:
    with writing(target) as file:
        file.write(data)
    return _described(target, below)


def _described(path: Path, below: Path) -> dict[str, object]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"path": str(path.relative_to(below)), "size": path.stat().st_size, "sha256": digest}


def _copy_keys(home: Home, target: Path) -> None:
    target.mkdir(mode=0o700, parents=True)
    for path in sorted((home.root / APART).iterdir()):
        if path.is_file() and path.suffix != ".lock":
            with writing(target / path.name) as file:
                file.write(path.read_bytes())
