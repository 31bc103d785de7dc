"""`database`, `backup` and `restore` as people type them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from commands import Command

from gateway.database import SCHEMA_VERSION, Database
from gateway.settings import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


def test_status_of_the_database_makes_nothing(command: Command, home: Home) -> None:
    told = command("database", "status", "--home", home.root, "--json").json
    assert told == {"database": "SQLite", "schema": None, "known": SCHEMA_VERSION, "processes": []}
    assert "no tables yet" in command("database", "status", "--home", home.root).out


def test_up_and_down_and_up_again(command: Command, home: Home) -> None:
    assert f"schema {SCHEMA_VERSION}" in command("database", "upgrade", "--home", home.root).out
    ran = command("database", "downgrade", "1", "--home", home.root)
    assert (ran.code, f"schema {SCHEMA_VERSION} -> 1" in ran.out) == (0, True)
    assert command("database", "status", "--home", home.root, "--json").json["schema"] == 1
    assert f"schema 1 -> {SCHEMA_VERSION}" in command("database", "upgrade", "--home", home.root).out
    refused = command("database", "downgrade", "99", "--home", home.root)
    assert (refused.code, "it back to 1 at the least" in refused.err) == (2, True)


def test_nothing_is_taken_back_under_a_running_gateway(command: Command, home: Home) -> None:
    command("database", "upgrade", "--home", home.root)
    handle = os.open(home.engine_lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_SH)
    refused = command("database", "downgrade", "1", "--home", home.root)
    os.close(handle)
    assert (refused.code, "another gateway runs on this home" in refused.err) == (3, True)
    assert command("database", "status", "--home", home.root, "--json").json["schema"] == SCHEMA_VERSION


def test_a_home_is_backed_up_and_restored(command: Command, home: Home, tmp_path: Path) -> None:
    database = Database.in_home(home.database)
    database.record_instance(study_key="s1", name="0001.dcm", sop_key="x", size_bytes=9)
    database.close()
    (home.spool / "s1").mkdir()
    (home.spool / "s1" / "0001.dcm").write_bytes(b"original.")
    folder, other = tmp_path / "backup", tmp_path / "other"
    without = command("backup", folder, "--home", home.root)
    assert (without.code, "the keys are not in it" in without.out) == (0, True)
    again = command("backup", folder, "--home", home.root)
    assert (again.code, "is there already" in again.err) == (2, True)
    refused = command("restore", folder, "--home", other)
    assert (refused.code, "--keys" in refused.err, other.exists()) == (2, True, False)
    ran = command("restore", folder, "--home", other, "--keys", home.keys)
    assert (ran.code, "files, " in ran.out) == (0, True)
    assert (other / "spool" / "s1" / "0001.dcm").read_bytes() == b"original."
    assert command("ledger", "verify", "--home", other).code == 0
    restored = Database.in_home(other / "database.sqlite")
    assert [row.name for row in restored.instances_of("s1")] == ["0001.dcm"]
    restored.close()
