"""`scrub` as a user types it: tables, JSON, exit codes, a progress bar for terminals only."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest
from commands import Command, as_process, clean_environment

from gateway.settings import Home

sys.path.append(str(Path(__file__).parents[1] / "app"))

from scrubbing import tree, with_release, write_study


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    monkeypatch.setenv("DEID_WORKERS", "1")
    monkeypatch.setenv("DEID_HOME", str(home.root))


def test_cleared_files_end_with_0(command: Command, tmp_path: Path) -> None:
    write_study(tmp_path / "src" / "a", 1, 2)
    ran = command("scrub", tmp_path / "src", tmp_path / "dst", "--policy", "research-basic")
    assert (ran.code, ran.err) == (0, "")
    assert "studies: 1 sent" in ran.out
    assert f"2 files are cleared in {tmp_path / 'dst'}" in ran.out
    again = command("scrub", tmp_path / "src", tmp_path / "dst", "--policy", "research-basic")
    assert again.code == 0
    assert "1 studies were decided in an earlier run" in again.out


def test_held_ones_end_with_1_and_are_found_with_held_show(command: Command, tmp_path: Path, home: Home) -> None:
    write_study(tmp_path / "src" / "[odd] \x1b[1m", 1, 1, Modality="US")
    (tmp_path / "src" / "notes.txt").write_text("x")
    (tmp_path / "src" / "link").symlink_to("notes.txt")
    ran = command("scrub", tmp_path / "src", tmp_path / "dst", "--policy", "research-basic")
    assert ran.code == 1
    assert "[odd] ?[1m" in ran.out
    assert "\x1b" not in ran.out
    assert "not_assessed: no check of this policy can judge" in ran.out
    assert "1 files are not DICOM" in ran.out
    assert "1 links or special files were not followed" in ran.out
    (row,) = command("held", "list", "--json").json
    assert (row["stage"], row["reason"], row["policy"]) == ("scrub", "not_assessed", "research-basic")
    assert row["key"] in ran.out
    assert command("held", "show", row["key"]).code == 0
    assert command("status", "--json").json["held_by_scrub"] == 1
    for decision in ("release", "rerun", "reject"):
        refused = command("held", decision, row["key"], "--by", "dpo", "--reason", "seen by eye")
        assert refused.code == 2
        assert "run `scrub` again" in refused.err


def test_the_document_for_scripts_has_every_study_and_nothing_else_is_printed(command: Command, tmp_path: Path) -> None:
    first, _ = write_study(tmp_path / "src", 1, 2)
    (tmp_path / "src" / "notes.txt").write_text("x")
    ran = command("scrub", tmp_path / "src", tmp_path / "dst", "--policy", "research-basic", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["not_followed"] == 0
    notes, study = ran.json["studies"]
    assert (notes["state"], notes["reason"]) == ("refused", "not_dicom")
    key = study.pop("key")
    assert len(key) == 24
    assert study == {
        "file": str(first),
        "instances": 2,
        "state": "sent",
        "reason": "",
        "at": "",
        "sent": 2,
        "resumed": False,
    }


def test_a_release_waits_with_1_and_is_closed_on_request(command: Command, tmp_path: Path) -> None:
    policy = with_release(tmp_path, 2)
    write_study(tmp_path / "src" / "a", 1, 1)
    words = ("scrub", tmp_path / "src", tmp_path / "dst", "--policy", policy, "--json")
    waiting = command(*words)
    assert waiting.code == 1
    assert [s["state"] for s in waiting.json["studies"]] == ["awaiting_release"]
    early = command(*words, "--close-release")
    assert early.code == 1
    assert [(s["state"], s["reason"]) for s in early.json["studies"]] == [("held", "too_few_subjects")]
    write_study(tmp_path / "src" / "b", 2, 1)
    closed = command(*words, "--close-release")
    assert closed.code == 0
    assert [s["state"] for s in closed.json["studies"]] == ["sent", "sent"]
    assert command("ledger", "verify").code == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("none", "dst", "--policy", "research-basic"), 2, "does not exist"),
        (("src", "src", "--policy", "research-basic"), 2, "must not contain each other"),
        (("src", "src/dst", "--policy", "research-basic"), 2, "must not contain each other"),
        (("src", "home/dst", "--policy", "research-basic"), 2, "and the home must not"),
        (("src", "dst", "--policy", "reserch-basic"), 2, "did you mean research-basic?"),
        (("src", "dst", "--policy", "broken.yaml"), 2, "broken.yaml:1: "),
        (("src", "dst", "--policy", "../research-basic"), 2, "no policy"),
        (("src", "dst", "--policy", "research-basic", "--project", "My Project"), 2, "the project must be"),
        (("src", "file", "--policy", "research-basic"), 3, "is not a folder that can be written to"),
        (("src", "file/dst", "--policy", "research-basic"), 3, "is not a folder that can be written to"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_done(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path / "src", 1, 1)
    (tmp_path / "file").write_text("x")
    (tmp_path / "broken.yaml").write_text("- no policy\n")
    before = tree(tmp_path / "src")
    ran = command("scrub", *words)
    assert ran.code == code
    assert says in ran.err
    assert ran.out == ""
    assert tree(tmp_path / "src") == before
    assert not (tmp_path / "home" / "ledger.jsonl").exists()


def test_without_a_key_nothing_is_done(command: Command, tmp_path: Path, home: Home) -> None:
    write_study(tmp_path / "src", 1, 1)
    home.master_key.unlink()
    ran = command("scrub", tmp_path / "src", tmp_path / "dst", "--policy", "research-basic")
    assert ran.code == 3
    assert "no master key" in ran.err
    assert not (tmp_path / "dst").exists()


def test_a_pipe_gets_no_progress_bar(tmp_path: Path, home: Home) -> None:
    write_study(tmp_path / "src", 1, 1)
    ran = as_process("scrub", tmp_path / "src", tmp_path / "dst", "--policy", "research-basic", "--home", home.root)
    assert (ran.code, ran.err) == (0, "")


def at_a_terminal(*arguments: object) -> tuple[int, str]:
    """Run with a terminal as all three streams; exit code and what was shown."""
    pid, screen = pty.fork()
    if pid == 0:
        os.execve(
            sys.executable,
            [sys.executable, "-m", "gateway", *map(str, arguments)],
            clean_environment(TERM="xterm", COLUMNS="120", LINES="40", DEID_WORKERS="1"),
        )
    shown = b""
    while True:
        try:
            piece = os.read(screen, 4096)
        except OSError:  # EIO: the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_a_terminal_gets_a_progress_bar_unless_it_asked_for_json(tmp_path: Path, home: Home) -> None:
    write_study(tmp_path / "src", 1, 2)
    words = ("scrub", tmp_path / "src", tmp_path / "dst", "--policy", "research-basic", "--home", home.root)
    code, shown = at_a_terminal(*words)
    assert code == 0
    assert "de-identifying" in shown
    assert "2/2" in shown
    code, shown = at_a_terminal(*words, "--json")
    assert code == 0
    assert "de-identifying" not in shown
    assert shown.lstrip().startswith("{")
