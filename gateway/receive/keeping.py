"""Kept together: objects that arrive at the same time share the folder's sync and the database's commit.

Each waits for a disk to turn, and a commit for eight costs no more than for one. Whoever comes first while nobody is
keeping keeps its own object at once; those that come meanwhile are the next batch, kept by the first of them. One
association alone never waits for another, and needs no thread of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError

from gateway.database import Database, NewInstance
from gateway.errors import GatewayError
from gateway.spool import Spool


class NotKept(GatewayError):
    """Whoever was keeping this object ended before it said what became of it."""


@dataclass(slots=True)
class Whole:
    """An object that is whole and synced, and what became of it: `error` is None when it is kept."""

    part: Path
    study_key: str
    sop_key: str
    size_bytes: int
    expected: int
    name: str = ""
    error: Exception | None = None
    leads: bool = False
    woken: threading.Event = field(default_factory=threading.Event)

    def row(self) -> NewInstance:
        return NewInstance(self.study_key, self.name, self.sop_key, self.size_bytes, self.expected)


class Keeping:
    """Moves whole objects to their studies and writes their rows. Shared by all associations.

    `turn` is held while rows are written: other processes may have the same tables.
    """

    def __init__(
        self, spool: Spool, database: Database, turn: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._spool = spool
        self._database = database
        self._turn = turn
        self._lock = threading.Lock()
        self._waiting: list[Whole] = []
        self._led = False
        self._doubtful: list[Whole] = []  # touched only by the one that keeps

    def keep(self, whole: Whole) -> None:
        """Return when file and row are on disk. Raises OSError or SQLAlchemyError: then neither stays, or, when the
        database cannot even say whether it has the row, the file waits until it can."""
        whole.error = NotKept("the object was not kept")
        with self._lock:
            self._waiting.append(whole)
            whole.leads, self._led = not self._led, True
        if not whole.leads:
            whole.woken.wait()
        if whole.leads:
            with self._lock:
                batch, self._waiting = self._waiting, []
            try:
                self._keep(batch)
            finally:
                self._hand_over(batch)
        if whole.error is not None:
            raise whole.error

    def _hand_over(self, batch: Sequence[Whole]) -> None:
        with self._lock:
            successor = self._waiting[0] if self._waiting else None
            self._led = successor is not None
        if successor is not None:
            successor.leads = True
            successor.woken.set()
        for whole in batch:
            whole.leads = False
            whole.woken.set()

    def _keep(self, batch: Sequence[Whole]) -> None:
        moved = []
        for whole in batch:
            try:
                whole.name = self._spool.move(whole.part, whole.study_key)
                moved.append(whole)
            except OSError as error:
                whole.error = error
        try:
            for study_key in {whole.study_key for whole in moved}:
                self._spool.sync(study_key)
            self._record(moved)
        except (OSError, SQLAlchemyError) as error:
            for whole in moved:
                whole.error = error
        finally:
            self._doubtful += [whole for whole in moved if whole.error is not None]
            if self._doubtful:
                self._settle()

    def _record(self, moved: Sequence[Whole]) -> None:
        """Write the rows, all at once; when one of them is refused, each by itself."""
        if not moved:
            return
        try:
            with self._turn():
                self._database.record_instances([whole.row() for whole in moved])
        except (DataError, IntegrityError):
            for whole in moved:
                try:
                    self._database.record_instances([whole.row()])
                    whole.error = None
                except DBAPIError as error:
                    whole.error = error
            return
        for whole in moved:
            whole.error = None

    def _settle(self) -> None:
        """Remove moved files whose row was not written. A commit may fail after it was made (a server's connection
        breaks), and a row without a file would be a loss; so the database is asked, and while it does not answer the
        file stays, at the longest until `Spool.sweep` at the next start."""
        while self._doubtful:
            whole = self._doubtful[-1]
            try:
                if all(row.name != whole.name for row in self._database.instances_of(whole.study_key)):
                    self._spool.path(whole.study_key, whole.name).unlink(missing_ok=True)
            except (SQLAlchemyError, OSError):
                return
            self._doubtful.pop()
