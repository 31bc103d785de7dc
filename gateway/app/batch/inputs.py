"""The files that `scrub` is given: which there are, and what intake says of each.

Links are not followed and special files are not read; both are counted, so that nothing is passed over in silence.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from gateway.app.intake import Examined, dataset_offset, examine, looks_like_dicom
from gateway.errors import UsageError

# Not about the file: the machine has run out of something.
MACHINE_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class Inputs:
    """Regular files below the source, sorted; files and folders that cannot be listed; how many were not followed."""

    files: tuple[Path, ...]
    unreadable: tuple[Path, ...] = ()
    not_followed: int = 0


@dataclass(frozen=True, slots=True)
class Input:
    """One file. `contents` names all its bytes, file meta too, "" when unreadable; `stranger`: not DICOM at all."""

    path: Path
    examined: Examined
    contents: str = ""
    stranger: bool = False


def find_inputs(source: Path, target: Path, home: Path) -> Inputs:
    """What is below `source`. Raises UsageError when it is not there, or when the three folders contain each other."""
    if not source.exists():
        raise UsageError(f"{source} does not exist")
    _require_apart(source.resolve(), target.resolve(), home.resolve())
    if not source.is_dir():
        return Inputs((source,))
    unreadable: list[Path] = []
    files: list[Path] = []
    not_followed = 0
    for folder, folders, names in os.walk(source, onerror=lambda error: unreadable.append(Path(str(error.filename)))):
        not_followed += sum((Path(folder) / name).is_symlink() for name in folders)
        for name in names:
            path = Path(folder) / name
            try:
                regular = stat.S_ISREG(path.lstat().st_mode)
            except OSError:
                unreadable.append(path)
                continue
            if regular:
                files.append(path)
            else:
                not_followed += 1
    return Inputs(tuple(sorted(files)), tuple(sorted(unreadable)), not_followed)


def _require_apart(source: Path, target: Path, home: Path) -> None:
    if target.is_relative_to(source) or (source.is_dir() and source.is_relative_to(target)):
        raise UsageError("the target folder and the source folder must not contain each other; name another target")
    if target.is_relative_to(home) or home.is_relative_to(target):
        raise UsageError("the target folder and the home must not contain each other; name another target")
    if home.is_relative_to(source):
        raise UsageError("the home lies in the source folder; name the folder with the images, or move the home")


def look_at(path: Path, name: str, master: bytes) -> Input:
    """Runs in a worker. `name` is ours. A file that cannot be read is a fault, not an exception.

    Raises OSError only when the machine has run out of something.
    """
    try:
        with open(path, "rb") as file:
            offset = dataset_offset(file)
            file.seek(0)
            head = hashlib.sha256(file.read(offset)).hexdigest()
        entry = examine(path, name, master)
        stranger = entry.fault == "unreadable_object" and not looks_like_dicom(path)
    except OSError as error:
        if error.errno in MACHINE_ERRNOS:
            raise
        return unreadable(path, name)
    return Input(path, entry, f"{head}:{entry.sha256}", stranger)


def unreadable(path: Path, name: str) -> Input:
    """Nothing is known of this file: it is told to whoever runs `scrub`, and is no decision about a study."""
    return Input(path, Examined(name, "", fault="file_unreadable"))


def path_text(path: Path) -> str:
    """A path as text that can be encoded, whatever its bytes are."""
    return os.fsencode(path).decode("latin-1")
