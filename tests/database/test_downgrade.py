"""Back to the tables of an earlier version, on both databases: only where nothing would be lost."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect, text

from gateway.database import SCHEMA_VERSION, Database, Job, Subject
from gateway.database.migrations import ADDED, INDEXED, MADE
from gateway.database.tables import metadata
from gateway.errors import EnvironmentFault, UsageError


def shape(database: Database) -> dict[str, set[str]]:
    found = inspect(database.engine)
    return {name: {column["name"] for column in found.get_columns(name)} for name in found.get_table_names()}


def with_a_job(database: Database) -> None:
    database.record_instance(study_key="s1", name="0001.dcm", sop_key="x", size_bytes=1)
    database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
    database.route_study("s1", 1, [Job("j1", "s1", 1, "ct", "demo", "lung", "ab" * 32, "archive")])


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_back_and_forward_again_keeps_what_both_versions_know(database: Database, version: int) -> None:
    with_a_job(database)
    wanted, job = shape(database), database.job("j1")
    database.downgrade(version)
    assert database.version() == version
    later = range(version + 1, SCHEMA_VERSION + 1)
    gone = {(column.table.name, column.name) for one in later for column in ADDED.get(one, ())}
    there = shape(database)
    assert set(wanted) - set(there) == {name for one in later for name in MADE.get(one, ())}
    assert {(name, column) for name in there for column in wanted[name] - there[name]} == gone
    indexes = {index["name"] for name in there for index in inspect(database.engine).get_indexes(name)}
    assert not indexes & {index.name for one in later for index in INDEXED.get(one, ())}
    database.migrate()
    assert shape(database) == wanted
    assert database.job("j1") == job


def test_every_table_and_column_of_now_is_known_to_the_way_back() -> None:
    made = {name for names in MADE.values() for name in names}
    first = {"schema_version", "studies", "instances", "jobs", "outgoing", "intents", "people", "mapped", "issued"}
    assert set(metadata.tables) == made | first | {"releases", "release_members"}


def test_people_who_opted_out_keep_the_tables_as_they_are(database: Database) -> None:
    with_a_job(database)
    database.opt_out(Subject("p"), at=1.0, actor="dpo", reason="a letter")
    before = shape(database)
    with pytest.raises(UsageError, match="opted_out, and an earlier version would act without it"):
        database.downgrade(1)
    assert (shape(database), database.version()) == (before, SCHEMA_VERSION)
    assert len(database.opted_out()) == 1


def test_a_column_that_is_used_keeps_the_tables_as_they_are(database: Database) -> None:
    with_a_job(database)
    database.set_job("j1", issue=2)
    with pytest.raises(UsageError, match=r"jobs\.issue"):
        database.downgrade(1)


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1])
def test_there_is_no_way_to_versions_that_were_never_there(database: Database, version: int) -> None:
    with pytest.raises(UsageError, match=f"the database has schema {SCHEMA_VERSION}"):
        database.downgrade(version)


def test_an_earlier_program_does_not_open_what_a_later_one_wrote(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(text(f"UPDATE schema_version SET version = {SCHEMA_VERSION + 1}"))
    with pytest.raises(EnvironmentFault, match="run the version that wrote it"):
        database.migrate()
