"""Who may run the engine on a store: one process when it is embedded (engine.md condition 1: a second one would run
jobs twice), on PostgreSQL those that share it, and a command when none does.

The file lock covers a home; on PostgreSQL an advisory lock also covers two homes that name the same database. Both
vanish with the process that holds them, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from gateway.errors import EnvironmentFault

_ADVISORY = 0x656E67696E65  # any number that nobody else locks: "engine"
PATIENCE_S = 10.0  # a server needs a moment to notice that a killed client is gone
LOOKED_AT_S = 1.0  # `status` holds the lock for a moment, to see whether it is free
BRIEF, BRIEF_S = b"brief", 60.0  # what a command writes into the lock, and how long a gateway waits for it


class StoreLock:
    """The right to run the engine on a store. `brief`: for a moment only, so that a gateway which starts waits.
    `shared`: beside others that share it too.
    """

    def __init__(self, path: Path, store_url: str, *, brief: bool = False, shared: bool = False) -> None:
        self._path = path
        self._store_url = store_url
        self._brief = brief
        self._shared = shared
        self._handle: int | None = None
        self._connection: Connection | None = None

    @property
    def held(self) -> bool:
        return self._handle is not None

    def take(self) -> None:
        """Raises EnvironmentFault when another process has it, or when the store cannot be reached."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        began = time.monotonic()
        while not _locked(handle, shared=self._shared):
            patience_s = BRIEF_S if os.pread(handle, len(BRIEF), 0) == BRIEF and not self._brief else LOOKED_AT_S
            if time.monotonic() - began > patience_s:
                os.close(handle)
                raise EnvironmentFault(
                    f"another gateway runs on this home ({self._path}); stop it, or use another --home"
                )
            time.sleep(0.05)
        self._handle = handle
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, BRIEF if self._brief else b"", 0)
            self._take_store()
        except SQLAlchemyError as error:
            self.release()
            raise EnvironmentFault("the database cannot be opened; check DEID_DATABASE_URL") from error
        except BaseException:
            self.release()
            raise

    def keep(self) -> None:
        """Take the store's lock again when its connection broke. Raises EnvironmentFault when somebody else has it by
        then, SQLAlchemyError while the database is out of reach: nothing is lost yet, and the next look tries again.
        """
        if not self.held:
            return
        if self._connection is not None:
            try:
                self._connection.execute(text("SELECT 1"))
            except SQLAlchemyError:
                self._drop_connection()
            else:
                return
        self._take_store()

    def release(self) -> None:
        self._drop_connection()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _take_store(self) -> None:
        if make_url(self._store_url).get_backend_name() != "postgresql":
            return
        deadline = time.monotonic() + PATIENCE_S
        try:
            engine = create_engine(self._store_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
            self._connection = engine.connect()
            take = text(f"SELECT pg_try_advisory_lock{'_shared' if self._shared else ''}(:n)")
            while not self._connection.execute(take, {"n": _ADVISORY}).scalar():
                if time.monotonic() > deadline:
                    raise EnvironmentFault(
                        "another gateway's engine runs on this database; stop it, or give this home one of its own"
                    )
                time.sleep(0.2)
        except BaseException:
            self._drop_connection()
            raise

    def _drop_connection(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.invalidate()
            connection.close()


def is_taken(path: Path) -> bool:
    """True while a process has this lock. Takes it for a moment to see."""
    if not path.exists():
        return False
    handle = os.open(path, os.O_RDWR)
    try:
        return not _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int, *, shared: bool = False) -> bool:
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
