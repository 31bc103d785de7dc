"""Opening: private, durable, versioned, and refused with words that help."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import inspect, text, update

from gateway.database import SCHEMA_VERSION, Database
from gateway.database.tables import metadata, schema
from gateway.errors import EnvironmentFault, UsageError


def test_all_tables_are_made_and_opening_again_keeps_what_is_there(database: Database) -> None:
    assert set(inspect(database.engine).get_table_names()) == set(metadata.tables)
    database.record_instance(study_key="s1", name="0001.dcm", sop_key="x", size_bytes=1)
    database.migrate()
    assert len(database.instances_of("s1")) == 1
    with database.transaction() as connection:
        assert connection.execute(text("SELECT version FROM schema_version")).scalars().all() == [SCHEMA_VERSION]


def test_tables_of_another_version_are_refused(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(update(schema).values(version=SCHEMA_VERSION + 1))
    with pytest.raises(EnvironmentFault, match=f"schema {SCHEMA_VERSION + 1}, this program knows {SCHEMA_VERSION}"):
        database.migrate()


def test_processes_that_start_at_once_make_the_tables_once(database: Database) -> None:
    metadata.drop_all(database.engine)
    opened = [Database(database.url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(Database.migrate, opened))
    for one in opened:
        one.close()
    with database.transaction() as connection:
        assert connection.execute(text("SELECT version FROM schema_version")).scalars().all() == [SCHEMA_VERSION]


def test_an_exception_takes_the_whole_transaction_back(database: Database) -> None:
    def fail() -> None:
        with database.transaction() as connection:
            connection.execute(update(schema).values(version=99))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    database.migrate()


def test_two_handles_see_each_others_rows(database: Database) -> None:
    other = Database(database.url)
    other.record_instance(study_key="s1", name="0001.dcm", sop_key="x", size_bytes=1)
    assert len(database.instances_of("s1")) == 1
    other.close()


def test_sqlite_is_private_and_every_commit_is_on_disk(tmp_path: Path) -> None:
    database = Database.in_home(tmp_path / "database.sqlite")
    assert stat.S_IMODE(os.stat(tmp_path / "database.sqlite").st_mode) == 0o600
    with database.transaction() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL
    database.close()


@pytest.mark.parametrize("url", ["nonsense", "postgresql+nodriver://gateway:s3cret@h/x", "nosuch://u:s3cret@h/x"])
def test_a_url_that_is_none_is_the_users_fault_and_its_password_is_not_shown(url: str) -> None:
    with pytest.raises(UsageError, match="DEID_DATABASE_URL") as refused:
        Database(url)
    assert "s3cret" not in str(refused.value)


def test_a_server_that_does_not_answer_is_the_machines_fault() -> None:
    with pytest.raises(EnvironmentFault, match="DEID_DATABASE_URL") as refused:
        Database.in_home(Path("unused"), "postgresql+psycopg://gateway:s3cret@127.0.0.1:1/gateway?connect_timeout=2")
    assert "s3cret" not in str(refused.value)


def test_a_folder_that_is_missing_is_the_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"missing/database\.sqlite cannot be opened: unable to open"):
        Database.in_home(tmp_path / "missing" / "database.sqlite")
