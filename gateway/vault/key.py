"""The vault's own key: HOME/keys/vault.key. Whoever has it and the folder can read who is behind every pseudonym."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from gateway.durable import PART, sync_folder
from gateway.errors import EnvironmentFault
from gateway.pseudonyms import read_key

KEY = "vault.key"
_LOST = "restore it from the backup of HOME/keys: without it nothing in the vault can be opened"


def vault_key(keys: Path, vault: Path, *, make: bool = False) -> bytes:
    """The key; made first where `make` says so and the vault is empty. Raises EnvironmentFault when lost or weak."""
    path = keys / KEY
    if make and not path.exists():
        if any(vault.glob("*/*/*.rec")):
            raise EnvironmentFault(f"the vault has records, and its key {path} is gone; {_LOST}")
        _make(path)
    return read_key(path, hint=_LOST, kind="vault")


def key_fault(keys: Path, vault: Path) -> str:
    """What is wrong with the vault's key, "" when nothing is or nobody needs it."""
    if not (keys / KEY).exists() and not any(vault.glob("*/*/*.rec")):
        return ""
    try:
        vault_key(keys, vault)
    except EnvironmentFault as error:
        return str(error)
    return ""


def _make(path: Path) -> None:
    """Whole or not at all, and one only, whoever else tries at the same time."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PART}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(part, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        part.unlink()
    sync_folder(path.parent)
