"""From a PACS to the archive, whole: studies an hour by set of stages, beside those who only pass studies on.

    make bench NAME=pipeline                       # .venv/bin/python -m bench.pipeline [ROUNDS]

Ours is one real `serve` with its embedded database and a policy for each set, chosen by the called AE title: storescu
sends, the archive is DCMTK's storescp, and the clock runs from the first association to the last object in the archive,
after two studies have gone through that set that do not count. A gateway decides about whole studies, so that the last
ones wait for it: few studies make a rate look smaller than it is. The same studies go from storescu straight to the
archive, through a storescp and a second storescu, through Orthanc as they are, and through Orthanc's anonymisation (it
changes headers and judges nothing: the peer of `header`).

The heads are small and synthetic (28 slices of 64 thousand pixels at most), the films have 512 by 512 pixels: what a
study costs, not a byte of it. Rounds are interleaved, figures are medians. CPU a study holds on a busy machine, rates
do not: how many cores others had meanwhile stands beside each, and the range over the rounds says how far to trust it.
What was measured is kept, and an interrupted run goes on with the next set; a study that does not arrive ends the run
with its name and reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from bench.receiving.receivers import tree_of
from bench.serving.account import report, show
from bench.serving.arrival import Arrival, NotFinished, clear, wait_for_objects
from bench.serving.forwarding import Peer, forwarding, send_all
from bench.serving.gateway import Serving, cpu_s, serving, write_policies
from bench.serving.stages import FILMS, HEADS, STAGES
from bench.serving.studies import INSTANCES, Studies, store
from tests import peers

ROUNDS = 3
STUDIES = {  # of each set, in a round; of a peer for each kind
    "header": 20,
    "header+text": 10,
    "header+text+gate": 10,
    "header+text+deface": 2,
    "header+text+deface+gate": 2,
    "film header": 20,
    "film header+resynthesize": 8,
    "film header+resynthesize+gate": 8,
}
PEER_STUDIES, WARM_STUDIES = 20, 2
IDLE_S = 5.0
RESULT = Path(__file__).parent / "results" / "pipeline.json"
UNFINISHED = Path(tempfile.gettempdir()) / "bench-pipeline-unfinished.json"

Figures = dict[str, Any]


def busy_s() -> float:
    """Seconds in which the cores of this machine were busy so far, whoever with (proc_stat(5))."""
    user, nice, system, _idle, _iowait, *rest = (int(word) for word in Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def others(figures: Figures) -> Iterator[None]:
    """Notes the cores that were busy with what is not this benchmark, and the load."""
    began, all_before, own_before = time.perf_counter(), busy_s(), cpu_s(tree_of(os.getpid()))
    yield
    own, everything = cpu_s(tree_of(os.getpid())) - own_before, busy_s() - all_before
    figures["others_cores"] = round(max(0.0, everything - own) / (time.perf_counter() - began), 2)
    figures["load"] = round(os.getloadavg()[0], 2)


@dataclass
class Bench:
    """Everything that runs, and the studies that are still to be sent: their numbers are used once."""

    root: Path
    archive: Path
    gateway: Serving
    peers: list[Peer]
    progress: Progress
    line: TaskID
    pictures: dict[str, Studies]
    next_number: int = 0
    warm: set[str] = field(default_factory=set)

    def idle_cores(self) -> float:
        """Of the gateway when nothing is to be done: the others' figures bear it, for it runs beside them."""
        before = sum(self.gateway.cpu_s().values())
        time.sleep(IDLE_S)
        return round((sum(self.gateway.cpu_s().values()) - before) / IDLE_S, 3)

    def gateways(self, name: str, count: int) -> Figures:
        """Studies through one set of stages."""
        if name not in self.warm:
            self._send(name, WARM_STUDIES, {})
            self.warm.add(name)
        figures: Figures = {}
        cpu, legs = self.gateway.cpu_s(), self.gateway.leg_s()
        figures["seconds"] = self._send(name, count, figures)
        after_cpu, after_legs = self.gateway.cpu_s(), self.gateway.leg_s()
        figures["cpu_s"] = {who: round(after_cpu[who] - cpu[who], 3) for who in cpu}
        figures["leg_s"] = {leg: round(after_legs[leg] - legs.get(leg, 0.0), 3) for leg in after_legs}
        return figures

    def _send(self, name: str, count: int, figures: Figures) -> float:
        stages = STAGES[name]
        objects = INSTANCES[stages.studies] * count
        with self._studies(stages.studies, count) as studies, others(figures):
            arrival, tick = Arrival(self.gateway, self.archive), self._tick(name, objects)
            began = time.perf_counter()
            send_all(lambda study: store(study, self.gateway.dicom_port, stages.called), studies)
            arrival.wait(count, objects, tick)
            seconds = time.perf_counter() - began
            arrival.settle(count)
        return seconds

    def peer(self, peer: Peer, kind: str) -> Figures:
        """The same by somebody who only passes studies on."""
        figures: Figures = {}
        objects = INSTANCES[kind] * PEER_STUDIES
        with self._studies(kind, PEER_STUDIES) as studies, others(figures):
            began = time.perf_counter()
            send_all(peer.through, studies)
            wait_for_objects(self.archive, objects, self._tick(f"{peer.name}, {kind}", objects))
            figures["seconds"] = time.perf_counter() - began
        return figures

    @contextlib.contextmanager
    def _studies(self, kind: str, count: int) -> Iterator[list[Path]]:
        clear(self.archive)
        folder, numbers = self.root / "studies", range(self.next_number, self.next_number + count)
        self.next_number += count
        yield self.pictures[kind].write(folder, numbers)
        shutil.rmtree(folder)

    def _tick(self, name: str, objects: int) -> Any:
        self.progress.reset(self.line, total=objects, description=name)
        return lambda there: self.progress.update(self.line, completed=there)


@contextlib.contextmanager
def running(root: Path, progress: Progress) -> Iterator[Bench]:
    """The archive, the gateway and the others; they end with the block."""
    with contextlib.ExitStack() as all_of_them:
        archive = all_of_them.enter_context(peers.storescp(root / "archive", "--fork", "+B", ae_title="ARCHIVE"))
        policies = write_policies(root / "policies", list(STUDIES), archive.url)
        called = ",".join(STAGES[name].called for name in STUDIES)
        gateway = all_of_them.enter_context(serving(root, policies, quiet_s=5.0, called_ae_titles=called))
        found = all_of_them.enter_context(forwarding(root, archive))
        pictures = {kind: Studies(kind, root) for kind in (HEADS, FILMS)}
        line = progress.add_task("", total=None)
        yield Bench(root, root / "archive", gateway, found, progress, line, pictures)


def todo_of_a_round(peer_names: list[str]) -> list[tuple[str, str, str, int]]:
    """(who, name, kind of studies, how many). The peers of a kind come right after its headers, which they are compared
    with: what else runs on the machine changes from minute to minute.
    """
    todo = []
    for name, count in STUDIES.items():
        kind = STAGES[name].studies
        todo.append(("gateway", name, kind, count))
        if not STAGES[name].pixels:
            todo += [("peer", peer, kind, PEER_STUDIES) for peer in peer_names]
    return todo


def measure(rounds: int, state: dict[str, Any], console: Console) -> None:
    """Rounds of all sets and peers by turns; each figure is kept in `state` and on disk."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="bench-pipeline-") as folder,
        Progress(*columns, console=console) as progress,
    ):
        overall = progress.add_task("starting")
        with running(Path(folder), progress) as bench:
            todo = todo_of_a_round([peer.name for peer in bench.peers])
            state["commands"] = {peer.name: peer.command for peer in bench.peers}
            state["idle_cores"] = bench.idle_cores()
            by_name = {peer.name: peer for peer in bench.peers}
            progress.update(overall, total=rounds * len(todo))
            for number in range(rounds):
                for who, name, kind, count in todo:
                    progress.update(overall, description=f"round {number + 1} of {rounds}", advance=1)
                    kept = state["rounds"].setdefault(name if who == "gateway" else f"{name}, {kind}", [])
                    if len(kept) > number:
                        continue
                    figures = bench.gateways(name, count) if who == "gateway" else bench.peer(by_name[name], kind)
                    kept.append({"studies": count, "kind": kind, "who": who, **figures})
                    UNFINISHED.write_text(json.dumps(state))
                    rate = 3600 * count / figures["seconds"]
                    told = f"{name} ({kind}): {count} studies in {figures['seconds']:.1f} s, {rate:,.0f}/h"
                    progress.console.print(f"{told}; others had {figures['others_cores']:.1f} cores")


def begun(rounds: int) -> dict[str, Any]:
    """An interrupted run of this very code, or a new one."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256(str(rounds).encode())
    for path in sorted([*root.glob("gateway/**/*.py"), *root.glob("bench/serving/*.py"), Path(__file__)]):
        digest.update(path.read_bytes())
    if UNFINISHED.exists():
        state: dict[str, Any] = json.loads(UNFINISHED.read_text())
        if state["code"] == digest.hexdigest():
            return state
    return {"code": digest.hexdigest(), "rounds": {}}


def main(rounds: int) -> None:
    if not peers.available("dcmtk"):
        sys.exit("this benchmark needs DCMTK: apt-get install dcmtk")
    console = Console(width=140)
    state = begun(rounds)
    try:
        measure(rounds, state, console)
    except NotFinished as error:
        sys.exit(f"not finished: {error}")
    made = {**report(state["rounds"], rounds, state["commands"]), "gateway_idle_cores": state["idle_cores"]}
    show(made, console)
    RESULT.write_text(json.dumps(made, indent=1) + "\n")
    UNFINISHED.unlink(missing_ok=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
