"""What of a home is in a backup, and holding it still for as long as copying takes: by hard links."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.durable import PART, make_folder
from gateway.errors import EnvironmentFault
from gateway.settings import Home

STAGE, LOCK = "backup.stage", "backup.lock"  # in the home, while a backup is made
APART = "keys"
# Made anew by whoever needs them, or about this machine and moment only.
_LEFT_OUT = frozenset({APART, STAGE, "processes", "previews", "logs", "ledger.jsonl.head", ".env", "serve.log"})
_ENDINGS = (".lock", PART, ".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal")
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS})


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the home as it was: appended lines beyond `size` are later ones."""

    path: str  # below the home
    size: int


@contextmanager
def stage_of(home: Home) -> Iterator[Path]:
    """A folder for links, gone afterwards. Raises EnvironmentFault when another backup is being made."""
    handle = os.open(home.root / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    stage = home.root / STAGE
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise EnvironmentFault("another backup of this home is being made; wait until it has ended") from None
        shutil.rmtree(stage, ignore_errors=True)
        yield make_folder(stage)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        os.close(handle)


def clear_stage(home: Home) -> bool:
    """Remove what a killed backup left: its links keep originals that were removed since. Whether there was any."""
    stage = home.root / STAGE
    if not stage.exists():
        return False
    try:
        with stage_of(home):
            return True
    except EnvironmentFault:  # one that is being made
        return False


def link_home(home: Home, stage: Path) -> list[Entry]:
    """A link to every file that belongs into a backup, and how long each is now."""
    entries = []
    for folder, names, files in os.walk(home.root):
        place = Path(folder).relative_to(home.root)
        names[:] = sorted(name for name in names if not _is_left_out(place, name))
        (stage / place).mkdir(mode=0o700, exist_ok=True)
        for name in sorted(files):
            if _is_left_out(place, name) or name.endswith(_ENDINGS):
                continue
            linked = stage / place / name
            try:
                _link(home.root / place / name, linked)
                entries.append(Entry(str(place / name), linked.stat().st_size))
            except FileNotFoundError:  # a page's or a message's file of a moment: none that a leg works with
                continue
    return entries


def _is_left_out(place: Path, name: str) -> bool:
    """By its name at the top of the home; half-received objects lie in the spool."""
    return (place == Path() and name in _LEFT_OUT) or (place == Path("spool") and name == "incoming")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target)  # another mount, or a file system without links
