"""From the tables of an earlier version to those of this one, and back, in one transaction.

A step adds and never rewrites, so that processes of both versions work side by side while one replaces the other. An
earlier version does not open what a later one wrote: it would not see what was added (people who opted out, issues that
were recalled). The way back takes away what was added, and only what holds nothing.
"""

from __future__ import annotations

from sqlalchemy import Column, Connection, func, inspect, select
from sqlalchemy.schema import CreateColumn

from gateway.database.tables import instances, jobs, metadata, processes

# Version -> columns that came with it.
ADDED = {2: (instances.c.issuer_key, jobs.c.issue), 3: (jobs.c.level,)}
# Version -> tables that came with it, by name. Who is at work now is nothing to keep.
MADE = {
    2: ("promises", "shipments", "recalls", "recalled", "reissued", "opted_out", "erasures"),
    3: ("levels", "processes", "backloads", "backload_items", "pauses"),
}
PASSING = frozenset({processes.name})
# Version -> indexes that came with it.
INDEXED = {3: tuple(index for index in instances.indexes if index.name == "instances_by_sop")}


def carry_over(connection: Connection, found: int, wanted: int) -> None:
    """Add what came after version `found`, up to `wanted`."""
    for version in range(found + 1, wanted + 1):
        for column in ADDED.get(version, ()):
            table = column.table
            if column.name not in {one["name"] for one in inspect(connection).get_columns(table.name)}:
                written = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {written}")
        for index in INDEXED.get(version, ()):
            index.create(connection, checkfirst=True)


def carry_back(connection: Connection, found: int, wanted: int) -> list[str]:
    """Take away what came after version `wanted`; or the names of what holds something, and nothing is changed."""
    later = range(wanted + 1, found + 1)
    tables = [metadata.tables[name] for version in later for name in MADE.get(version, ())]
    columns = [column for version in later for column in ADDED.get(version, ())]
    full = [
        table.name
        for table in tables
        if table.name not in PASSING and connection.execute(select(func.count()).select_from(table)).scalar()
    ]
    full += [f"{column.table.name}.{column.name}" for column in columns if _is_used(connection, column)]
    if full:
        return full
    for index in (index for version in later for index in INDEXED.get(version, ())):
        index.drop(connection, checkfirst=True)
    for column in columns:
        connection.exec_driver_sql(f"ALTER TABLE {column.table.name} DROP COLUMN {column.name}")
    for table in tables:
        table.drop(connection, checkfirst=True)
    return []


def _is_used(connection: Connection, column: Column[object]) -> bool:
    """Whether any row has another value than the one that the column came with."""
    default = column.default.arg if column.default is not None else None  # type: ignore[attr-defined]
    return bool(connection.execute(select(func.count()).where(column.is_distinct_from(default))).scalar())
