"""A gateway at full rate for as long as you like: does anything grow that should not?

    make bench NAME=soak                           # .venv/bin/python -m bench.soak [MINUTES], 30 by default

A real `serve` with two receiver processes and its embedded database; two senders that never rest, each study of eight
slices with a person and UIDs of its own (synthetic); DCMTK's storescp as archive. DEID_MAX_WAITING_STUDIES makes the
senders wait when the gateway is behind, as a site would set it. Memory, descriptors and threads of every process are
read every few seconds, drawn (soak.png), and fitted with a line from a third of the time on, when all has started.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.receiving.receivers import listening_pids, tree_of
from bench.serving.gateway import Serving, serving, write_policies
from bench.serving.soak_studies import Refused, send_study, template
from tests import peers

MINUTES = 30.0
EVERY_S = 5.0
RECEIVERS, SENDERS, WAITING = 2, 2, 40
RESULTS = Path(__file__).parent / "results"
FIGURES = ("rss_mb", "descriptors", "threads")

Sample = dict[str, float]


def send_without_rest(port: int, number: int, stop: Event, sent: Synchronized[int], refused: Synchronized[int]) -> None:
    """A sender: studies number, number + SENDERS, ... until it is stopped; waits a moment when it is turned away."""
    study = template()
    while not stop.is_set():
        try:
            send_study(port, study, number)
        except Refused:
            with refused:
                refused.value += 1
            time.sleep(0.2)
            continue
        with sent:
            sent.value += 1
        number += SENDERS


def look(gateway: Serving) -> dict[int, Sample]:
    """Memory, descriptors and threads of each process of the gateway now."""
    found: dict[int, Sample] = {}
    for pid in tree_of(gateway.pid):
        with suppress(OSError, ValueError):  # it has ended meanwhile
            status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            if "VmRSS" in status:  # the dead that nobody has waited for have none
                found[pid] = {
                    "rss_mb": int(status["VmRSS"].split()[0]) / 1024,
                    "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
                    "threads": int(status["Threads"]),
                }
    return found


class Names:
    """What a process is, by when it was first seen."""

    def __init__(self, gateway: Serving) -> None:
        self._gateway = gateway
        self._names: dict[int, str] = {gateway.pid: "serve"}
        self._counts: Counter[str] = Counter()

    def of(self, pid: int) -> str:
        if pid not in self._names:
            kind = "receiver" if pid in listening_pids(self._gateway.dicom_port) else "worker"
            with suppress(OSError):
                if b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    kind = "tracker"
            self._counts[kind] += 1
            self._names[pid] = f"{kind} {self._counts[kind]}"
        return self._names[pid]


@contextmanager
def senders(port: int) -> Iterator[tuple[Synchronized[int], Synchronized[int]]]:
    """At work while the block runs; how many studies were taken, and how often one was turned away."""
    context = multiprocessing.get_context("fork")
    stop, sent, refused = context.Event(), context.Value("q", 0), context.Value("q", 0)
    at_work = [
        context.Process(target=send_without_rest, args=(port, number, stop, sent, refused), daemon=True)
        for number in range(SENDERS)
    ]
    for one in at_work:
        one.start()
    try:
        yield sent, refused
    finally:
        stop.set()
        for one in at_work:
            one.join(60)
            assert one.exitcode == 0, "a sender failed"


def soak(minutes: float, root: Path) -> dict[str, object]:
    """Run for so long; every sample by process, and what was sent, archived and decided."""
    series: dict[str, list[tuple[float, Sample]]] = {}
    archived = 0
    with peers.storescp(root / "archive", "--fork", "+B", ae_title="ARCHIVE") as archive:
        policies = write_policies(root / "policies", "header", archive.url)
        limits = {"receivers": RECEIVERS, "max_waiting_studies": WAITING, "quiet_s": 5.0}
        with serving(root, policies, **limits) as gateway:
            names, began = Names(gateway), time.monotonic()
            with senders(gateway.dicom_port) as (sent, refused):
                for turn in track(range(int(60 * minutes / EVERY_S)), description=f"{minutes:g} minutes"):
                    time.sleep(max(0.0, began + (turn + 1) * EVERY_S - time.monotonic()))
                    at_s = time.monotonic() - began
                    for pid, sample in look(gateway).items():
                        series.setdefault(names.of(pid), []).append((round(at_s, 1), sample))
                    archived += clear(root / "archive", older_than_s=60.0)
            seconds = time.monotonic() - began
            wait_until_idle(gateway)
            archived += clear(root / "archive", older_than_s=0.0)
            states = {f"{state} {reason}".strip(): count for (state, reason), count in gateway.states().items()}
    return {
        "seconds": round(seconds, 1),
        "studies_taken": sent.value,
        "turned_away": refused.value,
        "studies_per_hour": round(3600 * sent.value / seconds, 1),
        "instances_archived": archived,
        "jobs": states,
        "series": series,
    }


def clear(archive: Path, *, older_than_s: float) -> int:
    """Remove what has been in the archive for a while, so that its disk does not fill; how many objects."""
    before, gone = time.time() - older_than_s, 0
    with os.scandir(archive) as entries:
        for entry in entries:
            if entry.stat().st_mtime <= before:
                Path(entry.path).unlink()
                gone += 1
    return gone


def wait_until_idle(gateway: Serving) -> None:
    """Until every study that was taken has ended. AssertionError after ten minutes."""
    peers.wait_until(lambda: gateway.waiting() == 0, seconds=600, what="all studies have ended")


def slopes(series: dict[str, list[tuple[float, Sample]]], seconds: float) -> dict[str, dict[str, float]]:
    """By process: the last value of each figure, its peak, and its growth an hour from a third of the time on."""
    found = {}
    for name, samples in series.items():
        late = [(at_s, sample) for at_s, sample in samples if at_s >= seconds / 3]
        if len(late) < 3:  # it ended, or began, meanwhile
            continue
        hours = np.array([at_s for at_s, _ in late]) / 3600
        found[name] = {"samples": float(len(late))}
        for figure in FIGURES:
            values = np.array([sample[figure] for _, sample in late])
            found[name] |= {
                f"{figure}_last": round(float(values[-1]), 1),
                f"{figure}_peak": round(max(sample[figure] for _, sample in samples), 1),
                f"{figure}_per_hour": round(float(np.polyfit(hours, values, 1)[0]), 2),
            }
    return found


def draw(series: dict[str, list[tuple[float, Sample]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(FIGURES), 1, figsize=(9, 9), sharex=True, layout="constrained")
    for axis, name in zip(axes, FIGURES, strict=True):
        for process, samples in series.items():
            axis.plot([at_s / 60 for at_s, _ in samples], [sample[name] for _, sample in samples], label=process)
        axis.set_ylabel({"rss_mb": "resident memory, MB"}.get(name, name))
        axis.set_ylim(bottom=0)
    axes[0].legend(fontsize="small", ncols=4)
    axes[-1].set_xlabel("minutes")
    figure.suptitle("A gateway at full rate (synthetic studies)")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(minutes: float) -> None:
    console = Console(width=140)
    with tempfile.TemporaryDirectory(prefix="bench-soak-") as folder:
        report = soak(minutes, Path(folder))
    series = report.pop("series")
    assert isinstance(series, dict)
    seconds = report["seconds"]
    assert isinstance(seconds, float)
    processes = slopes(series, seconds)
    draw(series, RESULTS / "soak.png")
    table = Table(title=f"{minutes:g} minutes: last value (growth an hour)")
    for column in ("process", *FIGURES):
        table.add_column(column, justify="left" if column == "process" else "right")
    for name, row in processes.items():
        table.add_row(name, *(f"{row[f'{f}_last']:g} ({row[f'{f}_per_hour']:+.1f})" for f in FIGURES))
    console.print(table)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    report |= {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cpus": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "commit": commit.stdout.strip(),
        "command": f"python -m bench.soak {minutes:g}",
        "load_average": os.getloadavg(),
        "minutes": minutes,
        "settings": {"receivers": RECEIVERS, "max_waiting_studies": WAITING, "stages": "header"},
        "processes": processes,
    }
    console.print({key: report[key] for key in ("studies_taken", "turned_away", "studies_per_hour", "jobs")})
    (RESULTS / "soak.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES)
