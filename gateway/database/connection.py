"""One engine, one way to open a transaction, and the schema's version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, insert, inspect, select, update
from sqlalchemy.exc import ArgumentError, OperationalError

from gateway.database.arrivals import Arrivals
from gateway.database.backloads import Backloads
from gateway.database.intents import Intents
from gateway.database.jobs import Jobs
from gateway.database.levels import Levels
from gateway.database.mappings import Mappings
from gateway.database.migrations import carry_back, carry_over
from gateway.database.pauses import Pauses
from gateway.database.processes import IDLE_S, Processes, require_standing
from gateway.database.promises import Promises
from gateway.database.recalls import Recalls
from gateway.database.release_members import ReleaseMembers
from gateway.database.releases import Releases
from gateway.database.retained import Retention
from gateway.database.reviews import Reviews
from gateway.database.rights import Rights
from gateway.database.studies import Studies
from gateway.database.tables import SCHEMA_VERSION, metadata, schema
from gateway.errors import EnvironmentFault, UsageError

_MIGRATION_LOCK = 0x64656964  # any number that nobody else locks: "deid"


def _sqlite_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # C-STORE success means on disk
    cursor.execute("PRAGMA busy_timeout=30000")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA secure_delete=ON")  # what is overwritten is gone, not left in free pages
    cursor.close()


def _postgresql_session(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_S}s'")
    connection.commit()


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


class Database(
    Arrivals,
    Processes,
    Studies,
    Jobs,
    Intents,
    Retention,
    Mappings,
    Reviews,
    Releases,
    ReleaseMembers,
    Levels,
    Recalls,
    Rights,
    Promises,
    Pauses,
    Backloads,
):
    """Open tables. Safe to share between threads; other processes open their own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.executor = ""  # this process among several; "" = the only one, or one that does none of their work
        try:
            self.engine: Engine = create_engine(url, pool_pre_ping=True)
        except (ArgumentError, ImportError) as error:  # its text may quote the URL, and with it a password
            raise UsageError(
                "DEID_DATABASE_URL is no URL that we can open; "
                "write postgresql+psycopg://user@host/name, and install deid-gateway[cluster]"
            ) from error
        if self.engine.dialect.name == "sqlite":
            event.listen(self.engine, "connect", _sqlite_pragmas)
            # Take the write lock at once: a read that later writes would otherwise fail instead of waiting.
            event.listen(self.engine, "begin", _begin_immediate)
        elif self.engine.dialect.name == "postgresql":
            event.listen(self.engine, "connect", _postgresql_session)

    @classmethod
    def in_home(cls, database: Path, url: str = "") -> Database:
        """The database of a home: `url` when set, else SQLite at `database`. Tables are made when missing."""
        opened = cls(url or f"sqlite:///{database}")
        opened.migrate()
        if not url:
            database.chmod(0o600)
        return opened

    def migrate(self) -> None:
        """Create the tables, carry those of an earlier version over, or refuse a database that a newer version wrote.
        Raises EnvironmentFault.
        """
        try:
            with self.transaction() as connection:
                if connection.dialect.name == "postgresql":  # several processes may start at once
                    connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
                metadata.create_all(connection)
                found = connection.execute(select(schema.c.version)).scalar()
                if found is None:
                    connection.execute(insert(schema).values(version=SCHEMA_VERSION))
                elif found < SCHEMA_VERSION:
                    carry_over(connection, found, SCHEMA_VERSION)
                    connection.execute(update(schema).values(version=SCHEMA_VERSION))
                    found = SCHEMA_VERSION
        except OperationalError as error:
            raise self._unopened(error) from error
        if found is not None and found != SCHEMA_VERSION:
            raise EnvironmentFault(
                f"the database has schema {found}, this program knows {SCHEMA_VERSION}; run the version that wrote it"
            )

    def version(self) -> int | None:
        """The schema that is there, without changing it; None where there is none. Raises EnvironmentFault."""
        try:
            if not inspect(self.engine).has_table(schema.name):
                return None
            with self.transaction() as connection:
                return connection.execute(select(schema.c.version)).scalar()
        except OperationalError as error:
            raise self._unopened(error) from error

    def _unopened(self, error: OperationalError) -> EnvironmentFault:
        if self.engine.dialect.name != "sqlite":  # a driver's text may quote the URL
            return EnvironmentFault("the database cannot be opened; check DEID_DATABASE_URL and the disk")
        says = f"the database {self.engine.url.database} cannot be opened: {error.orig}"
        return EnvironmentFault(f"{says}; look at its folder, its owner and the disk")

    def downgrade(self, wanted: int) -> None:
        """Back to the schema of an earlier version. Raises UsageError where something would be lost, or somebody is at
        work.
        """
        with self.transaction() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            found = connection.execute(select(schema.c.version)).scalar_one()
            if not 1 <= wanted <= found <= SCHEMA_VERSION:
                raise UsageError(f"the database has schema {found}; this program can take it back to 1 at the least")
            full = carry_back(connection, found, wanted)
            if full:
                raise UsageError(
                    f"schema {wanted} has no place for what is in {', '.join(full)}, and an earlier version would act "
                    "without it; stay with this version, or restore a backup from before the upgrade"
                )
            connection.execute(update(schema).values(version=wanted))

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction: committed at the end, rolled back on any exception. Raises Stopping when this process was
        taken for dead, and others have its work.
        """
        with self.engine.begin() as connection:
            if self.executor:
                require_standing(connection, self.executor)
            yield connection

    def checkpoint(self) -> None:
        """Empty SQLite's write-ahead log, so that nothing overwritten is left in it. PostgreSQL's is not ours to empty.

        While another process reads, it stays for the next time.
        """
        if self.engine.dialect.name != "sqlite":
            return
        raw = self.engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            raw.close()

    def close(self) -> None:
        self.engine.dispose()
