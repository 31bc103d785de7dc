"""The intake spool and every other durable file: temp, fsync, rename, fsync of the folder.

Names are ours and random; nothing a peer sends ever becomes a path (cases.md 27). Originals live here, mode 0700, until
retention removes them; this is one of the three places where identity may lie.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Spool:
    """The folder of received objects: `<root>/<study key>/<random>.dcm`; `<root>/incoming` holds what is not whole."""

    root: Path

    @property
    def incoming(self) -> Path:
        return self.root / "incoming"

    def new_part(self) -> Path:
        """A fresh name for an object that is being received; not created."""
        return make_folder(self.incoming) / (secrets.token_hex(16) + PART)

    def keep(self, part: Path, study_key: str) -> str:
        """Move a whole, synced part to its study. Returns the file's name inside the study's folder."""
        folder = make_folder(self.root / study_key)
        name = part.name.removesuffix(PART) + ".dcm"
        publish(part, folder / name)
        sync_folder(part.parent)
        return name

    def path(self, study_key: str, name: str) -> Path:
        return self.root / study_key / name

    def discard(self, study_key: str) -> None:
        """Remove a study's originals (rejected, or past retention)."""
        shutil.rmtree(self.root / study_key, ignore_errors=False)

    def sweep(self, known: frozenset[tuple[str, str]]) -> int:
        """At start, before receiving: remove parts and files that no database row names. Their senders never got a
        success, so they send again. `known` holds (study key, file name). Returns how many files went."""
        gone = 0
        if not self.root.is_dir():
            return 0
        for folder in self.root.iterdir():
            for file in folder.iterdir() if folder.is_dir() else ():
                if (folder.name, file.name) not in known:
                    file.unlink()
                    gone += 1
        return gone

    def free_bytes(self) -> int:
        """Free space on the spool's file system."""
        return shutil.disk_usage(self.root).free
