"""Small JSON files that only this user may read or write: accounts, tokens, whom a provider vouched for."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from gateway.durable import make_folder, writing
from gateway.errors import EnvironmentFault

T = TypeVar("T")


def read_private(path: Path, entry: Callable[[str, Mapping[str, Any]], T], what: str, remedy: str) -> dict[str, T]:
    """Entries by name, {} for a file that is not there. `entry` makes one of its name and body.

    Raises EnvironmentFault for a file that is not ours alone, or not whole: then nobody gets in by it.
    """
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise EnvironmentFault(f"{path} can be read or written by others; chmod 600 it")
        entries = json.loads(path.read_bytes())
        return {name: entry(name, body) for name, body in sorted(entries.items())}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise EnvironmentFault(f"{path} cannot be read as {what}; restore it, or {remedy}") from None


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Around reading and writing anew: the page and a command line change a file one after the other, so that neither
    brings back what the other took away.
    """
    make_folder(path.parent)
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_private(path: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace the file as a whole, mode 0600. Within `changing`."""
    with writing(path) as file:
        file.write(json.dumps(dict(sorted(entries.items())), indent=1).encode())
