"""A process's place among several that share a database and a home: it beats, sees who is dead, and knows who leads.

Somebody is dead whose lock file is free although it runs under the same kernel (at once, however it ended), or who was
silent for `SILENT_S` while we were heard all that time (an outage of the database silences everybody: nobody is dead
for that). The eldest process that carries out decisions leads: it closes studies, hands on intents, looks after
retention and messages, and takes up the work of the dead. There is nothing to elect: deleting a row changes both.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import threading
import time
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from gateway.database import Database, ProcessRow
from gateway.durable import make_folder
from gateway.errors import EnvironmentFault, Stopping
from gateway.observe import log, origin
from gateway.process_settings import ALL, WORK_CPU
from gateway.settings import Home

BEAT_S = 2.0
SILENT_S = 20.0
STEADY_S = 3 * BEAT_S  # a gap between two beats of ours that is no outage
FOLDER = "processes"  # in the home: a lock file for each process
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
HELD, FREE, MISSING = "held", "free", "missing"


class Lease:
    """Of one process. `take` before any work, `release` after the last of it. `database` is the lease's own: whoever
    shares connections with the work waits for one in the very moment that matters.
    """

    def __init__(self, database: Database, home: Home, roles: tuple[str, ...]) -> None:
        self.executor = secrets.token_hex(8)  # engine.md condition 3: never used again
        self._database = database
        self._folder = home.root / FOLDER
        self._roles = roles
        self._machine = BOOT_ID.read_text().strip()
        self._handle: int | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._there: list[ProcessRow] = []
        self._beat_at = self._steady_since = time.monotonic()
        self.lost = False

    def take(self) -> None:
        """Enter. Raises EnvironmentFault when the others have another home, or locks do not reach them."""
        for row in self._database.processes():
            self._require_shared(row)
        self._handle = os.open(self._path(self.executor, make_folder(self._folder)), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._database.enter_process(self.executor, self._roles, self._machine)
        self._beat_at = self._steady_since = time.monotonic()
        self.once()
        self._thread.start()

    def release(self) -> None:
        """Leave. What is still under way belongs to the others from now on."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        if self._handle is None:
            self._database.close()
            return
        try:
            self._database.leave_process()
            self._path(self.executor).unlink(missing_ok=True)
        except (SQLAlchemyError, Stopping) as error:  # its file stays, for the others to find that its lock is free
            log("not_left", level=logging.WARNING, exception=origin(error))
        os.close(self._handle)
        self._handle = None
        self._database.close()

    @property
    def alive(self) -> bool:
        """False when this process was taken for dead: it must end, and may begin again as another one."""
        return self._thread.is_alive() and not self.lost

    @property
    def heard_s(self) -> float:
        """For how many seconds the database has heard us without a gap; 0 while it does not."""
        now = time.monotonic()
        return now - self._steady_since if now - self._beat_at <= STEADY_S else 0.0

    def leads(self) -> bool:
        """Whether this process is the one that does what one at a time may do."""
        leaders = [row.executor for row in self._there if {WORK_CPU, ALL} & set(row.roles)]
        return not self.lost and leaders[:1] == [self.executor]

    def there(self) -> list[ProcessRow]:
        """Who was there at the last beat."""
        return list(self._there)

    def _run(self) -> None:
        while not self._stopping.wait(BEAT_S):
            try:
                self.once()
            except SQLAlchemyError as error:
                log("not_heard", level=logging.WARNING, exception=origin(error))
            except Stopping:
                self.lost = True
                log("taken_for_dead", level=logging.ERROR)
                return

    def once(self) -> None:
        """One beat, and a look at the others. Raises Stopping when they took this process for dead."""
        self._database.beat_process(self.executor)
        now = time.monotonic()
        if now - self._beat_at > STEADY_S:
            self._steady_since = now
        self._beat_at = now
        steady = now - self._steady_since >= SILENT_S
        for row in self._database.processes():
            if row.executor != self.executor:
                self._bury(row, steady=steady)
        self._there = self._database.processes()

    def _bury(self, row: ProcessRow, *, steady: bool) -> None:
        fallen = row.machine == self._machine and self._look(row) == FREE
        if not fallen and not (steady and row.silent_s >= SILENT_S):
            return
        try:
            buried = self._database.remove_process(row.executor, silent_s=0.0 if fallen else SILENT_S)
        except SQLAlchemyError as error:  # it stands still in the middle of a transaction
            log("not_buried", level=logging.WARNING, exception=origin(error))
            return
        if buried:
            self._path(row.executor).unlink(missing_ok=True)
            log("process_dead", level=logging.WARNING, kind=",".join(row.roles), seconds=round(row.silent_s, 1))

    # -- one home, and locks that reach everybody -----------------------------------------------------------------

    def _require_shared(self, row: ProcessRow) -> None:
        """A process that is alive holds a lock in this home, and we must see that it does."""
        seen = self._look(row)
        if seen == HELD or row.silent_s >= SILENT_S or (seen == FREE and row.machine == self._machine):
            return
        give_up = time.monotonic() + STEADY_S
        while time.monotonic() < give_up:
            time.sleep(BEAT_S / 4)
            now = next((one for one in self._database.processes() if one.executor == row.executor), None)
            if now is None:
                return
            if now.silent_s < min(row.silent_s, BEAT_S):  # it beat since
                raise EnvironmentFault(
                    "another home's processes work on this database; name the same DEID_HOME, or another database"
                    if seen == MISSING
                    else "file locks do not reach the other machines; mount DEID_HOME so that flock does "
                    "(NFS: version 4, without nolock or local_lock)"
                )
            row = now

    def _look(self, row: ProcessRow) -> str:
        try:
            handle = os.open(self._path(row.executor), os.O_RDWR)
        except FileNotFoundError:
            return MISSING
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return HELD
        finally:
            os.close(handle)
        return FREE

    def _path(self, executor: str, folder: Path | None = None) -> Path:
        return (folder or self._folder) / f"{executor}.lock"
