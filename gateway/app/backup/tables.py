"""Our tables out of one database and into another, whatever kind each is of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, MetaData, Table, create_engine, event, func, insert, inspect, select
from sqlalchemy.pool import NullPool

from gateway.database import SCHEMA_VERSION, Database
from gateway.database.tables import metadata, processes, schema
from gateway.errors import EnvironmentFault, UsageError

ROWS_AT_ONCE = 1000
_KEPT = [table for table in metadata.sorted_tables if table.name not in (processes.name, schema.name)]


@contextmanager
def snapshot(url: str) -> Iterator[Connection]:
    """A look at all tables as they are in one moment: that of the first statement. Writers are not kept waiting.

    Raises EnvironmentFault for the schema of another version.
    """
    embedded = url.startswith("sqlite")
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT" if embedded else "REPEATABLE READ")
    if embedded:  # its driver begins no transaction for reading by itself
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def require_schema(connection: Connection) -> None:
    """The first statement of a snapshot. Raises EnvironmentFault for the schema of another version."""
    found = connection.execute(select(schema.c.version)).scalar()
    if found != SCHEMA_VERSION:
        raise EnvironmentFault(f"the database has schema {found}, not {SCHEMA_VERSION}; use the version that wrote it")


def write_tables(source: Connection, path: Path) -> int:
    """All rows into a new SQLite file; how many."""
    made = Database(f"sqlite:///{path}")
    try:
        made.migrate()
        with made.transaction() as target:
            count = _copy(source, target)
        made.checkpoint()
    finally:
        made.close()
    path.chmod(0o600)
    return count


def require_empty(database: Database) -> None:
    """Raise UsageError for a database that holds something: restoring never mixes."""
    with database.transaction() as connection:
        tables = list(_KEPT)
        if connection.dialect.name == "postgresql" and inspect(connection).has_table("workflow_status", schema="dbos"):
            tables.append(Table("workflow_status", MetaData(), schema="dbos"))  # the engine would take up its work
        for table in tables:
            if connection.execute(select(func.count()).select_from(table)).scalar():
                raise UsageError(
                    f"the database holds something already (table {table.name}); name an empty one in DEID_DATABASE_URL"
                )


def read_tables(path: Path, database: Database) -> int:
    """All rows of such a file, of this or an earlier version, into empty tables, or none; how many."""
    written = Database(f"sqlite:///{path}")
    try:
        written.migrate()
        with written.engine.connect() as source, database.transaction() as target:
            count = _copy(source, target)
            if target.dialect.name == "postgresql":
                _count_on(target)
    finally:
        written.close()
    return count


def _copy(source: Connection, target: Connection) -> int:
    count = 0
    for table in _KEPT:
        rows = source.execution_options(yield_per=ROWS_AT_ONCE).execute(select(table)).mappings()
        for part in rows.partitions(ROWS_AT_ONCE):
            target.execute(insert(table), [dict(row) for row in part])
            count += len(part)
    return count


def _count_on(target: Connection) -> None:
    """Numbers that PostgreSQL gives rows go on where those of the copied rows end."""
    for table in _KEPT:
        for column in table.primary_key:
            if column.name == "serial":
                last = select(func.max(column)).scalar_subquery()
                sequence = func.pg_get_serial_sequence(table.name, column.name)
                target.execute(select(func.setval(sequence, func.coalesce(last, 1), last.is_not(None))))
