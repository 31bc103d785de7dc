"""What a new user meets first: help, hints for what was typed wrong, exit code 2, and a quick answer."""

from __future__ import annotations

import subprocess
import sys

import pytest
from commands import Command, as_process

COMMANDS = (
    ("init",),
    ("serve",),
    ("demo",),
    ("scrub",),
    ("status",),
    ("settings",),
    ("cohort-hash",),
    ("policy", "check"),
    ("policy", "explain"),
    ("policy", "schema"),
    ("held", "list"),
    ("held", "show"),
    ("held", "release"),
    ("held", "rerun"),
    ("held", "reject"),
    ("ledger", "verify"),
)


def test_the_program_alone_shows_its_commands_and_exit_codes(command: Command) -> None:
    ran = command()
    assert ran.code == 2
    for words in COMMANDS:
        assert words[0] in ran.out
    assert "130 interrupted" in " ".join(ran.out.split())
    assert ran.err == ""


@pytest.mark.parametrize("group", ["policy", "held", "ledger"])
def test_a_group_alone_shows_its_commands(command: Command, group: str) -> None:
    ran = command(group)
    assert ran.code == 2
    assert all(words[1] in ran.out for words in COMMANDS if words[0] == group)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_a_help_that_says_what_it_does(command: Command, words: tuple[str, ...]) -> None:
    ran = command(*words, "--help")
    assert ran.code == 0
    assert "Usage: deid-gateway " + " ".join(words) in ran.out
    assert len(ran.out.split()) > 20


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (("statuz",), "status"),
        (("held", "lst"), "list"),
        (("policy", "chexk"), "check"),
        (("scrub", "--polcy", "x"), "--policy"),
        (("status", "--jsn"), "--json"),
    ],
)
def test_what_was_typed_wrong_gets_a_hint(command: Command, typed: tuple[str, ...], offered: str) -> None:
    ran = command(*typed)
    assert ran.code == 2
    assert offered in ran.err
    assert ran.err.startswith("error: ")
    assert "--help" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("typed", [("scrub", "a", "b"), ("init",), ("held", "show"), ("held", "release", "key")])
def test_what_is_missing_is_named(command: Command, typed: tuple[str, ...]) -> None:
    ran = command(*typed)
    assert ran.code == 2
    assert "Missing" in ran.err


def test_commands_that_need_a_home_say_how_to_name_one(command: Command) -> None:
    for words in (("status",), ("held", "list"), ("ledger", "verify"), ("serve",), ("cohort-hash",)):
        ran = command(*words)
        assert ran.code == 2, words
        assert "--home or DEID_HOME" in ran.err
        assert "init" in ran.err


def test_a_folder_that_is_no_home_is_an_environment_fault(command: Command, tmp_path: object) -> None:
    for words in (("status",), ("held", "list"), ("ledger", "verify"), ("serve",), ("cohort-hash",)):
        ran = command(*words, "--home", tmp_path)
        assert ran.code == 3, words
        assert f"deid-gateway init {tmp_path}" in ran.err


def test_the_version_is_that_of_the_package(command: Command) -> None:
    from importlib.metadata import version

    assert command("--version").out == f"deid-gateway {version('deid-gateway')}\n"


def test_help_does_not_wait_for_an_engine_to_load() -> None:
    heavy = "{'dbos', 'pynetdicom', 'pydicom', 'sqlalchemy', 'torch', 'numpy'}"
    code = f"import sys, gateway.cli; sys.exit(sorted({heavy} & sys.modules.keys()) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_module_runs_like_the_installed_command() -> None:
    ran = as_process("held", "lst")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: No such command 'lst'. Did you mean 'list'?\nsee: deid-gateway held --help\n"
