"""`status` and `ledger verify`: where the studies are, and whether the record of decisions is whole."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Command

from gateway.database import Database
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, Settings


@pytest.fixture
def ledger(home: Home, settings: Callable[..., Settings]) -> Ledger:
    made = Ledger(home.ledger, Keys(master_key(home, settings())).ledger)
    for i in range(4):
        made.append("sent", f"sent/{i}", job=f"job{i}")
    return made


def test_a_fresh_home_has_an_empty_sound_ledger(command: Command, home: Home) -> None:
    ran = command("ledger", "verify", "--home", home.root)
    assert (ran.code, ran.out) == (0, "sound: 0 lines, chain and head match\n")


def test_a_sound_ledger_ends_with_0(command: Command, home: Home, ledger: Ledger) -> None:
    assert command("ledger", "verify", "--home", home.root).code == 0
    ran = command("ledger", "verify", "--home", home.root, "--json")
    assert ran.json == {"lines": 4, "sound": True, "fault": "", "line": 0}


def changed(data: bytes) -> bytes:
    return data.replace(b'"job":"job1"', b'"job":"job9"')


def swapped(data: bytes) -> bytes:
    first, second, *rest = data.splitlines(keepends=True)
    return b"".join([second, first, *rest])


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (changed, 2),
        (swapped, 1),
        (lambda data: b"".join(data.splitlines(keepends=True)[:-1]), 4),
        (lambda data: b"[]\n" + data, 1),
        (lambda data: b"7\n" + data, 1),
        (lambda data: data + b"\xff\xfe\n", 5),
        (lambda data: data + b"null\n", 5),
        (lambda data: data + data.splitlines(keepends=True)[-1], 5),
        (lambda data: data[:-1], 4),
    ],
)
def test_a_damaged_ledger_ends_with_1_and_names_the_line(
    command: Command, home: Home, ledger: Ledger, damage: Callable[[bytes], bytes], line: int
) -> None:
    home.ledger.write_bytes(damage(home.ledger.read_bytes()))
    ran = command("ledger", "verify", "--home", home.root)
    assert ran.code == 1
    assert f"broken at line {line}: " in ran.out
    told = command("ledger", "verify", "--home", home.root, "--json")
    assert told.code == 1
    assert (told.json["sound"], told.json["line"]) == (False, line)


@pytest.mark.parametrize(
    "head", [b"", b"{", b"[]", b"null", b"{}", b'{"line":4}', b'{"line":"4","last":1,"mac":2}', b"\xff"]
)
def test_a_damaged_head_ends_with_1(command: Command, home: Home, ledger: Ledger, head: bytes) -> None:
    home.ledger.with_name(home.ledger.name + ".head").write_bytes(head)
    ran = command("ledger", "verify", "--home", home.root)
    assert ran.code == 1
    assert "head" in ran.out


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda key: key.unlink(), "no master key"),
        (lambda key: key.chmod(0o644), "is open to others"),
        (lambda key: key.write_text("ab" * 32), "too weak"),
        (lambda key: key.write_text("abc"), "not hex"),
        (lambda key: key.write_bytes(b"\xff\xfe"), "cannot be read"),
    ],
)
@pytest.mark.parametrize("words_", [("ledger", "verify"), ("status",), ("serve",), ("cohort-hash",)], ids=" ".join)
def test_a_key_that_is_missing_open_or_weak_is_an_environment_fault(
    command: Command, home: Home, spoil: Callable[[Path], None], words: str, words_: tuple[str, ...]
) -> None:
    spoil(home.master_key)
    ran = command(*words_, "--home", home.root)
    assert ran.code == 3
    assert words in ran.err
    assert str(home.master_key) in ran.err


def test_status_of_a_fresh_home(command: Command, home: Home) -> None:
    ran = command("status", "--home", home.root)
    assert ran.code == 0
    assert f"gateway: not running on {home.root}" in ran.out
    told = command("status", "--home", home.root, "--json").json
    assert told["free_bytes"] > 0
    del told["free_bytes"]
    assert told == {
        "running": False,
        "jobs": [],
        "levels": [],
        "receiving": 0,
        "held_before_routing": 0,
        "held_by_scrub": 0,
        "ledger_lines": 0,
        "ledger_fault": "",
        "destinations": [
            {"destination": "local-folder", "state": "open", "waiting": 0},
            {"destination": "research-archive", "state": "open", "waiting": 0},
        ],
    }


def test_status_counts_what_is_in_the_tables(command: Command, home: Home, ledger: Ledger) -> None:
    database = Database.in_home(home.database)
    database.record_instance(study_key="s1", name="0001.dcm", sop_key="sop", size_bytes=1)
    database.close_complete(quiet_s=0, forced_s=3600, use_expected=False)
    database.set_study("s1", 1, state="held", reason="no_route")
    database.record_instance(study_key="s2", name="0001.dcm", sop_key="sop", size_bytes=1)
    database.close()
    told = command("status", "--home", home.root, "--json").json
    assert (told["held_before_routing"], told["receiving"], told["ledger_lines"]) == (1, 1, 4)
    assert "receiving now: 1; held before routing: 1" in command("status", "--home", home.root).out


def test_status_tells_whether_a_gateway_has_the_home(command: Command, home: Home) -> None:
    handle = os.open(home.engine_lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert command("status", "--home", home.root, "--json").json["running"] is True
    os.close(handle)
    assert command("status", "--home", home.root, "--json").json["running"] is False


def test_status_of_a_damaged_ledger_tells_the_rest_and_ends_with_3(
    command: Command, home: Home, ledger: Ledger
) -> None:
    home.ledger.write_bytes(changed(home.ledger.read_bytes()))
    ran = command("status", "--home", home.root)
    assert ran.code == 3
    assert "gateway: not running" in ran.out
    assert "damaged at line 2" in ran.err
    told = command("status", "--home", home.root, "--json")
    assert told.code == 3
    assert "damaged at line 2" in told.json["ledger_fault"]


def test_a_database_that_is_none_is_an_environment_fault(command: Command, home: Home) -> None:
    home.database.write_bytes(b"this is no database at all, and long enough to be looked at" * 50)
    for words in (("status",), ("held", "list"), ("held", "show", "x")):
        ran = command(*words, "--home", home.root)
        assert ran.code == 3, words
        assert "database" in ran.err


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("postgresql+psycopg://user:s3cr3tpw@127.0.0.1:1/x", 3),
        ("nonsense://user:s3cr3tpw@x", 2),
        ("nonsense s3cr3tpw", 2),
    ],
)
def test_a_database_that_cannot_be_reached_is_told_without_its_password(
    command: Command, home: Home, monkeypatch: pytest.MonkeyPatch, url: str, code: int
) -> None:
    monkeypatch.setenv("DEID_DATABASE_URL", url)
    ran = command("held", "list", "--home", home.root)
    assert ran.code == code
    assert "DEID_DATABASE_URL" in ran.err
    assert "s3cr3tpw" not in ran.err + ran.out
