"""Whatever fails: never a success without the object on disk and in the database, and nothing half-written stays."""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
import time

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from gateway.database import Database
from gateway.receive import arrival
from gateway.spool import Spool
from tests.peers import wait_until
from tests.receive.raw_peer import RawPeer, dataset, element, p_data, pdv, store_command

HALF = p_data(pdv(1, store_command(), command=True)) + p_data(pdv(1, b"\0" * 5000, last=False))


def half_sent(door) -> RawPeer:
    """A peer in the middle of an object, its part on disk."""
    peer = door.peer()
    peer.associate()
    peer.send(HALF)
    wait_until(lambda: any(part.stat().st_size > 5000 for part in door.parts()), seconds=5, what="the part is there")
    return peer


def nothing_left(door) -> None:
    wait_until(lambda: not door.parts(), seconds=5, what="the part is gone")
    assert door.kept() == []
    assert door.database.spooled_names() == frozenset()


class TestHalfAnObject:
    def test_an_abort_in_the_middle_leaves_nothing(self, door):
        peer = half_sent(door)
        peer.send(struct.pack(">BxI4x", 7, 4))
        assert peer.closed()
        nothing_left(door)
        assert door.ended("aborted")

    def test_a_lost_connection_leaves_nothing(self, door):
        peer = half_sent(door)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        peer.socket.close()
        nothing_left(door)
        assert door.ended("lost")

    def test_a_release_in_the_middle_leaves_nothing(self, door):
        peer = half_sent(door)
        peer.release()
        nothing_left(door)

    def test_a_new_command_in_the_middle_aborts(self, door):
        peer = half_sent(door)
        peer.send(p_data(pdv(1, store_command(), command=True)))
        assert peer.abort_reason() == (2, 5)
        nothing_left(door)

    @pytest.mark.parametrize(
        "middle", [b"", b"\4\0\0\0\x27", p_data(pdv(1, b"\0" * 500))[:100]], ids=["between", "header", "fragment"]
    )
    def test_a_sender_that_stalls_is_freed(self, open_door, middle):
        """cases.md 71: between PDUs, within a header, within a fragment."""
        door = open_door(network_timeout_s=0.4, max_associations=1)
        peer = half_sent(door)
        peer.send(middle)
        assert peer.abort_reason() == (2, 0)
        assert peer.closed()
        nothing_left(door)
        assert door.ended("timed_out")
        with door.peer() as another:
            another.associate()

    def test_a_sender_that_trickles_is_freed(self, open_door):
        door = open_door(network_timeout_s=0.4)
        peer = half_sent(door)
        peer.send(struct.pack(">BxIIBB", 4, 5006, 5002, 1, 0))
        began = time.monotonic()
        while not door.associations("timed_out") and time.monotonic() - began < 10:
            peer.send(b"\0")
            time.sleep(0.05)
        assert time.monotonic() - began < 5
        nothing_left(door)


class TestDisk:
    @pytest.mark.parametrize("call", ["open", "write", "fsync"])
    def test_a_failing_disk_is_out_of_resources(self, door, monkeypatch, call):
        real = getattr(os, call)

        def fails(*args, **kwargs):
            raise OSError(errno.ENOSPC, "No space left on device")

        with door.peer() as peer:
            peer.associate()
            monkeypatch.setattr(arrival.os, call, fails)
            status = peer.store(dataset())
            monkeypatch.setattr(arrival.os, call, real)
            assert status == 0xA700
            nothing_left(door)
            assert peer.store(dataset()) == 0x0000

    @pytest.mark.parametrize("step", ["new_part", "move", "sync"])
    def test_a_failing_spool_is_out_of_resources(self, door, monkeypatch, step):
        def fails(*_args):
            raise OSError(errno.EIO, "Input/output error")

        with door.peer() as peer:
            peer.associate()
            with monkeypatch.context() as broken:
                broken.setattr(Spool, step, fails)
                assert peer.store(dataset()) == 0xA700
            nothing_left(door)
            assert peer.store(dataset()) == 0x0000

    def test_a_full_disk_in_the_middle_of_an_object(self, door):
        """A real ENOSPC: /dev/full takes no byte."""
        opened = os.open

        def full(path, flags, mode=0o777):
            if str(path).endswith(".part"):
                os.close(opened(path, flags, mode))
                return opened("/dev/full", os.O_WRONLY)
            return opened(path, flags, mode)

        with pytest.MonkeyPatch.context() as patch, door.peer() as peer:
            peer.associate()
            patch.setattr(arrival.os, "open", full)
            assert peer.store(dataset(more=element(0x7FE0, 0x10, b"\0" * 100_000))) == 0xA700
        nothing_left(door)


class TestDatabase:
    def test_a_locked_database_is_out_of_resources_and_the_file_goes(self, door):
        event.listen(door.database.engine, "checkout", lambda raw, *_: raw.execute("PRAGMA busy_timeout=100"))
        other = Database(door.database.url)
        with door.peer() as peer:
            peer.associate()
            with other.transaction():
                assert peer.store(dataset()) == 0xA700
            # Whether the row was written could not be asked while it was locked: settled with the next object.
            assert peer.store(dataset()) == 0x0000
        assert len(door.kept()) == 1
        assert door.database.spooled_names() == {(door.kept()[0].parent.name, door.kept()[0].name)}
        assert door.parts() == []
        other.close()

    def test_a_refused_row_takes_its_file_along(self, door, monkeypatch):
        def fails(_self, _arrived):
            raise OperationalError("statement", {}, Exception("disk I/O error"))

        monkeypatch.setattr(Database, "record_instances", fails)
        with door.peer() as peer:
            peer.associate()
            assert peer.store(dataset()) == 0xA700
        nothing_left(door)
        assert door.value("deid_instances_received_total", result="out_of_resources") == 1

    def test_a_commit_that_fails_after_it_was_made_keeps_the_file(self, door, monkeypatch):
        """A row without a file would be a loss; the sender sends again and intake sees a duplicate."""
        real = Database.record_instances

        def made_but_broken(self, arrived):
            real(self, arrived)
            raise OperationalError("COMMIT", {}, Exception("server closed the connection"))

        monkeypatch.setattr(Database, "record_instances", made_but_broken)
        with door.peer() as peer:
            peer.associate()
            assert peer.store(dataset()) == 0xA700
        assert {(path.parent.name, path.name) for path in door.kept()} == door.database.spooled_names()
        assert len(door.kept()) == 1


def test_success_is_answered_after_file_folder_and_row_are_on_disk(door, monkeypatch):
    """DESIGN.md invariant 5: fsync, rename, fsync of the folder, commit, and only then the answer."""
    order: list[str] = []

    def noting(owner, name, label):
        real = getattr(owner, name)

        def call(*args, **kwargs):
            result = real(*args, **kwargs)
            order.append(label)
            return result

        monkeypatch.setattr(owner, name, call)

    with door.peer() as peer:
        peer.associate()
        noting(arrival.os, "fsync", "fsync")
        noting(Spool, "move", "move")
        noting(Spool, "sync", "sync")
        noting(Database, "record_instances", "row")
        noting(arrival.Arrival, "finish", "answer")
        assert peer.store(dataset()) == 0x0000
    # The file; then, within `move`, the spool for the study's new folder; then that folder, within `sync`.
    assert order == ["fsync", "fsync", "move", "fsync", "sync", "row", "answer"]


def test_what_nobody_foresaw_is_a_processing_failure_and_ends_the_association(door, monkeypatch):
    def fails(*_args, **_kwargs):
        raise ZeroDivisionError("a value that must not be logged")

    monkeypatch.setattr(arrival, "identify", fails)
    with door.peer() as peer:
        peer.associate()
        assert peer.store(dataset()) == 0x0110
        assert peer.abort_reason() == (2, 0)
    nothing_left(door)
    assert door.ended("failed")
    failures = "deid_unforeseen_failures_total"
    wait_until(lambda: door.value(failures, stage="receive") == 1, seconds=5, what="counted as unforeseen")
    monkeypatch.undo()
    with door.peer() as peer:
        peer.associate()
        assert peer.store(dataset()) == 0x0000


class TestStop:
    def test_a_running_store_is_finished_and_answered(self, door):
        peer = half_sent(door)
        stopping = threading.Thread(target=door.receiver.stop)
        stopping.start()
        time.sleep(0.2)
        peer.send(p_data(pdv(1, dataset())))
        assert peer.status() == 0x0000
        assert peer.abort_reason() == (2, 0)
        stopping.join(5)
        assert not stopping.is_alive()
        assert len(door.kept()) == 1

    def test_idle_associations_are_aborted_at_once(self, door):
        peers = [door.peer() for _ in range(5)]
        for peer in peers:
            peer.associate()
            assert peer.store(dataset()) == 0x0000
        began = time.monotonic()
        stopping = threading.Thread(target=door.receiver.stop)
        stopping.start()
        for peer in peers:
            assert peer.abort_reason() == (2, 0)
            peer.socket.close()
        stopping.join(5)
        assert time.monotonic() - began < 3
        assert door.ended("stopped", 5)

    def test_a_store_that_does_not_end_is_cut_after_the_grace(self, door, monkeypatch):
        monkeypatch.setattr("gateway.receive.receiver.STOP_GRACE_S", 0.3)
        peer = half_sent(door)
        door.receiver.stop()
        peer.socket.close()
        nothing_left(door)

    def test_stop_without_start_and_twice_does_nothing(self, door):
        door.receiver.stop()
        door.receiver.stop()


def test_an_idle_association_burns_no_processor_time(door):
    peers = [door.peer() for _ in range(20)]
    for peer in peers:
        peer.associate()
    before = time.process_time()
    time.sleep(0.5)
    used = time.process_time() - before
    for peer in peers:
        peer.socket.close()
    assert used < 0.1  # pynetdicom's 1 ms polling: 20 x 4 % of 0.5 s = 0.4 s
