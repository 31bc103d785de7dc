"""Back-loads: lists of studies that are fetched from a PACS, entry by entry. What identifies lies here encrypted, and
no longer than the back-load needs it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    insert,
    select,
    update,
)

from gateway.database.tables import instances, metadata

RUNNING, PAUSED, STOPPED, DONE = "running", "paused", "stopped", "done"
WAITING, ASKED, FOUND, NOT_FOUND, MOVED, FAILED = "waiting", "asked", "found", "not_found", "moved", "failed"
ENTRY, STUDY = "entry", "study"
_Serial = BigInteger().with_variant(Integer, "sqlite")

backloads = Table(
    "backloads",
    metadata,
    Column("serial", _Serial, primary_key=True, autoincrement=True),
    Column("source", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", String(64), nullable=False, default=""),  # a code: why it was paused by itself
    Column("created_at", Float, nullable=False),
    Column("changed_at", Float, nullable=False),
)

# What is to be done: an entry of the list (who or what is asked for), and each study that the PACS has for it.
backload_items = Table(
    "backload_items",
    metadata,
    Column("serial", _Serial, primary_key=True, autoincrement=True),
    Column("backload", BigInteger, nullable=False),
    Column("kind", String(8), nullable=False),  # entry, study
    Column("line", Integer, nullable=False),  # of the list
    Column("item_key", String(64), nullable=False),  # keyed hash of what is encrypted
    Column("ciphertext", Text, nullable=False),  # "" once it is not needed any more
    Column("state", String(16), nullable=False),
    Column("reason", String(64), nullable=False, default=""),
    Column("expected", Integer, nullable=False, default=0),  # instances that the PACS says it has, 0 = not told
    Column("tries", Integer, nullable=False, default=0),
    Column("due_at", Float, nullable=False),
    UniqueConstraint("backload", "kind", "item_key"),
    Index("backload_items_by_state", "backload", "state"),
)


@dataclass(frozen=True, slots=True)
class Backload:
    """One list under way."""

    serial: int
    source: str
    state: str
    reason: str
    created_at: float
    changed_at: float


@dataclass(frozen=True, slots=True)
class NewItem:
    """An entry of the list, or a study."""

    kind: str
    line: int
    item_key: str
    ciphertext: str
    expected: int = 0


@dataclass(frozen=True, slots=True)
class BackloadItem(NewItem):
    """One with its state."""

    serial: int = 0
    backload: int = 0
    state: str = WAITING
    reason: str = ""
    tries: int = 0


class Backloads:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def add_backload(self, source: str, entries: Sequence[NewItem]) -> int:
        """Begin one; its serial. An entry that is there twice is asked for once."""
        now = time.time()
        with self.transaction() as connection:
            values = {"source": source, "state": RUNNING, "created_at": now, "changed_at": now}
            serial = connection.execute(insert(backloads).values(**values)).inserted_primary_key
            assert serial is not None  # noqa: S101
            once = {one.item_key: one for one in reversed(entries)}
            _add(connection, int(serial[0]), sorted(once.values(), key=lambda one: one.line))
        return int(serial[0])

    def backloads(self, *states: str) -> list[Backload]:
        """In these states, oldest first; all when none is named."""
        query = select(backloads).order_by(backloads.c.serial)
        with self.transaction() as connection:
            rows = connection.execute(query.where(backloads.c.state.in_(states)) if states else query).all()
        return [Backload(**row._mapping) for row in rows]

    def set_backload(self, serial: int, state: str, *, still: Sequence[str], reason: str = "") -> bool:
        """Change its state when it is one of `still`; whether it was. At its end all that identifies goes."""
        here = (backloads.c.serial == serial) & backloads.c.state.in_(still)
        with self.transaction() as connection:
            done = connection.execute(
                update(backloads).where(here).values(state=state, reason=reason, changed_at=time.time())
            )
            if done.rowcount and state in (STOPPED, DONE):
                connection.execute(
                    update(backload_items).where(backload_items.c.backload == serial).values(ciphertext="")
                )
        return bool(done.rowcount)

    def next_item(self, serial: int, now: float) -> BackloadItem | None:
        """What is due: studies before entries, so that few lie open. It is marked as asked for."""
        due = (
            select(backload_items)
            .where(
                backload_items.c.backload == serial,
                backload_items.c.state == WAITING,
                backload_items.c.due_at <= now,
            )
            .order_by(backload_items.c.kind.desc(), backload_items.c.serial)
            .limit(1)
        )
        with self.transaction() as connection:
            row = connection.execute(due).first()
            if row is None:
                return None
            connection.execute(update(backload_items).where(backload_items.c.serial == row.serial).values(state=ASKED))
        values = {name: row._mapping[name] for name in BackloadItem.__dataclass_fields__}
        return BackloadItem(**{**values, "state": ASKED})

    def found_studies(self, item: BackloadItem, studies: Sequence[NewItem]) -> None:
        """An entry is resolved: its studies wait, and what was asked for is not needed any more. Nothing is kept for a
        back-load that was stopped meanwhile.
        """
        of_list = select(backloads.c.state).where(backloads.c.serial == item.backload).with_for_update()
        with self.transaction() as connection:
            if connection.execute(of_list).scalar() == STOPPED:
                return
            known = select(backload_items.c.item_key).where(
                backload_items.c.backload == item.backload, backload_items.c.kind == STUDY
            )
            there = set(
                connection.execute(known.where(backload_items.c.item_key.in_([s.item_key for s in studies]))).scalars()
            )
            _add(connection, item.backload, [one for one in studies if one.item_key not in there])
            state = FOUND if studies else NOT_FOUND
            at = backload_items.c.serial == item.serial
            connection.execute(update(backload_items).where(at).values(state=state, ciphertext=""))

    def end_item(self, serial: int, state: str, *, reason: str = "") -> None:
        with self.transaction() as connection:
            at = backload_items.c.serial == serial
            connection.execute(update(backload_items).where(at).values(state=state, reason=reason, ciphertext=""))

    def postpone_item(self, serial: int, *, due_at: float, tries: int, reason: str = "") -> None:
        """Unless another process, which led meanwhile, has brought it to its end."""
        with self.transaction() as connection:
            values = {"state": WAITING, "due_at": due_at, "tries": tries, "reason": reason}
            here = (backload_items.c.serial == serial) & (backload_items.c.state == ASKED)
            connection.execute(update(backload_items).where(here).values(**values))

    def reopen_items(self) -> int:
        """What was asked for when the process ended is asked for again. Returns how many."""
        with self.transaction() as connection:
            done = connection.execute(
                update(backload_items).where(backload_items.c.state == ASKED).values(state=WAITING, due_at=0.0)
            )
        return int(done.rowcount)

    def count_items(self, serial: int) -> dict[tuple[str, str, str], int]:
        """(kind, state, reason) -> how many."""
        columns = (backload_items.c.kind, backload_items.c.state, backload_items.c.reason)
        query = select(*columns, func.count()).where(backload_items.c.backload == serial).group_by(*columns)
        with self.transaction() as connection:
            return {(row[0], row[1], row[2]): row[3] for row in connection.execute(query).all()}

    def lines_of(self, serial: int, *states: str) -> list[tuple[int, str, str]]:
        """(line of the list, state, reason) of what ended so, in the order of the list."""
        query = (
            select(backload_items.c.line, backload_items.c.state, backload_items.c.reason)
            .where(backload_items.c.backload == serial, backload_items.c.state.in_(states))
            .order_by(backload_items.c.line, backload_items.c.serial)
        )
        with self.transaction() as connection:
            return [(row[0], row[1], row[2]) for row in connection.execute(query).all()]

    def count_arrived(self, study_key: str) -> int:
        """Different instances of a study that were received, in all its generations."""
        query = select(func.count(func.distinct(instances.c.sop_key))).where(instances.c.study_key == study_key)
        with self.transaction() as connection:
            return int(connection.execute(query).scalar() or 0)


def _add(connection: Connection, serial: int, items: Sequence[NewItem]) -> None:
    rows = [
        {
            "backload": serial,
            "kind": one.kind,
            "line": one.line,
            "item_key": one.item_key,
            "ciphertext": one.ciphertext,
            "state": WAITING,
            "expected": one.expected,
            "due_at": 0.0,
        }
        for one in items
    ]
    if rows:
        connection.execute(insert(backload_items), rows)
