"""The gateway processes of a run: started, killed, and brought back as a supervisor would bring them back."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from processes import alive_in_group
from running import GatewayProcess

from gateway.database import Database
from gateway.settings import Home

READY_S = 180.0
CHILD = 0.35  # of the kills hit a child: a worker of the pool, a receiver, whatever there is


@dataclass
class Gateways:
    """`members` processes over one home. `older` is a folder with an older version, for the starts of the moment."""

    home: Home
    policies: Path
    environment: Mapping[str, str]
    members: int = 1
    older: Path | None = None
    restarts: int = 0
    processes: list[GatewayProcess] = field(default_factory=list)
    _groups: list[int] = field(default_factory=list)
    _unwell_since: dict[int, float] = field(default_factory=dict)

    def start(self) -> None:
        for _ in range(self.members):
            self.processes.append(GatewayProcess(self.home, self.policies, self.environment))
            self._start(self.processes[-1])
        self.revive(all)

    @property
    def dicom_ports(self) -> Sequence[int]:
        return [process.dicom_port for process in self.processes]

    @property
    def http_ports(self) -> Sequence[int]:
        return [process.http_port for process in self.processes]

    def kill(self, dice: random.Random) -> str:
        """kill -9 of a gateway process or of one of its children; says which."""
        victim = dice.choice(self.processes)
        assert victim.process is not None
        children = [pid for pid in alive_in_group(victim.process.pid) if pid != victim.process.pid]
        if children and dice.random() < CHILD:
            with suppress(ProcessLookupError):
                os.kill(dice.choice(children), signal.SIGKILL)
            return "child"
        victim.kill()
        return "gateway"

    def revive(self, ready: Callable[[Iterable[bool]], bool] = lambda _: True) -> None:
        """Start again what has ended or is not alive any more (as a liveness probe finds); wait until `ready` (`any`,
        `all`) of the processes are ready."""
        deadline = time.monotonic() + READY_S
        while True:
            for one in self.processes:
                self._supervise(one)
            if ready(one.ready() for one in self.processes):
                return
            assert time.monotonic() < deadline, f"not ready; the log ends: {_tail(self.processes[0].log)}"
            time.sleep(0.1)

    @contextmanager
    def standing_still(self, dice: random.Random) -> Iterator[None]:
        """One process is stopped (SIGSTOP) for a while, and never knows."""
        process = dice.choice(self.processes).process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def stop(self) -> list[int]:
        """SIGTERM to all; their exit codes."""
        return [one.stop() for one in self.processes if one.process is not None and one.process.poll() is None]

    def orphans(self) -> list[int]:
        """Processes that outlived their gateway."""
        deadline = time.monotonic() + 10
        while (
            left := [pid for group in self._groups for pid in alive_in_group(group)]
        ) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def idle(self, url: str) -> bool:
        """Nothing waits for the machine."""
        database = Database.in_home(self.home.database, url)
        try:
            return not database.studies_in("received") and not database.unfinished_jobs()
        finally:
            database.close()

    def ends(self, url: str) -> Counter[str]:
        """Study generations and jobs by state and reason."""
        database = Database.in_home(self.home.database, url)
        try:
            found = Counter(f"study held {study.reason}" for study in database.studies_in("held"))
            for (state, reason), count in database.count_states().items():
                found[f"{state} {reason}".strip()] = count
            return found
        finally:
            database.close()

    def command_lines(self) -> dict[str, bytes]:
        """What `ps` shows of every process."""
        lines = {}
        for group in self._groups:
            for pid in alive_in_group(group):
                with suppress(OSError):
                    lines[f"command line of {pid}"] = Path(f"/proc/{pid}/cmdline").read_bytes()
        return lines

    def _start(self, one: GatewayProcess) -> None:
        one.folder = self.older
        try:
            one.start(wait=False)
        except OSError:  # its log has no room: the next look starts it
            return
        assert one.process is not None
        self._groups.append(one.process.pid)
        self._unwell_since.pop(one.dicom_port, None)

    def _supervise(self, one: GatewayProcess) -> None:
        if one.process is None or one.process.poll() is not None:
            self.restarts += one.process is not None and one.process.returncode != -signal.SIGKILL
            self._start(one)
        elif self._stalled(one):
            self.restarts += 1
            one.kill()
            self._start(one)

    def _stalled(self, one: GatewayProcess) -> bool:
        """A liveness probe that failed for ten seconds. While it starts, nothing answers, which is not unwell."""
        try:
            with urlopen(f"http://127.0.0.1:{one.http_port}/healthz", timeout=5):
                self._unwell_since.pop(one.dicom_port, None)
                return False
        except HTTPError:
            since = self._unwell_since.setdefault(one.dicom_port, time.monotonic())
            return time.monotonic() - since > 10.0
        except OSError:
            return False


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-1500:]
