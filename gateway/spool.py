"""The intake spool: received originals until retention removes them.

Names are ours and random; nothing a peer sends ever becomes a path (cases.md 27). Mode 0700: this is one of the three
places where identity may lie.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.durable import PART, make_folder, sync_folder


@dataclass(frozen=True, slots=True)
class Spool:
    """The folder of received objects: `<root>/<study key>/<random>.dcm`; `<root>/incoming` holds what is not whole."""

    root: Path

    @property
    def incoming(self) -> Path:
        return self.root / "incoming"

    @property
    def commitments(self) -> Path:
        """Requests for storage commitment that are not answered yet."""
        return self.root / "commitments"

    def new_part(self) -> Path:
        """A fresh name for an object that is being received; not created."""
        return make_folder(self.incoming) / (secrets.token_hex(16) + PART)

    def keep(self, part: Path, study_key: str) -> str:
        """Move a whole, synced part to its study. Returns the file's name inside the study's folder."""
        name = self.move(part, study_key)
        self.sync(study_key)
        return name

    def move(self, part: Path, study_key: str) -> str:
        """The same without making it durable: `sync` does, once for several."""
        name = part.name.removesuffix(PART) + ".dcm"
        os.replace(part, make_folder(self.root / study_key) / name)
        return name

    def sync(self, study_key: str) -> None:
        """Make the names of a study's files survive a power cut. A part may come back as well: `sweep` removes it."""
        sync_folder(self.root / study_key)

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
            if folder == self.commitments:
                continue
            for file in folder.iterdir() if folder.is_dir() else ():
                if (folder.name, file.name) not in known:
                    file.unlink()
                    gone += 1
            if folder.is_dir() and folder != self.incoming and not any(folder.iterdir()):
                folder.rmdir()  # retention took what was in it
        return gone

    def files(self) -> dict[Path, int]:
        """Every received or half-received object, with the time of its last change in nanoseconds. What is moved or
        removed meanwhile may be missing.
        """
        found: dict[Path, int] = {}
        for folder in self.root.iterdir() if self.root.is_dir() else ():
            if folder != self.commitments:
                with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
                    for entry in entries:
                        with suppress(FileNotFoundError):
                            found[folder / entry.name] = entry.stat().st_mtime_ns
        return found

    def free_bytes(self) -> int:
        """Free space on the spool's file system."""
        return shutil.disk_usage(self.root).free
