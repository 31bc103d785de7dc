"""`keys list|rotate|verify` and `policy lookup`, as a person types them."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command
from houses import to_folder
from persons import merges, name_people, people

from gateway.pseudonyms import key_id
from gateway.settings import Home

WORDED = ("--by", "J. Doe", "--reason", "yearly rotation")


def test_a_fresh_home_has_one_key_and_it_is_sound(command: Command, home: Home) -> None:
    ran = command("keys", "list", "--home", home.root, "--json")
    name = key_id(bytes.fromhex(home.master_key.read_text().strip()))
    assert (ran.code, ran.json) == (0, [{"key": name, "since": "", "state": "active", "people": 0}])
    assert command("keys", "verify", "--home", home.root).code == 0


def test_a_rotation_puts_a_new_key_in_force_and_shows_none(command: Command, home: Home) -> None:
    ran = command("keys", "rotate", *WORDED, "--home", home.root)
    assert ran.code == 0
    assert "back up" in ran.out
    listed = command("keys", "list", "--home", home.root, "--json").json
    assert [row["state"] for row in listed] == ["kept", "active"]
    secrets = [path.read_text().strip() for path in home.keys.glob("*.key")]
    shown = ran.out + command("keys", "list", "--home", home.root).out
    assert listed[1]["key"] in shown
    assert len(secrets) == 2
    assert not any(secret in shown for secret in secrets)


def test_a_rotation_needs_a_name_and_a_reason(command: Command, home: Home) -> None:
    assert command("keys", "rotate", "--by", "J. Doe", "--reason", "x", "--home", home.root).code == 2
    assert command("keys", "rotate", "--home", home.root).code == 2
    assert len(command("keys", "list", "--home", home.root, "--json").json) == 1


def test_a_key_that_is_gone_is_found_with_exit_3(command: Command, home: Home) -> None:
    command("keys", "rotate", *WORDED, "--home", home.root)
    new = command("keys", "list", "--home", home.root, "--json").json[1]["key"]
    (home.keys / f"{new}.key").unlink()
    ran = command("keys", "verify", "--home", home.root)
    assert (ran.code, new in ran.err) == (3, True)
    assert command("keys", "verify", "--home", home.root, "--json").json["sound"] is False
    assert "missing" in command("keys", "list", "--home", home.root).out or ran.err


@pytest.mark.parametrize("spoil", ["{}", "not json"])
def test_a_damaged_ring_ends_every_command_with_exit_3(command: Command, home: Home, spoil: str) -> None:
    (home.keys / "ring.json").write_text(spoil)
    for words in (("list",), ("verify",), ("rotate", *WORDED)):
        ran = command("keys", *words, "--home", home.root)
        assert (ran.code, "ring.json" in ran.err) == (3, True)


# -- policy lookup ----------------------------------------------------------------------------------------------------


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = to_folder(tmp_path / "policies", tmp_path / "archive")
    name_people(folder, pseudonym="lookup", table="people.csv", merge="merges.csv")
    people(folder, LEAK0001="S1", LEAK0002="S2")
    merges(folder, LEAK0003="LEAK0001")
    monkeypatch.setenv("DEID_POLICIES", str(folder))
    return folder


def test_sound_tables_are_counted(command: Command, home: Home, policies: Path) -> None:
    ran = command("policy", "lookup", "research-basic", "--home", home.root, "--json")
    assert (ran.code, ran.json) == (0, {"people": 2, "merged": 1, "faults": []})
    by_path = command("policy", "lookup", policies / "research-basic.yaml", "--home", home.root)
    assert (by_path.code, "2 people" in by_path.out) == (0, True)


@pytest.mark.parametrize("words", [("lookup", "research-basic"), ("check",)])
def test_faults_are_shown_by_line_and_never_by_value(
    command: Command, home: Home, policies: Path, words: tuple[str, ...]
) -> None:
    (policies / "people.csv").write_text("patient_id,pseudonym\nLEAK0001,S1\nLEAK0001,S2\nLEAK0002,S1\n")
    merges(policies, LEAK0003="LEAK0003")
    ran = command("policy", *words, "--home", home.root)
    assert ran.code == 2
    assert "people.csv:3: the same Patient ID as in line 2" in ran.err
    assert "people.csv:4: the same pseudonym as in line 2" in ran.err
    assert "merges.csv:2: an ID is merged into itself" in ran.err
    assert "LEAK" not in ran.out + ran.err


def test_a_database_that_nobody_named_is_a_fault(command: Command, home: Home, policies: Path) -> None:
    name_people(policies, pseudonym="lookup", sql="site", table="people")
    ran = command("policy", "lookup", "research-basic", "--home", home.root)
    assert (ran.code, "no database of that name" in ran.err) == (2, True)


def test_a_database_that_is_silent_is_the_machines_fault(
    command: Command, home: Home, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEID_LOOKUP_URLS", "site=postgresql+psycopg://u:pass-word@127.0.0.1:1/x")
    name_people(policies, pseudonym="lookup", sql="site", table="people")
    ran = command("policy", "lookup", "research-basic", "--home", home.root)
    assert (ran.code, "does not answer" in ran.err) == (3, True)
    shown = command("settings", "--home", home.root)
    assert "site=(set)" in shown.out
    assert "pass-word" not in ran.out + ran.err + shown.out


@pytest.mark.parametrize("value", ["site", "=x", "Site=x", "site=a site=b"])
def test_a_wrong_list_of_databases_is_refused_and_not_shown(
    command: Command, home: Home, policies: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("DEID_LOOKUP_URLS", f"{value} other=sqlite:///pass-word")
    ran = command("policy", "check", "--home", home.root)
    assert (ran.code, "DEID_LOOKUP_URLS" in ran.err) == (2, True)
    assert "pass-word" not in ran.out + ran.err
