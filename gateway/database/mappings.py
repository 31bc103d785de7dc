"""Whom a study was mapped to, under which key, and which pseudonyms were issued. Keyed hashes only.

A mapping may still change (a table was corrected, people were merged) as long as nothing under it has left. What has
left binds: a person keeps key and pseudonym, a study its person, and no pseudonym goes to a second person.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from gateway.database.tables import issued, mapped, people

LOOKUP, KEYED = "lookup", "keyed"
TAKEN, CHANGED, MOVED = "pseudonym_taken", "pseudonym_changed", "mapping_changed"


@dataclass(frozen=True, slots=True)
class Mapped:
    """What one piece of work is mapped with. `source`: keyed, lookup; `table_key` names the tables' contents."""

    work_key: str
    project: str
    study_key: str
    person_key: str
    key_id: str
    source: str
    table_key: str = ""


class Mappings:
    """Mixed into Database."""

    def transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError("Database provides it")

    def key_of_person(self, project: str, person_key: str, active: str) -> str:
        """The id of the key that a person of a project is mapped with; `active` from now on for a new one."""
        which = (people.c.project == project) & (people.c.person_key == person_key)
        known = select(people.c.key_id).where(which)
        with self.transaction() as connection:
            found = connection.execute(known).scalar()
            if found is not None:
                return str(found)
            values = {"project": project, "person_key": person_key, "key_id": active, "first_at": time.time()}
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            connection.execute(dialect.insert(people).values(**values).on_conflict_do_nothing())
            return str(connection.execute(known).scalar_one())  # another process may have been first

    def people_by_key(self) -> dict[str, int]:
        """How many people (of any project) each key has mapped, by its id."""
        with self.transaction() as connection:
            rows = connection.execute(select(people.c.key_id, func.count()).group_by(people.c.key_id)).all()
        return {row[0]: row[1] for row in rows}

    def map_work(self, work: Mapped, pseudonym_key: str = "") -> str:
        """Note what a piece of work is mapped with; "" or the reason code why what has left forbids it.

        `pseudonym_key` is the keyed hash of the pseudonym where it is known already.
        """
        with self.transaction() as connection:
            conflict = _conflict(connection, work, pseudonym_key)
            if conflict:
                return conflict
            values = {**asdict(work), "mapped_at": time.time()}
            here = mapped.c.work_key == work.work_key
            if connection.execute(select(mapped.c.work_key).where(here)).first() is None:
                connection.execute(insert(mapped).values(**values))
            else:
                connection.execute(update(mapped).where(here).values(**values))
            return ""

    def mapped_as(self, work_key: str) -> Mapped | None:
        with self.transaction() as connection:
            return _of_work(connection, work_key)

    def is_follow_up(self, work_key: str) -> bool:
        """Whether another study of the same person, in the same project, left before anything of this one did."""
        with self.transaction() as connection:
            work = _of_work(connection, work_key)
            if work is None:
                return False
            here = mapped.c.project == work.project
            own = select(func.min(mapped.c.issued_at)).where(here, mapped.c.study_key == work.study_key)
            others = select(func.min(mapped.c.issued_at)).where(
                here, mapped.c.person_key == work.person_key, mapped.c.study_key != work.study_key
            )
            left, first = connection.execute(own).scalar(), connection.execute(others).scalar()
            return first is not None and (left is None or first < left)

    def issue(self, work_key: str, pseudonym_key: str) -> str:
        """Note that a piece of work is about to leave under this pseudonym; "" or the reason code why it may not.

        Idempotent. When this returns "", the pseudonym is that person's for good.
        """
        with self.transaction() as connection:
            work = _of_work(connection, work_key)
            if work is None:
                return MOVED
            _lock_project(connection, work.project)
            conflict = _conflict(connection, work, pseudonym_key)
            if conflict:
                return conflict
            now = time.time()
            which = (issued.c.project == work.project) & (issued.c.pseudonym_key == pseudonym_key)
            if connection.execute(select(issued.c.person_key).where(which)).first() is None:
                row = {"project": work.project, "person_key": work.person_key, "source": work.source}
                connection.execute(insert(issued).values(**row, pseudonym_key=pseudonym_key, issued_at=now))
            not_yet = (mapped.c.work_key == work_key) & mapped.c.issued_at.is_(None)
            connection.execute(update(mapped).where(not_yet).values(issued_at=now))
            return ""


def _of_work(connection: Connection, work_key: str) -> Mapped | None:
    row = connection.execute(select(mapped).where(mapped.c.work_key == work_key)).first()
    return Mapped(*(getattr(row, name) for name in Mapped.__dataclass_fields__)) if row else None


def _lock_project(connection: Connection, project: str) -> None:
    """Two pieces of work of one project are issued one after the other. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"issue/{project}", 0))))


def _conflict(connection: Connection, work: Mapped, pseudonym_key: str) -> str:
    """The reason code for what has left already under another mapping, or ""."""
    of_project = issued.c.project == work.project
    if pseudonym_key:
        owner = select(issued.c.person_key).where(of_project, issued.c.pseudonym_key == pseudonym_key)
        if connection.execute(owner).scalar() not in (None, work.person_key):
            return TAKEN
    others = select(issued.c.source).where(
        of_project, issued.c.person_key == work.person_key, issued.c.pseudonym_key != pseudonym_key
    )
    # Keyed pseudonyms of one person differ by the prefix of the policy alone; a table's entry is the only one there is.
    sources = {row.source for row in connection.execute(others)}
    if sources and LOOKUP in {*sources, work.source}:
        return CHANGED
    elsewhere = select(mapped.c.work_key).where(
        mapped.c.project == work.project,
        mapped.c.study_key == work.study_key,
        mapped.c.issued_at.is_not(None),
        or_(mapped.c.person_key != work.person_key, mapped.c.key_id != work.key_id),
    )
    return MOVED if connection.execute(elsewhere).first() is not None else ""
