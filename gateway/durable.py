"""Files that are either whole and on disk, or not there: temp, fsync, rename, fsync of the folder."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Flush a file that another piece of code has written and closed."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> Path:
    """The folder, 0700, made durable. Existing ones are left as they are."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(folder.parent)
    return folder


def publish(part: Path, target: Path) -> None:
    """Rename a complete, synced `.part` to its final name, replacing what an earlier try left there."""
    os.replace(part, target)
    sync_folder(target.parent)


@contextmanager
def writing(target: Path) -> Iterator[BinaryIO]:
    """Write `target` so that it is either whole and on disk, or not there."""
    part = target.with_name(target.name + f".{secrets.token_hex(4)}{PART}")
    try:
        with open(part, "xb") as file:
            os.fchmod(file.fileno(), 0o600)
            yield file
            file.flush()
            os.fsync(file.fileno())
        publish(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
