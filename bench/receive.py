"""Receiving: this gateway against DCMTK's storescp, Orthanc and a plain pynetdicom handler, in the same run.

    make bench NAME=receive

Two regimes. `as shipped`: DCMTK's storescu and the peers with Nagle on, as they come. `light`: a sender with
TCP_NODELAY that costs next to nothing, at 1 to 8 associations: the receiver's own limit. There peers receive
with TCP_NODELAY=1. The gateway syncs file, folder and database row before it answers; the others sync nothing.
Figures are medians of interleaved rounds: ratios and CPU a file hold between machines, files/s do not.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
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
RESULT = Path(__file__).parent / "results" / "receive.json"


def measure(servers: list[Server], shipped: list[Server], root: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Medians over ROUNDS interleaved rounds: server -> regime -> figure."""
    data, at = template(FILE_BYTES)
    large, large_at = template(LARGE_BYTES)
    files = root / "files"
    files.mkdir()
    write_files(files, data, at, 240)
    rows: dict[str, dict[str, dict[str, list[float]]]] = {}

    def note(server: Server, regime: str, rate: float, cpu_ms: float) -> None:
        row = rows.setdefault(server.name, {}).setdefault(regime, {"files_per_s": [], "cpu_ms_per_file": []})
        row["files_per_s"].append(rate)
        row["cpu_ms_per_file"].append(cpu_ms)

    first = 1000  # no number twice: a second arrival costs some receivers more, or less
    for _ in range(ROUNDS):
        for server in servers:
            slow = server.name == "pynetdicom"
            for associations in ASSOCIATIONS:
                count = 96 if slow else 400
                before = server.cpu_s()
                rate = light(server, data, at, associations=associations, first=first, count=count)
                first += count
                note(server, f"light_{associations}", rate, 1000 * (server.cpu_s() - before) / count)
                server.clear()
            before = server.cpu_s()
            rate = light(server, large, large_at, associations=4, first=first, count=8)
            first += 8
            note(server, "large_4", rate, 1000 * (server.cpu_s() - before) / 8)
            server.clear()
        for server in shipped:
            count = 240 if server.name == "gateway" else 40
            before = server.cpu_s()
            note(server, "as_shipped", as_shipped(server, files, count), 1000 * (server.cpu_s() - before) / count)
            server.clear()
    return {
        name: {regime: {k: statistics.median(v) for k, v in figures.items()} for regime, figures in row.items()}
        for name, row in rows.items()
    }


def ratios(result: dict[str, dict[str, dict[str, float]]], *others: str) -> dict[str, float]:
    """Ours over the best of `others`, by regime."""
    found = [name for name in others if name in result]
    return {
        regime: round(figures["files_per_s"] / max(result[name][regime]["files_per_s"] for name in found), 2)
        for regime, figures in result["gateway"].items()
        if found
    }


def main() -> None:
    console = Console(width=140)
    with tempfile.TemporaryDirectory(prefix="bench-receive-") as folder, contextlib.ExitStack() as running:
        root = Path(folder)
        servers = [running.enter_context(python_server(kind, root)) for kind in ("gateway", "pynetdicom")]
        shipped = list(servers)
        if peers.available("dcmtk"):
            fast = ("--fork", "+B", "-pdu", "131072")
            for nodelay, those in ((True, servers), (False, shipped)):
                those.append(running.enter_context(storescp("storescp", root, nodelay=nodelay)))
                those.append(running.enter_context(storescp("storescp fork", root, *fast, nodelay=nodelay)))
        if peers.available("orthanc"):
            for nodelay, those in ((True, servers), (False, shipped)):
                those.append(running.enter_context(orthanc(root, nodelay=nodelay)))
        idle = {s.name: idle_cpu_percent(s) for s in servers if s.name in ("gateway", "pynetdicom")}
        result = measure(servers, shipped, root)
        memory = {server.name: round(server.peak_rss_mb(), 1) for server in servers}
        commands = {server.name: server.command for server in servers}

    regimes = list(result["gateway"])
    table = Table(title=f"objects/s (CPU ms each), medians; {FILE_BYTES} bytes each, large {LARGE_BYTES}")
    for column in ("receiver", *regimes, "peak MB", "40 idle, % of a core"):
        table.add_column(column, justify="left" if column == "receiver" else "right")
    for name, row in result.items():
        cells = [f"{row[r]['files_per_s']:,.0f} ({row[r]['cpu_ms_per_file']:.2f})" for r in regimes]
        table.add_row(name, *cells, f"{memory[name]:.0f}", f"{idle[name]:.1f}" if name in idle else "")
    console.print(table)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    report = {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cpus": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "kernel": platform.release(),
        "commit": commit.stdout.strip(),
        "commands": {"bench": "make bench NAME=receive", **commands},
        "figures": result,
        "idle_cpu_percent": idle,
        "peak_rss_mb": memory,
        "ratio_vs_storescp": ratios(result, "storescp fork", "storescp"),
        "ratio_vs_default_storescp": ratios(result, "storescp"),
        "ratio_vs_orthanc": ratios(result, "orthanc"),
        "ratio_vs_pynetdicom": ratios(result, "pynetdicom"),
    }
    for name in (name for name in report if name.startswith("ratio")):
        console.print(name, report[name])
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
