"""A backup of a gateway at work, restored elsewhere: what was under way goes on, and leaves with the same bytes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pydicom
import pytest
from peers import Postgres
from planting import base
from pydicom.uid import generate_uid
from running import accept_everything, archive, policies_for, running, send, the_job, wait_idle

from gateway.app.backup import make_backup, making, restore_backup
from gateway.app.backup.contents import STAGE, Entry, clear_stage, link_home
from gateway.app.backup.tables import require_schema, snapshot, write_tables
from gateway.app.serve import Gateway
from gateway.database import Database, Subject
from gateway.errors import EnvironmentFault, UsageError
from gateway.flow.pause import Pause
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, load_settings
from gateway.study import State


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


@pytest.fixture(params=["embedded", pytest.param("cluster", marks=pytest.mark.peer)])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[str]:
    """The database of the gateway that goes on."""
    if request.param == "embedded":
        yield ""
        return
    with Postgres() as url:
        yield url


def study(number: int) -> pydicom.Dataset:
    ds = base()
    ds.PatientID = f"LEAK{number:04d}"
    ds.StudyInstanceUID = generate_uid(entropy_srcs=["backup", str(number)])
    ds.SOPInstanceUID = generate_uid(entropy_srcs=["backup", str(number), "instance"])
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    return ds


def wait_for_state(gateway: Gateway, ds: pydicom.Dataset, *states: State) -> None:
    deadline = time.monotonic() + 60
    key = gateway.parts.keys.opaque("study", str(ds.StudyInstanceUID))
    while not [job for job in gateway.parts.database.jobs_of(key, 1) if job.state in states and job.reason]:
        assert time.monotonic() < deadline, gateway.parts.database.count_states()
        time.sleep(0.05)


def test_what_was_under_way_at_the_backup_goes_on_after_the_restore_with_the_same_bytes(
    home: Home, elsewhere: str, tmp_path: Path
) -> None:
    sent, waiting, late = study(1), study(2), study(3)
    closed = threading.Event()
    folder, keys = tmp_path / "backup", tmp_path / "keys-apart"
    with archive(answer=lambda _uid: 0xA700 if closed.is_set() else 0x0000) as kept:
        policies = policies_for(tmp_path / "policies", kept.url, change=accept_everything)
        with running(home, policies) as gateway:
            assert send(sent, gateway.receiver.port) == 0x0000
            wait_idle(gateway)
            closed.set()
            assert send(waiting, gateway.receiver.port) == 0x0000
            wait_for_state(gateway, waiting, State.CLEARED)  # the archive refused it, and it is tried again
            made = make_backup(home, gateway.parts.settings, folder, keys_to=keys, patience_s=30)
            assert (made.rows > 0, (home.root / STAGE).exists()) == (True, False)
            closed.clear()
            wait_idle(gateway)  # what left after the backup was made
        assert {len(arrivals) for arrivals in kept.received.values()} == {1}
        shutil.rmtree(home.root)
        other = Home(tmp_path / "other")
        values = load_settings(other.root, policies=policies, database_url=elsewhere)
        done = restore_backup(folder, other, values, keys)
        assert done.rows == made.rows
        with running(other, policies, database_url=elsewhere) as gateway:
            assert gateway.parts.ledger.verify().sound
            assert send(late, gateway.receiver.port) == 0x0000  # numbers of rows go on, too
            deadline = time.monotonic() + 60
            while gateway.parts.database.count_states() != {(State.SENT, ""): 3}:
                assert time.monotonic() < deadline, gateway.parts.database.count_states()
                time.sleep(0.1)
            events = [line["event"] for line in gateway.parts.ledger.lines()]
            assert events.count("restored") == 1
            assert the_job(gateway, waiting).round == 1
    again = sorted(len(arrivals) for arrivals in kept.received.values())
    assert again == [1, 1, 2]  # the one that left after the backup left once more
    assert all(len(set(arrivals)) == 1 for arrivals in kept.received.values())


def test_a_backup_holds_neither_keys_nor_settings_nor_half_received_objects(home: Home, tmp_path: Path) -> None:
    secret = home.master_key.read_text().strip()
    (home.root / ".env").write_text(f"DEID_KEY={secret}\n")
    (home.spool / "incoming").mkdir()
    (home.spool / "incoming" / "half.part").write_bytes(b"half")
    folder = tmp_path / "backup"
    Database.in_home(home.database).close()
    make_backup(home, load_settings(home.root), folder, keys_to=None, patience_s=5)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert all(secret.encode() not in path.read_bytes() for path in files)
    assert not [path for path in files if path.name in (".env", "half.part", "master.key")]
    assert {path.stat().st_mode & 0o077 for path in (folder, *files)} == {0}
    with pytest.raises(UsageError, match="is there already"):
        make_backup(home, load_settings(home.root), folder, keys_to=None, patience_s=5)
    with pytest.raises(UsageError, match="elsewhere for them"):
        make_backup(home, load_settings(home.root), tmp_path / "b", keys_to=tmp_path / "b" / "keys", patience_s=5)


@pytest.fixture
def backed_up(home: Home, tmp_path: Path) -> Path:
    database = Database.in_home(home.database)
    database.record_instance(study_key="s1", name="0001.dcm", sop_key="x", size_bytes=1)
    database.close()
    (home.spool / "s1").mkdir()
    (home.spool / "s1" / "0001.dcm").write_bytes(b"an original")
    make_backup(home, load_settings(home.root), tmp_path / "backup", keys_to=tmp_path / "keys", patience_s=5)
    return tmp_path / "backup"


def test_a_backup_that_was_changed_is_not_restored(backed_up: Path, tmp_path: Path) -> None:
    original = backed_up / "home" / "spool" / "s1" / "0001.dcm"
    original.write_bytes(b"a forgery!!")
    target = Home(tmp_path / "other")
    with pytest.raises(EnvironmentFault, match=r"0001\.dcm is missing or was changed"):
        restore_backup(backed_up, target, load_settings(target.root), tmp_path / "keys")
    with pytest.raises(EnvironmentFault, match="is not a gateway home"):
        target.require()  # what was cut off is not served
    lines = (backed_up / "files.jsonl").read_text().splitlines()
    (backed_up / "files.jsonl").write_text("\n".join(lines[1:]) + "\n")
    with pytest.raises(EnvironmentFault, match="it was changed, or these are not its keys"):
        restore_backup(backed_up, Home(tmp_path / "third"), load_settings(tmp_path), tmp_path / "keys")


def test_a_restore_needs_the_keys_and_empty_places(backed_up: Path, home: Home, tmp_path: Path) -> None:
    target, values = Home(tmp_path / "other"), load_settings(tmp_path)
    with pytest.raises(UsageError, match="a backup holds no keys"):
        restore_backup(backed_up, target, values, None)
    stranger = Home(tmp_path / "stranger")
    stranger.create()
    with pytest.raises(EnvironmentFault, match="these are not its keys"):
        restore_backup(backed_up, target, values, stranger.keys)
    with pytest.raises(UsageError, match="is not empty"):
        restore_backup(backed_up, home, values, tmp_path / "keys")
    with pytest.raises(UsageError, match="is no backup"):
        restore_backup(tmp_path / "keys", target, values, tmp_path / "keys")
    full = f"sqlite:///{home.database}"
    with pytest.raises(UsageError, match="holds something already"):
        restore_backup(backed_up, target, load_settings(tmp_path, database_url=full), tmp_path / "keys")


def test_a_ledger_that_grows_meanwhile_is_whole_where_no_links_can_be_made(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Database.in_home(home.database).close()
    ledger = Ledger(home.ledger, Keys(master_key(home, load_settings(home.root))).ledger)
    ledger.append("started", "started/1")

    def no_links(*_given: object, **_more: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    def link_and_go_on(home: Home, stage: Path) -> list[Entry]:
        entries = link_home(home, stage)
        ledger.append("sent", "sent/1")  # sending does not rest
        return entries

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(making, "link_home", link_and_go_on)
    make_backup(home, load_settings(home.root), tmp_path / "backup", keys_to=tmp_path / "keys", patience_s=5)
    other = Home(tmp_path / "other")
    restore_backup(tmp_path / "backup", other, load_settings(other.root), tmp_path / "keys")
    restored = Ledger(other.ledger, ledger._key)
    assert [line["event"] for line in restored.lines()] == ["started", "sent", "restored"]
    assert restored.verify().sound


def test_a_file_that_is_replaced_as_it_is_linked_is_whole(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, link = home.root / "state.json", os.link
    state.write_bytes(b"the old one, which is longer")

    def link_and_replace(source: Path, target: Path, *, follow_symlinks: bool) -> None:
        link(source, target, follow_symlinks=follow_symlinks)
        if source == state:
            (home.root / "state.new").write_bytes(b"new")
            (home.root / "state.new").rename(state)

    monkeypatch.setattr(os, "link", link_and_replace)
    (home.root / STAGE).mkdir()
    sizes = {one.path: one.size for one in link_home(home, home.root / STAGE)}
    assert sizes["state.json"] == len(b"the old one, which is longer")


def test_links_of_a_backup_that_was_killed_go_and_those_of_one_at_work_stay(home: Home) -> None:
    stage = home.root / STAGE
    stage.mkdir()
    link_home(home, stage)
    assert clear_stage(home)
    assert not stage.exists()
    assert not clear_stage(home)


def test_work_rests_for_a_backup_and_a_backup_waits_for_work(tmp_path: Path) -> None:
    pause, order = Pause(tmp_path / "engine.lock"), []
    began, go_on = threading.Event(), threading.Event()

    def leg() -> None:
        with pause.working():
            began.set()
            go_on.wait(10)
            order.append("first leg")

    def second_leg() -> None:
        with pause.working():
            order.append("second leg")

    first, second = threading.Thread(target=leg), threading.Thread(target=second_leg)
    first.start()
    assert began.wait(10)
    with pytest.raises(EnvironmentFault, match="did not come to rest within 0 s"), pause.alone(patience_s=0.2):
        pass
    with pause.working():
        order.append("beside it")
    timer = threading.Timer(0.3, go_on.set)
    timer.start()
    with pause.alone(patience_s=10):
        second.start()
        time.sleep(0.3)
        order.append("alone")
    for thread in (first, second, timer):
        thread.join(10)
    assert order == ["beside it", "first leg", "alone", "second leg"]


def test_the_manifest_names_every_file(backed_up: Path) -> None:
    listed = {json.loads(line)["path"] for line in (backed_up / "files.jsonl").read_text().splitlines()}
    there = {str(path.relative_to(backed_up)) for path in backed_up.rglob("*") if path.is_file()}
    assert there - listed == {"files.jsonl", "manifest.json"}
    assert listed <= there


def test_the_tables_of_a_backup_are_those_of_one_moment(elsewhere: str, tmp_path: Path) -> None:
    url = elsewhere or f"sqlite:///{tmp_path}/database.sqlite"
    database = Database.in_home(tmp_path / "database.sqlite", elsewhere)

    def arrive(name: str) -> None:
        database.record_instance(study_key="s1", name=name, sop_key=name, size_bytes=1)

    for number in range(3):
        arrive(f"{number}.dcm")
    with snapshot(url) as looked_at:
        require_schema(looked_at)
        arrive("later.dcm")  # writers are not kept waiting
        count = write_tables(looked_at, tmp_path / "tables.sqlite")
    assert [row.name for row in database.instances_of("s1")] == ["0.dcm", "1.dcm", "2.dcm", "later.dcm"]
    database.close()
    copied = Database.in_home(tmp_path / "tables.sqlite")
    assert [row.name for row in copied.instances_of("s1")] == ["0.dcm", "1.dcm", "2.dcm"]
    assert count == 4  # with the study
    copied.close()


def test_an_opt_out_that_only_the_ledger_knows_of_holds_again_after_a_restore(home: Home, tmp_path: Path) -> None:
    database = Database.in_home(home.database)
    ledger = Ledger(home.ledger, Keys(master_key(home, load_settings(home.root))).ledger)
    ledger.append("subject_opted_out", "o/1", subject="p", issuer="", at_time=1.0, actor="dpo", reason_given="a letter")
    database.close()
    make_backup(home, load_settings(home.root), tmp_path / "backup", keys_to=tmp_path / "keys", patience_s=5)
    other = Home(tmp_path / "other")
    done = restore_backup(tmp_path / "backup", other, load_settings(other.root), tmp_path / "keys")
    assert done.wishes == 1
    restored = Database.in_home(other.database)
    assert [one.subject for one in restored.opted_out()] == [Subject("p")]
    restored.close()
