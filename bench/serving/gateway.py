"""`deid-gateway serve` as a process of its own: started, asked how far it is, and what it cost."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from bench.receiving.receivers import stat_of, tree_of
from bench.serving.stages import write_policies
from gateway.database import Database
from gateway.settings import Home
from gateway.study import State
from tests import peers

__all__ = ["PACS", "Serving", "cpu_s", "serving", "write_policies"]

PACS = "PACS"
START_S = 180.0


def cpu_s(pids: list[int]) -> float:
    """CPU seconds of these processes, and of their children that have ended and were waited for."""
    return sum(int(ticks) for pid in pids for ticks in stat_of(pid)[11:15]) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Serving:
    """A running gateway. `pid` is that of `serve`; what it started descends from it."""

    home: Home
    dicom_port: int
    http_port: int
    pid: int
    log: Path
    database: Database

    def waiting(self) -> int:
        """Studies that wait for the machine."""
        return self.database.count_waiting()

    def states(self) -> dict[tuple[str, str], int]:
        """Jobs by state and reason."""
        return dict(self.database.count_states())

    def held_before_routing(self) -> int:
        """Studies that never became jobs, and wait for a person or were refused."""
        return sum(self.database.count_studies("held", "refused").values())

    def unfinished(self) -> list[str]:
        """A sentence for each study that was not sent: what it is at, or why it is held."""
        now = time.time()
        told = [
            f"study {row.study_key} g{row.generation}: {row.state} {row.reason}".rstrip()
            + f", first object {now - row.first_at:.0f} s ago"
            for row in self.database.studies_in("received", "held", "refused")
        ]
        unsent = [state for state in State if state != State.SENT]
        return told + [
            f"job {row.job_key} ({row.policy}): {row.state} {row.reason} {row.at}".rstrip()
            + f", for {now - row.updated_at:.0f} s"
            for row in self.database.jobs_in(*unsent)
        ]

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds so far: of `serve` itself (it receives, keeps the tables, sends), and of its workers."""
        own, *others = tree_of(self.pid)
        return {"serve": cpu_s([own]), "workers": cpu_s(others)}

    def leg_s(self) -> dict[str, float]:
        """Seconds so far in each leg, summed over studies; waiting for a worker counts."""
        with urlopen(f"http://127.0.0.1:{self.http_port}/metrics", timeout=30) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        samples = [sample for family in families for sample in family.samples]
        return {one.labels["stage"]: one.value for one in samples if one.name == "deid_stage_seconds_sum"}


@contextmanager
def serving(root: Path, policies: Path, **settings: object) -> Iterator[Serving]:
    """`serve` on free ports with a home below `root`, ready to receive. Its log is `root/serve.log`."""
    home = Home(root / "home")
    home.create()
    dicom_port, http_port = peers.free_port(), peers.free_port()
    chosen = {
        "home": home.root,
        "policies": policies,
        "dicom_port": dicom_port,
        "http_port": http_port,
        "allowed_peers": f"{PACS}@127.0.0.1",
        "min_free_bytes": 0,
        "poll_s": 0.2,
        **settings,
    }
    environment = {f"DEID_{name.upper()}": str(value) for name, value in chosen.items()}

    def ready() -> bool:
        assert process.poll() is None, f"serve ended: {(root / 'serve.log').read_text()[-600:]}"
        try:
            with urlopen(f"http://127.0.0.1:{http_port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    with open(root / "serve.log", "wb") as log:
        process = peers.spawn([sys.executable, "-m", "gateway", "serve"], output=log, env=environment)
    try:
        peers.wait_until(ready, seconds=START_S, what="serve is ready")
        database = Database.in_home(home.database)
        try:
            yield Serving(home, dicom_port, http_port, process.pid, root / "serve.log", database)
        finally:
            database.close()
    finally:
        peers.end(process, patience_s=START_S)
