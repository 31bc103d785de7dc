"""Receiving: this gateway against DCMTK's storescp, Orthanc and a plain pynetdicom handler, in the same run.

    make bench NAME=receive                       # .venv/bin/python -m bench.receive [ROUNDS]

Regimes. `light_N`: a sender with TCP_NODELAY that costs next to nothing, N associations: the receiver's own limit;
peers receive with TCP_NODELAY=1. `large_4`: objects of 50 MB, 4 associations. `as_shipped`: DCMTK's storescu and the
peers with Nagle on, as they come. On `disk` the gateway syncs file, folder and database row before it answers, and the
others sync nothing. In `memory` all of them write to a tmpfs, where a sync costs nothing: the same without the disk.
`gateway` is one process, `gateway 2` two that share the port (DEID_RECEIVERS=2).

Figures are medians of interleaved rounds: ratios and CPU a file hold between machines, files/s do not. What was
measured is kept after every round; a run that was interrupted goes on, one of other code begins anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.receiving.receivers import Server, orthanc, python_server, serve, storescp
from bench.receiving.senders import as_shipped, idle_cpu_percent, light, template, write_files
from tests import peers

ROUNDS = 3
ASSOCIATIONS = (1, 2, 4, 8)
FILE_BYTES = 348_000  # the mean of performance.md's corpus
LARGE_BYTES = 50_000_000
FILES, SLOW_FILES, LARGE_FILES, SHIPPED_FILES, SLOW_SHIPPED_FILES = 400, 96, 8, 240, 40
MEMORY = Path("/dev/shm")
STORES = {"disk": Path(tempfile.gettempdir()), "memory": MEMORY}
BEST = "gateway 2"
RESULT = Path(__file__).parent / "results" / "receive.json"
UNFINISHED = Path(tempfile.gettempdir()) / "bench-receive-unfinished.json"

Figures = dict[str, dict[str, dict[str, float]]]  # server -> regime -> figure


def one_round(servers: list[Server], shipped: list[Server], root: Path, first: int) -> Figures:
    """Every server in every regime, one after the other. Numbers of objects from `first` on."""
    data, at = template(FILE_BYTES)
    large, large_at = template(LARGE_BYTES)
    rows: Figures = {}

    def note(server: Server, regime: str, count: int, send: Callable[[], float]) -> None:
        before = server.cpu_s()
        rate = send()
        cpu_ms = 1000 * (server.cpu_s() - before) / count
        rows.setdefault(server.name, {})[regime] = {"files_per_s": rate, "cpu_ms_per_file": cpu_ms}
        server.clear()

    numbers = itertools.count(first, FILES)  # no number twice: a second arrival costs some receivers more, or less
    for associations in ASSOCIATIONS:
        for server in servers:
            count = SLOW_FILES if server.name == "pynetdicom" else FILES
            sent = partial(light, server, data, at, associations=associations, first=next(numbers), count=count)
            note(server, f"light_{associations}", count, sent)
    for server in servers:
        sent = partial(light, server, large, large_at, associations=4, first=next(numbers), count=LARGE_FILES)
        note(server, "large_4", LARGE_FILES, sent)
    for server in shipped:
        count = SHIPPED_FILES if server.name.startswith("gateway") else SLOW_SHIPPED_FILES
        note(server, "as_shipped", count, partial(as_shipped, server, root / "files", count))
    return rows


@contextlib.contextmanager
def all_servers(root: Path) -> Iterator[tuple[list[Server], list[Server]]]:
    """Those that are measured with light senders, and those that meet storescu as it comes."""
    with contextlib.ExitStack() as running:
        servers = [
            running.enter_context(python_server("gateway", root)),
            running.enter_context(python_server("gateway 2", root, receivers=2)),
            running.enter_context(python_server("pynetdicom", root)),
        ]
        shipped = list(servers)
        if peers.available("dcmtk"):
            fast = ("--fork", "+B", "-pdu", "131072")
            for nodelay, those in ((True, servers), (False, shipped)):
                those.append(running.enter_context(storescp("storescp", root, nodelay=nodelay)))
                those.append(running.enter_context(storescp("storescp fork", root, *fast, nodelay=nodelay)))
        if peers.available("orthanc"):
            for nodelay, those in ((True, servers), (False, shipped)):
                those.append(running.enter_context(orthanc(root, nodelay=nodelay)))
        yield servers, shipped


def measure(rounds: int, state: State) -> None:
    """Rounds on disk and in memory by turns, until there are so many; `state` is kept after each."""
    for number in range(len(state.rounds), rounds):
        found: dict[str, Figures] = {}
        for store, place in STORES.items():
            with tempfile.TemporaryDirectory(prefix="bench-receive-", dir=place) as folder:
                root = Path(folder)
                data, at = template(FILE_BYTES)
                (root / "files").mkdir()
                write_files(root / "files", data, at, SHIPPED_FILES)
                with all_servers(root) as (servers, shipped):
                    if not state.idle_cpu_percent:
                        state.idle_cpu_percent = {
                            server.name: idle_cpu_percent(server)
                            for server in servers
                            if server.name.startswith("gateway") or server.name == "pynetdicom"
                        }
                    found[store] = one_round(servers, shipped, root, first=1000 + 1_000_000 * number)
                    for server in servers:
                        peak = round(max(server.peak_rss_mb(), state.peak_rss_mb.get(server.name, 0.0)), 1)
                        state.peak_rss_mb[server.name] = peak
                        state.commands[server.name] = server.command
        state.rounds.append(found)
        UNFINISHED.write_text(json.dumps(vars(state)))


@dataclass
class State:
    """What was measured so far, and by which code."""

    code: str
    rounds: list[dict[str, Figures]] = field(default_factory=list)
    idle_cpu_percent: dict[str, float] = field(default_factory=dict)
    peak_rss_mb: dict[str, float] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)


def begun() -> State:
    """An interrupted run of this very code, or a new one."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted([*root.glob("gateway/**/*.py"), *root.glob("bench/receiving/*.py"), Path(__file__)]):
        digest.update(path.read_bytes())
    if UNFINISHED.exists():
        state = State(**json.loads(UNFINISHED.read_text()))
        if state.code == digest.hexdigest():
            return state
    return State(digest.hexdigest())


def medians(rounds: list[dict[str, Figures]], store: str) -> Figures:
    first = rounds[0][store]
    return {
        name: {
            regime: {
                figure: statistics.median(one[store][name][regime][figure] for one in rounds) for figure in figures
            }
            for regime, figures in regimes.items()
        }
        for name, regimes in first.items()
    }


def ratios(figures: Figures, ours: str, *others: str) -> dict[str, float]:
    """Ours over the best of `others`: by the number of associations, and for the other regimes."""
    found = [name for name in others if name in figures]
    return {
        regime.removeprefix("light_"): round(
            row["files_per_s"] / max(figures[name][regime]["files_per_s"] for name in found), 2
        )
        for regime, row in figures[ours].items()
        if found
    }


def all_ratios(figures: Figures, ours: str) -> dict[str, dict[str, float]]:
    return {
        "ratio_vs_storescp": ratios(figures, ours, "storescp fork", "storescp"),
        "ratio_vs_default_storescp": ratios(figures, ours, "storescp"),
        "ratio_vs_orthanc": ratios(figures, ours, "orthanc"),
        "ratio_vs_pynetdicom": ratios(figures, ours, "pynetdicom"),
    }


def show(console: Console, title: str, figures: Figures, memory: dict[str, float], idle: dict[str, float]) -> None:
    regimes = list(figures["gateway"])
    table = Table(title=title)
    for column in ("receiver", *regimes, "peak MB", "40 idle, % of a core"):
        table.add_column(column, justify="left" if column == "receiver" else "right")
    for name, row in figures.items():
        cells = [f"{row[r]['files_per_s']:,.0f} ({row[r]['cpu_ms_per_file']:.2f})" for r in regimes]
        table.add_row(name, *cells, f"{memory[name]:.0f}", f"{idle[name]:.1f}" if name in idle else "")
    console.print(table)


def main(rounds: int) -> None:
    console = Console(width=150)
    state = begun()
    measure(rounds, state)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    report: dict[str, object] = {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cpus": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "kernel": platform.release(),
        "commit": commit.stdout.strip(),
        "rounds": len(state.rounds),
        "load_average": os.getloadavg(),
        "commands": {"bench": f"python -m bench.receive {rounds}", **state.commands},
        "idle_cpu_percent": state.idle_cpu_percent,
        "peak_rss_mb": state.peak_rss_mb,
        "ours": BEST,
    }
    for store in STORES:
        figures = medians(state.rounds, store)
        title = f"{store}: objects/s (CPU ms each), medians of {rounds}; {FILE_BYTES} bytes each, large {LARGE_BYTES}"
        show(console, title, figures, state.peak_rss_mb, state.idle_cpu_percent)
        best, alone = all_ratios(figures, BEST), all_ratios(figures, "gateway")
        report |= {"figures": figures, **best, "of_one_process": alone} if store == "disk" else {}
        report |= {"without_disk": {"figures": figures, **best, "of_one_process": alone}} if store == "memory" else {}
        for name in best:
            console.print(store, name, best[name], "one process:", alone[name])
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    UNFINISHED.unlink(missing_ok=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
