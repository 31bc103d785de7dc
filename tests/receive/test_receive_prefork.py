"""Several receiver processes on one port: they share the work, the limits and the counts, and one that dies takes
nothing along that was acknowledged.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from gateway.database import Database
from gateway.errors import EnvironmentFault
from gateway.observe.metrics import Metrics
from gateway.pseudonyms import Keys
from gateway.receive import Receiver, Receivers, prefork, receiver_of
from gateway.settings import Home, Settings
from gateway.spool import Spool
from tests.peers import Postgres, need, wait_until
from tests.receive.raw_peer import RawPeer, dataset, p_data, pdv, store_command

OPEN = "deid_open_associations"


@dataclass
class House:
    """Receiver processes, and all that they write to."""

    receivers: Receivers
    spool: Spool
    database: Database
    metrics: Metrics
    keys: Keys

    def peer(self, **names: str) -> RawPeer:
        """An open association."""
        peer = RawPeer(self.receivers.port)
        peer.associate(**names)
        return peer

    def rejection(self, **names: str) -> tuple[int, int, int]:
        with RawPeer(self.receivers.port) as peer:
            return peer.rejection(**names)

    def exposed(self, sample: str) -> float:
        """A line of /metrics."""
        lines = generate_latest(self.metrics).decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == sample)

    def open_by_process(self) -> list[float]:
        """Open associations of each process, in the order of their seats."""
        self.exposed(OPEN)
        return [seat.totals.get(OPEN, {}).get((OPEN, ()), 0.0) for seat in self.receivers._seats]

    def spread(self) -> list[RawPeer]:
        """Open associations, so many that each process has some."""
        peers = [self.peer() for _ in range(4)]
        while not all(self.open_by_process()):
            assert len(peers) < 20, "one process takes everything"
            peers.append(self.peer())
        return peers

    def kept(self) -> set[tuple[str, str]]:
        return {(path.parent.name, path.name) for path in self.spool.root.rglob("*.dcm")}


@pytest.fixture
def open_house(home: Home, keys: Keys, settings: Callable[..., Settings]) -> Iterator[Callable[..., House]]:
    houses: list[House] = []

    def build(**overrides: object) -> House:
        chosen = {"allowed_peers": "PACS@127.0.0.1,CT@127.0.0.1", "min_free_bytes": 0, "receivers": 2, **overrides}
        values, spool, metrics = settings(**chosen), Spool(home.spool), Metrics()
        database = Database.in_home(home.database, values.database_url)
        receivers = receiver_of(settings=values, spool=spool, database=database, keys=keys, metrics=metrics)
        assert isinstance(receivers, Receivers)
        houses.append(House(receivers, spool, database, metrics, keys))
        receivers.start()
        return houses[-1]

    yield build
    for house in houses:
        house.receivers.stop()
        house.database.close()


@dataclass
class Sender:
    """Sends instances of one study, each once, until it is told to stop or the association ends."""

    peer: RawPeer
    number: int
    most: int = 10_000
    acknowledged: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    broken: bool = False

    def run(self) -> None:
        while not self.stop.is_set() and len(self.acknowledged) < self.most:
            sop = f"1.2.{self.number}.{len(self.acknowledged) + 1}"
            try:
                status = self.peer.store(dataset(sop, "1.2", more=b"\x10\0\x10\0\x04\0\0\0" + b"A B "), sop=sop)
            except (OSError, EOFError):
                self.broken = True
                return
            assert status == 0
            self.acknowledged.append(sop)


def at_work(senders: list[Sender]) -> list[threading.Thread]:
    threads = [threading.Thread(target=sender.run, daemon=True) for sender in senders]
    for thread in threads:
        thread.start()
    return threads


def sop_keys(house: House) -> set[str]:
    return {row.sop_key for row in house.database.instances_of(house.keys.opaque("study", "1.2"))}


def side_by_side(house: House) -> None:
    senders = [Sender(peer, number, most=10) for number, peer in enumerate(house.spread(), start=1)]
    total = 10 * len(senders)
    assert house.exposed(OPEN) == len(senders)
    for thread in at_work(senders):
        thread.join(60)
    acknowledged = {sop for sender in senders for sop in sender.acknowledged}
    assert len(acknowledged) == total
    assert sop_keys(house) == {house.keys.opaque("sop", sop) for sop in acknowledged}
    rows = house.database.instances_of(house.keys.opaque("study", "1.2"))
    assert len(rows) == total
    assert {row.generation for row in rows} == {1}
    assert {(row.study_key, row.name) for row in rows} == house.kept()
    assert list(house.spool.incoming.iterdir()) == []
    assert house.exposed('deid_instances_received_total{result="success"}') == total
    assert house.exposed("deid_store_seconds_count") == total
    for sender in senders:
        sender.peer.release()
    released = 'deid_associations_total{result="released"}'
    wait_until(lambda: house.exposed(released) == len(senders), seconds=60, what="counted")
    assert house.exposed(OPEN) == 0


def test_two_take_work_side_by_side_and_nothing_is_lost_or_doubled(open_house):
    side_by_side(open_house())


@pytest.mark.peer
def test_two_take_work_side_by_side_on_postgresql(open_house):
    need("postgres")
    with Postgres() as url:
        side_by_side(open_house(database_url=url))


def test_one_killed_under_load_loses_nothing_acknowledged_and_comes_back(open_house):
    house = open_house()
    senders = [Sender(peer, number) for number, peer in enumerate(house.spread(), start=1)]
    threads = at_work(senders)
    wait_until(lambda: all(len(sender.acknowledged) > 5 for sender in senders), seconds=60, what="all at work")
    before, (its, theirs) = house.receivers.pids(), house.open_by_process()
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: sum(sender.broken for sender in senders) == its, seconds=60, what="its associations end")
    others = [sender for sender in senders if not sender.broken]
    then = [len(sender.acknowledged) for sender in others]
    wait_until(lambda: not house.receivers.ready, seconds=60, what="it is missed")
    with house.peer(calling="CT") as late:  # the port is open all the time
        assert late.store(dataset("1.2.9.1", "1.2"), sop="1.2.9.1") == 0
    wait_until(lambda: house.receivers.ready, seconds=60, what="it is back")
    wait_until(
        lambda: all(len(sender.acknowledged) > n + 5 for sender, n in zip(others, then, strict=True)),
        seconds=20,
        what="the others' work went on",
    )
    for sender in senders:
        sender.stop.set()
    for thread in threads:
        thread.join(60)
    after = house.receivers.pids()
    assert before[0] not in after
    assert before[1] in after
    assert len(after) == 2
    acknowledged = {sop for sender in senders for sop in sender.acknowledged} | {"1.2.9.1"}
    rows = house.database.instances_of(house.keys.opaque("study", "1.2"))
    assert {house.keys.opaque("sop", sop) for sop in acknowledged} <= {row.sop_key for row in rows}
    assert len(rows) - len(acknowledged) <= its  # kept, but its answer did not get out
    assert sum(not sender.broken for sender in senders) == theirs
    assert {(row.study_key, row.name) for row in rows} <= house.kept()
    assert house.exposed("deid_receiver_processes_lost_total") == 1
    assert house.exposed("deid_receiver_processes") == 2


def test_places_are_counted_over_all_processes_and_a_dead_one_gives_its_own_back(open_house):
    house = open_house(max_associations=5, max_associations_per_peer=4)
    peers = house.spread()
    assert len(peers) == 4
    assert [house.rejection() for _ in range(3)] == [(2, 3, 2)] * 3
    counted = 'deid_associations_total{result="rejected_too_many_of_peer"}'
    wait_until(lambda: house.exposed(counted) == 3, seconds=60, what="counted")
    other = house.peer(calling="CT")
    assert [house.rejection(calling="CT") for _ in range(3)] == [(2, 3, 2)] * 3
    counted = 'deid_associations_total{result="rejected_too_many"}'
    wait_until(lambda: house.exposed(counted) == 3, seconds=60, what="counted")
    other.release()
    wait_until(lambda: house.exposed(OPEN) == 4, seconds=60, what="one has gone")
    its = house.open_by_process()[0]
    os.kill(house.receivers.pids()[0], signal.SIGKILL)
    wait_until(lambda: house.exposed(OPEN) == 4 - its, seconds=60, what="its associations end")
    peers += [house.peer() for _ in range(int(its))]
    assert house.rejection() == (2, 3, 2)


def test_a_sender_that_is_too_fast_waits_for_its_answers_over_all_its_associations(open_house):
    house = open_house(max_instances_per_s=20)
    senders = [Sender(house.peer(), number, most=6) for number in (1, 2)]
    began = time.monotonic()
    for thread in at_work(senders):
        thread.join(60)
    assert time.monotonic() - began >= 11 / 20  # the first of 12 is answered at once


def test_a_store_is_finished_and_answered_when_the_gateway_stops(open_house):
    house = open_house()
    peer = house.peer()
    peer.send(p_data(pdv(1, store_command(), command=True)) + p_data(pdv(1, dataset()[:20], last=False)))
    wait_until(lambda: any(house.spool.incoming.iterdir()), seconds=60, what="it is being received")
    pids = house.receivers.pids()
    stopping = threading.Thread(target=house.receivers.stop)
    stopping.start()
    time.sleep(0.3)
    peer.send(p_data(pdv(1, dataset()[20:])))
    assert peer.status() == 0
    assert peer.abort_reason() == (2, 0)
    stopping.join(60)
    assert not stopping.is_alive()
    assert len(house.kept()) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert house.exposed('deid_instances_received_total{result="success"}') == 1
    with pytest.raises(OSError, match="refused"):
        RawPeer(house.receivers.port)
    house.receivers.stop()  # a second time does nothing


def ends_at_once(_post: object, _pipe: object) -> None:
    os._exit(1)


def test_processes_that_do_not_come_up_stop_the_start(open_house, monkeypatch):
    monkeypatch.setattr(prefork, "run", ends_at_once)
    monkeypatch.setattr(prefork, "START_S", 2.0)
    with pytest.raises(EnvironmentFault, match="receiver processes do not start"):
        open_house()


PARENT = """
import sys
from pathlib import Path
from gateway.database import Database
from gateway.observe.metrics import Metrics
from gateway.pseudonyms import Keys
from gateway.receive import receiver_of
from gateway.settings import Home, load_settings
from gateway.spool import Spool
home = Home(Path(sys.argv[1]))
values = load_settings(home.root, dicom_port=0, receivers=2, allowed_peers="PACS@127.0.0.1", min_free_bytes=0)
receivers = receiver_of(settings=values, spool=Spool(home.spool), database=Database.in_home(home.database),
                        keys=Keys(b"k" * 32), metrics=Metrics())
receivers.start()
print(*receivers.pids(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["killed", "ended without a stop"])
def test_they_do_not_outlive_the_gateway(home, how):
    command = [sys.executable, "-c", PARENT, str(home.root)]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    os.kill(pids[1], signal.SIGTERM)  # as whoever stops a group of processes does: it is the parent that is meant
    if how == "killed":
        parent.kill()
        parent.wait(60)
    else:
        parent.communicate(timeout=60)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), seconds=60, what="they are gone")


def test_one_process_is_the_gateways_own(home, keys, settings):
    database = Database.in_home(home.database)
    alone = receiver_of(settings=settings(), spool=Spool(home.spool), database=database, keys=keys, metrics=Metrics())
    assert isinstance(alone, Receiver)
    database.close()
