"""Sending: this gateway's forward() against DCMTK's storescu and dcmsend, and pynetdicom's own senders.

    make bench NAME=send

All send to DCMTK's `storescp --fork +B`, in two regimes: `nodelay` (TCP_NODELAY=1 on both sides, the harder yardstick)
and `shipped` (an archive as it comes, with Nagle's algorithm on). Ours checks the seal, and sha256 of every file and of
its data set, within the measured time; the others check nothing. DCMTK's start-up is taken off by a run with one file.
Figures are medians of interleaved rounds: ratios and CPU a file hold between machines, files/s do not.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.sending.senders import DCMTK, PYTHON, Run, run_dcmtk, run_python, write_corpus
from tests import peers

ROUNDS = 5
FILES = 400  # for each association
SLOW_FILES = 80  # of pynetdicom's own senders
ASSOCIATIONS = (1, 4)
FILE_BYTES = 348_000  # the mean of performance.md's corpus
RESULT = Path(__file__).parent / "results" / "send.json"
MEMORY = Path("/dev/shm")  # so that the archive's disk is not what is measured


@contextlib.contextmanager
def archive(root: Path, *, nodelay: bool) -> Iterator[tuple[str, Path]]:
    folder = root / f"archive-{nodelay}"
    with peers.storescp(folder, "--fork", "+B", "-pdu", "131072", nodelay=nodelay) as scp:
        yield scp.url, folder


def measure(root: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Medians over ROUNDS interleaved rounds: sender -> regime -> figure."""
    folders = [root / f"corpus-{number}" for number in range(max(ASSOCIATIONS))]
    for folder in folders:
        write_corpus(folder, FILES)
    few = [root / f"few-{number}" for number in range(max(ASSOCIATIONS))]
    for folder, source in zip(few, folders, strict=True):
        folder.mkdir()
        for path in sorted(source.iterdir())[:24]:
            shutil.copy(path, folder)
    rows: dict[str, dict[str, dict[str, list[float]]]] = {}

    def note(sender: str, regime: str, run: Run, sent: int, arrived: Path) -> None:
        row = rows.setdefault(sender, {}).setdefault(regime, {"files_per_s": [], "cpu_ms_per_file": [], "lost": []})
        row["files_per_s"].append(run.stored / run.seconds)
        row["cpu_ms_per_file"].append(1000 * run.cpu_s / max(1, run.stored))
        there = list(arrived.iterdir())
        row["lost"].append(sent - len(there))
        for path in there:
            path.unlink()

    with archive(root, nodelay=True) as (fast_url, fast), archive(root, nodelay=False) as (shipped_url, shipped):
        for _ in range(ROUNDS):
            for associations in ASSOCIATIONS:
                some, regime = folders[:associations], f"nodelay_{associations}"
                for sender in DCMTK:
                    note(sender, regime, run_dcmtk(sender, fast_url, some, nodelay=True), FILES * associations, fast)
                for sender in PYTHON:
                    count = FILES if sender == "gateway" else SLOW_FILES
                    note(sender, regime, run_python(sender, fast_url, some, count), count * associations, fast)
            for associations in ASSOCIATIONS:
                some, regime = few[:associations], f"shipped_{associations}"
                for sender in DCMTK:
                    note(
                        sender, regime, run_dcmtk(sender, shipped_url, some, nodelay=False), 24 * associations, shipped
                    )
                some = folders[:associations]
                note("gateway", regime, run_python("gateway", shipped_url, some, 200), 200 * associations, shipped)
    return {
        sender: {
            regime: {
                name: float(sum(values)) if name == "lost" else round(statistics.median(values), 3)
                for name, values in figures.items()
            }
            for regime, figures in row.items()
        }
        for sender, row in rows.items()
    }


def main() -> None:
    if not peers.available("dcmtk"):
        sys.exit("this benchmark needs DCMTK: apt-get install dcmtk")
    with tempfile.TemporaryDirectory(prefix="bench-send-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        result = measure(Path(folder))
    regimes = list(result["gateway"])
    table = Table(title=f"files/s (CPU ms each, lost in all), medians of {ROUNDS}; {FILE_BYTES} bytes each")
    for column in ("sender", *regimes):
        table.add_column(column, justify="left" if column == "sender" else "right")
    for sender, row in result.items():
        cells = [
            f"{row[r]['files_per_s']:,.0f} ({row[r]['cpu_ms_per_file']:.2f}, {row[r]['lost']:.0f})" if r in row else ""
            for r in regimes
        ]
        table.add_row(sender, *cells)
    ratios = {
        sender: {
            r: round(result["gateway"][r]["files_per_s"] / row[r]["files_per_s"], 2) for r in row if sender != "gateway"
        }
        for sender, row in result.items()
        if sender != "gateway"
    }
    Console(width=140).print(table)
    Console(width=140).print("gateway over", ratios)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    report = {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cpus": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "load_average_at_end": os.getloadavg(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip() if commit.returncode == 0 else "",
        "commands": {
            "bench": "make bench NAME=send",
            "archive": "storescp --fork +B -pdu 131072",
            **{sender: " ".join(args) for sender, args in DCMTK.items()},
        },
        "figures": result,
        "gateway_over": ratios,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
