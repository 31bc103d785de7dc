"""The ledger finds one changed, missing, added or reordered line, and survives torn writes and several writers."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import EnvironmentFault
from gateway.ledger import GENESIS, Ledger

KEY = bytes(range(32))
LINES = 6


def filled(folder: Path, lines: int = LINES) -> Ledger:
    ledger = Ledger(folder / "ledger.jsonl", KEY)
    for i in range(lines):
        assert ledger.append("sent", f"sent/{i}", job=f"job{i}", receipts={"success 0000": i})
    return ledger


def rewrite(ledger: Ledger, lines: list[bytes]) -> None:
    ledger.path.write_bytes(b"".join(lines))


def test_a_sound_ledger_verifies_and_its_lines_are_chained(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    assert ledger.verify().sound
    assert ledger.verify().lines == LINES
    lines = list(ledger.lines())
    assert lines[0]["previous"] == GENESIS
    assert [line["previous"] for line in lines[1:]] == [line["mac"] for line in lines[:-1]]
    assert [line["line"] for line in lines] == list(range(1, LINES + 1))


def test_an_empty_ledger_is_sound(tmp_path: Path) -> None:
    assert Ledger(tmp_path / "ledger.jsonl", KEY).verify().sound


@pytest.mark.parametrize("removed", range(LINES))
def test_a_missing_line_is_found_wherever_it_was(tmp_path: Path, removed: int) -> None:
    ledger = filled(tmp_path)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    rewrite(ledger, lines[:removed] + lines[removed + 1 :])
    report = Ledger(ledger.path, KEY).verify()
    assert not report.sound
    assert report.line == removed + 1


@pytest.mark.parametrize("first", range(LINES - 1))
def test_two_lines_in_the_wrong_order_are_found(tmp_path: Path, first: int) -> None:
    ledger = filled(tmp_path)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    rewrite(ledger, lines)
    assert Ledger(ledger.path, KEY).verify().line == first + 1


@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changed_bit_is_found(tmp_path: Path, position: float, bit: int) -> None:
    folder = tmp_path / f"{position}-{bit}"
    folder.mkdir(exist_ok=True)
    for stale in folder.iterdir():
        stale.unlink()
    ledger = filled(folder, 3)
    data = bytearray(ledger.path.read_bytes())
    index = int(position * len(data))
    data[index] ^= 1 << bit
    ledger.path.write_bytes(data)
    report = Ledger(ledger.path, KEY).verify()
    original = bytearray(data)
    original[index] ^= 1 << bit
    meaning_kept = _parsed(bytes(data)) == _parsed(bytes(original))
    assert not report.sound or meaning_kept


def _parsed(data: bytes) -> object:
    try:
        return [json.loads(line) for line in data.splitlines()]
    except ValueError:
        return None


def test_a_repeated_line_and_a_foreign_line_are_found(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    rewrite(ledger, [*lines, lines[-1]])
    assert Ledger(ledger.path, KEY).verify().line == LINES + 1
    other = Ledger(tmp_path / "other.jsonl", bytes(32))
    other.append("sent", "sent/x")
    rewrite(ledger, [*lines, other.path.read_bytes()])
    assert Ledger(ledger.path, KEY).verify().line == LINES + 1


def test_a_removed_head_file_is_found(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    (tmp_path / "ledger.jsonl.head").unlink()
    assert "head" in Ledger(ledger.path, KEY).verify().fault


def test_a_deleted_ledger_is_not_begun_anew(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    ledger.path.unlink()
    assert not Ledger(ledger.path, KEY).verify().sound
    with pytest.raises(EnvironmentFault, match="restore it from backup"):
        Ledger(ledger.path, KEY).append("sent", "sent/new")


def test_a_damaged_ledger_takes_no_further_decision(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    rewrite(ledger, lines[1:])
    with pytest.raises(EnvironmentFault, match="line 1"):
        Ledger(ledger.path, KEY).append("sent", "sent/new")


def test_a_decision_is_written_once_however_often_its_leg_runs(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    assert not ledger.append("sent", "sent/3", job="job3")
    assert not Ledger(ledger.path, KEY).append("sent", "sent/3", job="job3")
    assert len(ledger) == LINES


def test_a_torn_last_line_is_dropped_because_nobody_was_told_of_it(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    with open(ledger.path, "ab") as file:
        file.write(b'{"decision":"sent/torn","li')
    again = Ledger(ledger.path, KEY)
    assert again.append("sent", "sent/next")
    assert again.verify().sound
    assert len(again) == LINES + 1


def test_a_crash_between_line_and_head_is_no_forgery(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    head = (tmp_path / "ledger.jsonl.head").read_bytes()
    ledger.append("sent", "sent/last")
    (tmp_path / "ledger.jsonl.head").write_bytes(head)
    again = Ledger(ledger.path, KEY)
    assert again.verify().sound
    assert not again.append("sent", "sent/last")
    assert again.append("sent", "sent/later")
    assert again.verify().lines == LINES + 2


def _append_many(path: Path, name: str, count: int) -> None:
    ledger = Ledger(path, KEY)
    for i in range(count):
        ledger.append("sent", f"{name}/{i}")


def test_several_processes_append_to_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(path, name, 15)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    ledger = Ledger(path, KEY)
    assert ledger.verify().sound
    assert {line["decision"] for line in ledger.lines()} == {f"{name}/{i}" for name in "abc" for i in range(15)}


def test_the_ledger_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    assert filled(tmp_path).path.stat().st_mode & 0o777 == 0o600
