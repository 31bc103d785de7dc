"""What befalls a gateway besides kills: its disk, clock, archive and database. Each fault is a `with` block."""

from __future__ import annotations

import errno
import mmap
import os
import random
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from chaos_archive import MoodyArchive
from chaos_postgres import Link, PostgresServer

SOURCE = Path(__file__).with_name("chaos_disturb.c")
CLOCK, SYNC, FAILURE = 0, 1, 2  # what the words of the control file mean; chaos_disturb.c reads them
SECOND_NS = 1_000_000_000
BALLAST = "ballast"  # fills a small disk


class Disturbance:
    """The preloaded library and the file that steers it. Needs a C compiler: `can` says whether there is one."""

    def __init__(self, folder: Path) -> None:
        self._control = folder / "control"
        self._library = folder / "chaos_disturb.so"
        self._control.write_bytes(bytes(24))
        build = ["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE)]
        subprocess.run(build, check=True, capture_output=True)
        with open(self._control, "r+b") as file:
            self._page = mmap.mmap(file.fileno(), 24)

    @staticmethod
    def can() -> bool:
        return shutil.which("cc") is not None

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "CHAOS_CONTROL": str(self._control)}

    @contextmanager
    def set(self, word: int, value: int) -> Iterator[None]:
        struct.pack_into("<q", self._page, 8 * word, value)
        try:
            yield
        finally:
            struct.pack_into("<q", self._page, 8 * word, 0)


@contextmanager
def small_disk(size_bytes: int) -> Iterator[Path | None]:
    """A file system of its own of this size; None where we may not mount one."""
    folder = Path(tempfile.mkdtemp(prefix="chaos-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "chaos", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


@dataclass(frozen=True)
class Reach:
    """What faults can touch in this run; None for what is not there."""

    archive: MoodyArchive
    disturbance: Disturbance | None
    small_disk: Path | None
    server: PostgresServer | None
    link: Link | None

    @cached_property
    def faults(self) -> dict[str, Callable[[random.Random], object]]:
        """By name: gives a context manager, during which the fault is there."""
        found: dict[str, Callable[[random.Random], object]] = {"none": lambda _dice: nullcontext()}
        for mood in ("refusing", "cutting", "busy", "aborting", "losing", "hanging", "late", "warning"):
            found[f"archive {mood}"] = partial(self._mood, mood)
        if self.disturbance is not None:
            slow, clock = partial(self.disturbance.set, SYNC), partial(self.disturbance.set, CLOCK)
            found["slow disk"] = lambda dice: slow(int(dice.uniform(0.02, 0.3) * SECOND_NS))
            found["clock ahead"] = lambda dice: clock(dice.randint(5, 4000) * SECOND_NS)
            found["clock behind"] = lambda dice: clock(-dice.randint(5, 4000) * SECOND_NS)
            failing = self.disturbance
            found["sync fails"] = lambda _dice: failing.set(FAILURE, errno.EIO)
        if self.small_disk is not None:
            found["disk full"] = lambda _dice: self._full()
        if self.server is not None:
            found["database restarts"] = self._restart
        if self.link is not None:
            found["database cut off"] = lambda _dice: self._cut()
        return found

    @contextmanager
    def _mood(self, mood: str, _dice: random.Random) -> Iterator[None]:
        self.archive.turn(mood)
        try:
            yield
        finally:
            self.archive.turn("well")

    @contextmanager
    def _full(self) -> Iterator[None]:
        assert self.small_disk is not None
        ballast = self.small_disk / BALLAST
        with open(ballast, "wb", buffering=0) as file, suppress(OSError):  # until there is no room
            while True:
                file.write(bytes(1 << 16))
        try:
            yield
        finally:
            ballast.unlink()

    @contextmanager
    def _restart(self, dice: random.Random) -> Iterator[None]:
        assert self.server is not None
        self.server.restart(dice.uniform(0.0, 1.5))
        yield

    @contextmanager
    def _cut(self) -> Iterator[None]:
        assert self.link is not None
        self.link.cut()
        try:
            yield
        finally:
            self.link.mend()
