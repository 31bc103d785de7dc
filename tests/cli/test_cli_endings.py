"""Whatever goes wrong ends as one message with a documented exit code: what happened, where, what to do next."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import Command, as_process, clean_environment
from sqlalchemy.exc import DatabaseError
from unprivileged import obey_modes

import gateway.cli.gateway_commands
from gateway.cli.endings import ending
from gateway.cli.output import plain
from gateway.errors import EnvironmentFault, Hold, UsageError
from gateway.settings import Home

SECRET = "ZZSYNTH^LEAKTEST"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("no such thing"), 2, "no such thing"),
        (EnvironmentFault("the port is taken"), 3, "the port is taken"),
        (Hold("no_route"), 1, "no rule in routes.yaml"),
        (PermissionError(errno.EACCES, "Permission denied", "/a/b"), 3, "/a/b: Permission denied; run it as the user"),
        (OSError(errno.ENOSPC, "No space left on device", "/a/b"), 3, "/a/b: No space left on device; free some space"),
        (OSError(errno.EROFS, "Read-only file system", "/a"), 3, "name another place"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "/a/b"), 3, "a file is where a folder should be"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", b"/a/b"), 3, "/a/b: No such file"),
        (OSError(errno.EXDEV, "Invalid cross-device link", "/a", None, "/b"), 3, "/a -> /b: Invalid cross-device link"),
        (DatabaseError("SELECT", {}, Exception(SECRET)), 3, "DEID_DATABASE_URL"),
        (MemoryError(), 3, "DEID_WORKERS"),
    ],
)
def test_each_kind_of_error_has_its_words_and_code(error: Exception, code: int, words: str) -> None:
    found, said = ending(error)
    assert found == code
    assert words in said
    assert SECRET not in said


def test_what_nobody_foresaw_is_told_by_type_and_place_not_by_its_text() -> None:
    try:
        int(SECRET)
    except ValueError as error:
        code, said = ending(error)
    assert code == 3
    assert "ValueError in test_cli_endings:" in said
    assert SECRET not in said


def test_an_unforeseen_fault_in_a_command_is_no_traceback(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> object:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(gateway.cli.gateway_commands, "made_home", broken)
    ran = command("status")
    assert ran.code == 3
    assert "ZeroDivisionError in" in ran.err
    assert SECRET not in ran.err


def test_an_interrupt_ends_with_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(gateway.cli.gateway_commands, "made_home", interrupted)
    ran = command("status")
    assert ran.code == 130
    assert ran.err.startswith("error: interrupted")


def test_a_full_disk_under_the_output_is_told() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "policy", "schema"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            check=False,
        )
    assert done.returncode == 3
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "policy", "explain", "research-basic"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 3
    assert said == b""


def test_a_closed_output_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m gateway init {tmp_path / 'h'} >&-"],
        capture_output=True,
        env=clean_environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "h" / "keys" / "master.key").exists()


def test_ctrl_c_in_a_running_command_ends_with_130(home: Home) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "cohort-hash", "--home", str(home.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )
    stat = Path(f"/proc/{process.pid}/syscall")
    deadline = time.monotonic() + 60
    while not stat.read_text().startswith("0 0x0 "):  # read(0, ...): it waits for the list
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.startswith(b"error: interrupted")
    assert b"Traceback" not in said


@pytest.mark.parametrize("words", [("ledger", "verify"), ("status",), ("held", "list"), ("cohort-hash",), ("serve",)])
def test_a_home_that_may_not_be_read_is_told_with_its_path(home: Home, words: tuple[str, ...]) -> None:
    home.root.chmod(0)
    try:
        ran = as_process(*words, "--home", home.root, preexec_fn=obey_modes)
    finally:
        home.root.chmod(0o700)
    assert ran.code == 3
    assert f"{home.root}" in ran.err
    assert "Permission denied" in ran.err
    assert "run it as the user" in ran.err


def test_a_home_cannot_be_made_where_one_may_not_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    ran = as_process("init", tmp_path / "home", preexec_fn=obey_modes)
    tmp_path.chmod(0o700)
    assert ran.code == 3
    assert "Permission denied" in ran.err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a[b] [/x] c", "a[b] [/x] c"),
        ("two\nlines", "two\nlines"),
        ("esc\x1b[31mred", "esc?[31mred"),
        (os.fsdecode(b"f\xff.dcm"), "f?.dcm"),
        ("Zürich 東京", "Zürich 東京"),
    ],
)
def test_whatever_is_printed_is_printable(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_names_that_look_like_markup_are_printed_as_they_are(command: Command, tmp_path: Path) -> None:
    odd = tmp_path / "[red]x[" / "[" / "red]"
    ran = command("status", "--home", odd)
    assert ran.code == 3
    assert str(odd) in ran.err


def test_a_terminal_that_knows_ascii_only_is_served(tmp_path: Path) -> None:
    env = {"PYTHONIOENCODING": "ascii", "DEID_HOME": str(tmp_path / "Zürich")}
    ran = as_process("init", tmp_path / "Zürich", env=env)
    assert ran.code == 0
    assert "Z\\xfcrich is ready" in ran.out
    assert as_process("status", env=env).code == 0


def test_errors_of_studies_survive_the_way_from_a_worker() -> None:
    assert ending(pickle.loads(pickle.dumps(Hold("header_failed", at="00001"))))[0] == 1
