"""Tables of an earlier version are carried over with all that is in them, on both databases."""

from __future__ import annotations

from sqlalchemy import inspect, text

from gateway.database import SCHEMA_VERSION, Database, Job, Subject
from gateway.database.migrations import ADDED, INDEXED
from gateway.database.tables import metadata


def earlier(database: Database, version: int) -> None:
    """As the tables of a version were: without what came after it."""
    with database.transaction() as connection:
        for later in range(version + 1, SCHEMA_VERSION + 1):
            for column in ADDED.get(later, ()):
                connection.execute(text(f"ALTER TABLE {column.table.name} DROP COLUMN {column.name}"))
            for index in INDEXED.get(later, ()):
                index.drop(connection)
        for name in ("levels", "promises", "shipments", "recalls", "recalled", "reissued", "opted_out", "erasures"):
            connection.execute(text(f"DROP TABLE {name}"))
        connection.execute(text(f"UPDATE schema_version SET version = {version}"))


def shape(database: Database) -> dict[str, set[str]]:
    found = inspect(database.engine)
    return {name: {column["name"] for column in found.get_columns(name)} for name in found.get_table_names()}


def test_what_an_earlier_version_wrote_is_read_with_the_defaults_of_what_came_after(database: Database) -> None:
    database.record_instance(study_key="s1", name="0001.dcm", sop_key="x", size_bytes=1)
    database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
    database.route_study("s1", 1, [Job("j1", "s1", 1, "ct", "demo", "lung", "ab" * 32, "archive")])
    wanted = shape(database)
    earlier(database, 1)
    assert shape(database) != wanted
    database.migrate()
    assert shape(database) == wanted
    assert "instances_by_sop" in {index["name"] for index in inspect(database.engine).get_indexes("instances")}
    assert set(wanted) == set(metadata.tables)
    job, (row,) = database.job("j1"), database.instances_of("s1")
    assert job is not None
    assert (job.issue, job.level, row.issuer_key) == (1, 0, "")
    database.opt_out(Subject("p"), at=1.0, actor="dpo", reason="a letter")
    database.migrate()
    assert len(database.opted_out()) == 1
    with database.transaction() as connection:
        assert connection.execute(text("SELECT version FROM schema_version")).scalars().all() == [SCHEMA_VERSION]


def test_a_migration_that_was_cut_off_is_done_again(database: Database) -> None:
    earlier(database, 1)
    with database.transaction() as connection:  # one of two columns is there already
        connection.execute(text("ALTER TABLE jobs ADD COLUMN issue INTEGER DEFAULT 1 NOT NULL"))
    database.migrate()
    assert database.jobs_in() == []


def test_the_index_that_came_with_version_3_is_made_in_tables_of_version_2(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(text("DROP INDEX instances_by_sop"))
        connection.execute(text("UPDATE schema_version SET version = 2"))
    database.migrate()
    assert "instances_by_sop" in {index["name"] for index in inspect(database.engine).get_indexes("instances")}
