"""From the tables of an earlier version to those of this one, in one transaction. Missing tables are made before.

A step adds and never rewrites: an earlier version must not open what a later one wrote, because it would not see what
was added (people who opted out, issues that were recalled).
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect
from sqlalchemy.schema import CreateColumn

from gateway.database.tables import instances, jobs

# Version -> columns that came with it.
ADDED = {2: (instances.c.issuer_key, jobs.c.issue)}
# Version -> indexes that came with it.
INDEXED = {2: tuple(index for index in instances.indexes if index.name == "instances_by_sop")}


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
