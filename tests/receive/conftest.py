"""A receiver on a free port, with everything that it writes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.database import Database
from gateway.observe.metrics import Metrics
from gateway.pseudonyms import Keys
from gateway.receive import Receiver
from gateway.settings import Home, Settings
from gateway.spool import Spool
from tests.peers import wait_until
from tests.receive.raw_peer import RawPeer


@dataclass
class Door:
    """A running receiver."""

    receiver: Receiver
    spool: Spool
    database: Database
    keys: Keys
    metrics: Metrics

    @property
    def port(self) -> int:
        return self.receiver.port

    def peer(self) -> RawPeer:
        return RawPeer(self.port)

    def kept(self) -> list[Path]:
        """Every object that was kept, in the order of arrival."""
        return sorted(self.spool.root.rglob("*.dcm"), key=lambda path: path.stat().st_mtime_ns)

    def parts(self) -> list[Path]:
        return list(self.spool.incoming.iterdir())

    def value(self, metric: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(metric, labels) or 0.0

    def associations(self, result: str) -> float:
        return self.value("deid_associations_total", result=result)

    def ended(self, result: str, times: int = 1) -> bool:
        """Wait until so many associations ended so: they are counted after the peer has its answer."""
        wait_until(lambda: self.associations(result) >= times, seconds=20, what=f"{times} ended {result}")
        return self.associations(result) == times

    def study_key(self, study_instance_uid: str) -> str:
        return self.keys.opaque("study", study_instance_uid)


@pytest.fixture
def open_door(home: Home, keys: Keys, settings: Callable[..., Settings]) -> Iterator[Callable[..., Door]]:
    """`open_door(max_associations=2)`: a started receiver that lets PACS in from this machine."""
    doors: list[Door] = []

    def build(**overrides: object) -> Door:
        chosen = {"allowed_peers": "PACS@127.0.0.1", "min_free_bytes": 0, "network_timeout_s": 10.0, **overrides}
        spool, metrics = Spool(home.spool), Metrics()
        database = Database.in_home(home.database)
        receiver = Receiver(settings=settings(**chosen), spool=spool, database=database, keys=keys, metrics=metrics)
        receiver.start()
        doors.append(Door(receiver, spool, database, keys, metrics))
        return doors[-1]

    yield build
    for door in doors:
        door.receiver.stop()
        door.database.close()


@pytest.fixture
def door(open_door: Callable[..., Door]) -> Door:
    """A receiver with the usual settings."""
    return open_door()
