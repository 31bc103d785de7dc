"""What goes wrong around `scrub`: a study's fault holds that study, the machine's ends the run with words."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

import pytest
from processes import alive_in_group, wait_until
from scrubbing import Scrubbing, ends, process, tree, write_study
from unprivileged import obey_modes

import gateway.app.batch.scrub
import gateway.app.candidates
import gateway.forward.folder
from gateway.app.batch.inputs import Input, look_at
from gateway.app.batch.scrub import Scrub
from gateway.app.tasks import scrub_instance
from gateway.app.workers import Workers
from gateway.errors import EnvironmentFault
from gateway.ledger import Ledger
from gateway.settings import Home
from gateway.study import Step

POISON = b"POISON"


@pytest.fixture
def scrub(home: Home, tmp_path: Path) -> Scrubbing:
    return Scrubbing(home, tmp_path / "dst", workers=2)


def dies_of_poison(source: Path, target: Path, snapshot: str, project_key: bytes) -> Step:
    """A stage that takes its worker with it, as an out-of-memory kill does."""
    if POISON in source.read_bytes():
        os.kill(os.getpid(), signal.SIGKILL)
    return scrub_instance(source, target, snapshot, project_key)


def looks_and_dies_of_poison(path: Path, name: str, master: bytes) -> Input:
    if POISON in path.read_bytes():
        os.kill(os.getpid(), signal.SIGKILL)
    return look_at(path, name, master)


def breaks_on_poison(source: Path, target: Path, snapshot: str, project_key: bytes) -> Step:
    if POISON in source.read_bytes():
        raise ZeroDivisionError(source.read_bytes())
    return scrub_instance(source, target, snapshot, project_key)


def write_poisoned(source: Path) -> None:
    for person in range(6):
        write_study(source / str(person), person, 2, **({"ImageComments": "POISON"} if person == 3 else {}))


def test_a_study_that_kills_its_workers_is_held_and_its_neighbours_go_on(
    scrub: Scrubbing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_poisoned(tmp_path / "src")
    monkeypatch.setattr(gateway.app.candidates, "scrub_instance", dies_of_poison)
    results = scrub(tmp_path / "src")
    assert ends(results) == [("held", "stage_failed")] + [("sent", "")] * 5
    assert {r.at for r in results} == {"", "worker_lost"}
    monkeypatch.undo()
    assert ends(scrub(tmp_path / "src")) == [("sent", "")] * 6  # it is tried again


def test_a_file_that_kills_the_worker_that_reads_it_is_held(
    scrub: Scrubbing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_poisoned(tmp_path / "src")
    monkeypatch.setattr(gateway.app.batch.scrub, "look_at", looks_and_dies_of_poison)
    results = scrub(tmp_path / "src")
    assert ends(results) == [("held", "file_unreadable")] * 2 + [("sent", "")] * 5


def test_a_fault_that_nobody_foresaw_holds_its_study_and_says_no_value(
    scrub: Scrubbing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_poisoned(tmp_path / "src")
    monkeypatch.setattr(gateway.app.candidates, "scrub_instance", breaks_on_poison)
    results = scrub(tmp_path / "src")
    assert ends(results) == [("held", "stage_failed")] + [("sent", "")] * 5
    assert any(r.at.startswith("ZeroDivisionError in ") for r in results)
    for path in scrub.home.root.rglob("*.json*"):
        assert POISON not in path.read_bytes()


def test_a_full_target_ends_the_run_and_the_next_one_goes_on(
    scrub: Scrubbing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for person in range(5):
        write_study(tmp_path / "src" / str(person), person, 2)
    real, written = gateway.forward.folder.writing, []

    def full(target: Path) -> object:
        if len(written) >= 5:
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        written.append(target)
        return real(target)

    monkeypatch.setattr(gateway.forward.folder, "writing", full)
    with pytest.raises(EnvironmentFault, match=r"takes no more files.*archive_busy") as fault:
        scrub(tmp_path / "src")
    assert str(scrub.target) in str(fault.value)
    assert len(tree(scrub.target)) == 5
    monkeypatch.undo()
    results = scrub(tmp_path / "src")
    assert ends(results) == [("sent", "")] * 5
    assert any(r.resumed for r in results)
    assert len(tree(scrub.target)) == 10
    assert Ledger(scrub.home.ledger, scrub.keys.ledger).verify().sound


def test_a_full_home_ends_the_run_and_holds_nothing_for_it(
    scrub: Scrubbing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path / "src", 1, 1)

    def full(self: Ledger, *_arguments: object, **_facts: object) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device", str(self.path))

    monkeypatch.setattr(Ledger, "append", full)
    with pytest.raises(OSError, match="No space left on device"):
        scrub(tmp_path / "src")
    assert tree(scrub.target) == {}
    monkeypatch.undo()
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]


def test_a_damaged_ledger_lets_nothing_leave(scrub: Scrubbing, tmp_path: Path) -> None:
    write_study(tmp_path / "src", 1, 1)
    scrub(tmp_path / "src")
    ledger = scrub.home.ledger.read_bytes()
    scrub.home.ledger.write_bytes(ledger.replace(b'"cleared"', b'"clearer"'))
    write_study(tmp_path / "src" / "2", 2, 1)
    before = tree(scrub.target)
    with pytest.raises(EnvironmentFault, match="ledger is damaged"):
        scrub(tmp_path / "src")
    assert tree(scrub.target) == before


@pytest.mark.parametrize("place", ["file", "below a file"])
def test_a_target_that_is_no_folder_is_told_before_anything_is_done(
    scrub: Scrubbing, tmp_path: Path, place: str
) -> None:
    write_study(tmp_path / "src", 1, 1)
    (tmp_path / "file").write_text("x")
    scrub.target = tmp_path / "file" if place == "file" else tmp_path / "file" / "dst"
    with pytest.raises(EnvironmentFault, match="is not a folder that can be written to"):
        scrub(tmp_path / "src")
    assert not scrub.home.ledger.exists()


def test_workers_are_gone_after_an_exception(scrub: Scrubbing, tmp_path: Path) -> None:
    write_study(tmp_path / "src", 1, 1)
    kept: list[Scrub] = []

    def report(_progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scrub(tmp_path / "src", report=report, change=kept.append)
    workers = kept[0].workers
    assert isinstance(workers, Workers)
    assert workers._open == set()


def test_files_and_folders_that_may_not_be_read_are_held_by_name_and_the_rest_goes_on(
    home: Home, tmp_path: Path
) -> None:
    source = tmp_path / "src"
    write_study(source / "good", 1, 1)
    (locked,) = write_study(source / "locked", 2, 1)
    locked.chmod(0)
    write_study(source / "closed", 3, 1)
    (source / "closed").chmod(0)
    try:
        run = process(home, source, tmp_path / "dst", preexec_fn=obey_modes)
        out, said = run.communicate(timeout=120)
        assert run.returncode == 1, said.decode()
        text = out.decode()
        assert text.count("file_unreadable") == 3  # two rows and the words for it
        assert "locked/p2-1.dcm" in text
        assert "1 sent" in text
        assert len(tree(tmp_path / "dst")) == 1
    finally:
        locked.chmod(0o600)
        (source / "closed").chmod(0o700)
    again = process(home, source, tmp_path / "dst")
    out, _ = again.communicate(timeout=120)
    assert again.returncode == 0
    assert "3 sent" in out.decode()
    assert list(home.held.iterdir()) == []


def test_a_target_one_may_not_write_to_ends_with_3(home: Home, tmp_path: Path) -> None:
    write_study(tmp_path / "src", 1, 1)
    (tmp_path / "dst").mkdir(mode=0o500)
    run = process(home, tmp_path / "src", tmp_path / "dst", preexec_fn=obey_modes)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 3
    assert b"is not a folder that can be written to (Permission denied)" in said
    assert b"Traceback" not in said


def test_ctrl_c_ends_with_130_leaves_no_worker_and_the_same_command_goes_on(home: Home, tmp_path: Path) -> None:
    for person in range(60):
        write_study(tmp_path / "src" / str(person), person, 5)
    run = process(home, tmp_path / "src", tmp_path / "dst")
    deadline = time.monotonic() + 180
    while len(list((tmp_path / "dst").glob("*"))) < 3:
        assert time.monotonic() < deadline
        assert run.poll() is None
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGINT)  # what a terminal does: everybody in the group gets it
    out, said = run.communicate(timeout=30)
    assert run.returncode == 130, said.decode()
    assert said.startswith(b"error: interrupted")
    assert b"Traceback" not in said + out
    wait_until(lambda: alive_in_group(run.pid) == [], seconds=10, what="its workers are gone")
    again = process(home, tmp_path / "src", tmp_path / "dst")
    out, said = again.communicate(timeout=120)
    assert again.returncode == 0, said.decode()
    assert b"60 sent" in out
    assert b"decided in an earlier run" in out
    assert len(tree(tmp_path / "dst")) == 300
