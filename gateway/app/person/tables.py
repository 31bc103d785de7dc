"""Lookup and merge tables at work: read again when they changed, known by keyed hashes.

Only a surviving ID of a merge stays in memory as it is, because its pseudonym is made from it.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SecretStr
from sqlalchemy import ColumnClause, column, create_engine, select, table
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from gateway.errors import Fault, Hold, PolicyError, Retry
from gateway.policy import PatientIdPolicy
from gateway.policy.people_files import Row, clean_id, lookup_of, read_lookup, read_merges
from gateway.pseudonyms import Keys, person_key

SQL_FRESH_S = 60.0  # a database is asked again after this
MAX_ROWS = 2_000_000
JUST_WRITTEN_NS = 2_000_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lookup:
    """Pseudonyms by the keyed name of a person. `key` names the contents of the table, keyed."""

    pseudonyms: Mapping[str, str]
    key: str


@dataclass(frozen=True, slots=True)
class Merges:
    """Which IDs mean one person, by keyed names: `survivor` of an old one, `others` of a surviving one."""

    survivor: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, frozenset[str]] = field(default_factory=dict)
    surviving_ids: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: str = ""

    def names(self, names: frozenset[str]) -> frozenset[str]:
        """These keyed names, and all that mean the same people."""
        survivors = {self.survivor.get(name, name) for name in names}
        return names | survivors.union(*(self.others.get(name, frozenset()) for name in survivors))


class PeopleTables:
    """The tables of a policies folder and of the databases that the settings name. Safe to share between threads."""

    def __init__(self, folder: Path, keys: Keys, urls: Mapping[str, SecretStr]) -> None:
        self._folder = folder
        self._keys = keys
        self._people = keys.people
        self._urls = urls
        self._lock = threading.Lock()
        self._read: dict[tuple[Any, ...], tuple[Hashable, Any]] = {}

    def lookup(self, rule: PatientIdPolicy) -> Lookup:
        """Raises PolicyError with every fault of the table, Retry `lookup_unreachable` for a silent database."""
        if rule.sql:
            fresh = int(time.monotonic() / SQL_FRESH_S)
            return self._once(("sql", rule), fresh, lambda: self._lookup(self._of_database(rule)))
        path = self._folder / rule.table
        which = ("csv", path, rule.original, rule.replacement)
        return self._once(which, _state(path), lambda: self._lookup(read_lookup(path, rule.original, rule.replacement)))

    def merges(self, rule: PatientIdPolicy) -> Merges:
        """Nothing merged without `merge`. Raises PolicyError."""
        if not rule.merge:
            return Merges()
        path = self._folder / rule.merge
        return self._once(("merge", path), _state(path), lambda: self._merges(read_merges(path)))

    def _once(self, which: tuple[Any, ...], state: Hashable, read: Callable[[], T]) -> T:
        with self._lock:
            known = self._read.get(which)
            if known is None or known[0] != state:
                known = self._read[which] = (state, read())
            found: T = known[1]
            return found

    def _lookup(self, rows: Mapping[str, str]) -> Lookup:
        by_person = {person_key(self._people, original): pseudonym for original, pseudonym in rows.items()}
        return Lookup(by_person, self._contents(by_person))

    def _merges(self, rows: Mapping[str, str]) -> Merges:
        survivor = {person_key(self._people, old): person_key(self._people, new) for old, new in rows.items()}
        others: dict[str, set[str]] = defaultdict(set)
        for old, new in survivor.items():
            others[new].add(old)
        return Merges(
            survivor,
            {new: frozenset(old) for new, old in others.items()},
            {person_key(self._people, new): new for new in set(rows.values())},
            self._contents(survivor),
        )

    def _contents(self, rows: Mapping[str, str]) -> str:
        """A keyed name of the rows: without the key nobody can try out what they might be."""
        text = "\n".join(f"{key},{value}" for key, value in sorted(rows.items()))
        return self._keys.opaque("table", hashlib.sha256(text.encode()).hexdigest())

    def _of_database(self, rule: PatientIdPolicy) -> Mapping[str, str]:
        name = f"{rule.sql}: {rule.table}"
        if rule.sql not in self._urls:
            known = ", ".join(self._urls) or "none"
            raise PolicyError([Fault(name, 0, "DEID_LOOKUP_URLS has no database of that name", f"there is: {known}")])
        schema, _, table_name = rule.table.rpartition(".")
        key: ColumnClause[Any] = column(rule.original)
        value: ColumnClause[Any] = column(rule.replacement)
        query = select(key, value).select_from(table(table_name, key, value, schema=schema or None))
        try:
            engine = create_engine(self._urls[rule.sql].get_secret_value())
        except (ArgumentError, ImportError):  # the text may quote the URL, and with it a password
            hint = "write postgresql+psycopg://user@host/name, and install its driver"
            raise PolicyError([Fault(name, 0, "the URL in DEID_LOOKUP_URLS cannot be opened", hint)]) from None
        try:
            with engine.connect() as connection:
                found = connection.execute(query.limit(MAX_ROWS + 1)).all()
        except SQLAlchemyError:  # also for a table that is not there: the database may be in repair
            raise Retry("lookup_unreachable", at=name) from None
        finally:
            engine.dispose()
        if len(found) > MAX_ROWS:
            raise PolicyError(
                [Fault(name, 0, f"has more than {MAX_ROWS} rows", "name a view of this project's people")]
            )
        rows = [Row(number, _text(row[0]), _text(row[1])) for number, row in enumerate(found, 1)]
        return lookup_of(rows, name, numbered=False)


def _text(value: object) -> str:
    """A cell as text; what is neither text nor a whole number is no ID."""
    return clean_id(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _state(path: Path) -> Hashable:
    """What changes when a file does; never twice the same for one that was just written, as clocks have ticks."""
    try:
        found = path.stat()
    except OSError:
        return None
    written = max(found.st_mtime_ns, found.st_ctime_ns)
    moment = time.monotonic_ns() if abs(time.time_ns() - written) < JUST_WRITTEN_NS else 0
    return moment, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode


def held_for(error: PolicyError) -> Hold:
    """A table that cannot be followed holds the study; the place of its first fault is the site's own file."""
    first = error.faults[0]
    name = Path(first.file).name
    return Hold("lookup_unusable", at=f"{name}:{first.line}" if first.line else name)
