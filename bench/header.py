"""Header de-identification, file to file in one process: this gateway against peers, gdcmanon, dcmodify and a copy.

    make bench NAME=header

The same files for all, in memory (/dev/shm): generated CT and MR objects of about 348 KB and 290 elements with
sequences and private blocks, and pydicom's own test files as a second, mixed set. Rounds are interleaved, figures are
medians, and a ratio is the median of the rounds' ratios: ratios and CPU a file hold between machines, files/s do not.
`gateway` has every option of `bench/midib.yaml` on, `gateway basic` the default policy's. In the first set every object
of a series has comments of its own with identity in them, which no scanner writes and which is hardest for a cleaner;
a further set of the same objects has one text for a series (`figures_one_text_a_series`). Takes two to eight minutes,
the first time some more for pip and apt.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.deid_peers import programs
from bench.deid_peers.environments import PEERS, Installed, installed
from bench.header_corpus import elements_each, write_large, write_mixed

ROUNDS = 4
FILES = {"fast": 240, "slow": 30}  # a slow tool gets fewer, so that a run is bounded
ROOT = Path(__file__).resolve().parents[1]
RESULT = Path(__file__).parent / "results" / "header.json"
MEMORY = Path("/dev/shm")
POLICIES = {"gateway": ROOT / "bench" / "midib.yaml", "gateway basic": ROOT / "policies" / "research-basic.yaml"}
TIMEOUT_S = 300


@dataclass
class Tool:
    """`measure(sources, target)` gives seconds, CPU seconds and how many files failed."""

    name: str
    measure: Callable[[Path, Path], tuple[float, float, int]]
    slow: bool = False
    in_place: bool = False
    files_per_s: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    failed: int = 0

    def once(self, sources: Path, target: Path) -> None:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        if self.in_place:
            shutil.copytree(sources, target, dirs_exist_ok=True)
        seconds, cpu, failed = self.measure(sources, target)
        count = sum(1 for _ in sources.iterdir())
        self.files_per_s.append(count / seconds)
        self.cpu_ms.append(1000 * cpu / count)
        self.failed = failed


def of_worker(figures: dict[str, object]) -> tuple[float, float, int]:
    return float(str(figures["seconds"])), float(str(figures["cpu_seconds"])), int(str(figures["failed"]))


def ours(policy: Path) -> Callable[[Path, Path], tuple[float, float, int]]:
    def measure(sources: Path, target: Path) -> tuple[float, float, int]:
        call = [sys.executable, "-m", "bench.deid_peers.ours", str(sources), str(target), str(policy)]
        done = subprocess.run(call, check=True, capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT_S)
        return of_worker(json.loads(done.stdout))

    return measure


def peer(one: Installed) -> Callable[[Path, Path], tuple[float, float, int]]:
    return lambda sources, target: of_worker(one.run(sources, target, timeout_s=TIMEOUT_S))


def program(
    call: Callable[[Path, Path], list[str]], *, mixed: bool = True
) -> Callable[[Path, Path], tuple[float, float, int]]:
    def measure(sources: Path, target: Path) -> tuple[float, float, int]:
        with tempfile.TemporaryDirectory(dir=target.parent) as nothing:
            (Path(nothing) / "in").mkdir()
            (Path(nothing) / "out").mkdir()
            start = programs.run_program(call(Path(nothing) / "in", Path(nothing) / "out"), any_end=True)
        seconds, cpu = programs.run_program(call(sources, target), any_end=mixed)
        left = sum(1 for _ in sources.iterdir()) - sum(1 for _ in target.iterdir())
        return max(seconds - start[0], 1e-6), max(cpu - start[1], 1e-6), left

    return measure


def function(clean: Callable[[Path, Path], object]) -> Callable[[Path, Path], tuple[float, float, int]]:
    return lambda sources, target: (*programs.in_process(clean, sources, target), 0)


def tools(root: Path, bar: Progress) -> tuple[list[Tool], dict[str, str]]:
    """What can run here, and why the rest cannot."""
    task = bar.add_task("peers by pip and apt", total=len(PEERS) + 2)
    found = [Tool(name, ours(policy)) for name, policy in POLICIES.items()]
    found.append(Tool("plain copy", function(shutil.copyfile)))
    found.append(Tool("pydicom read + write", function(programs.read_and_write)))
    absent = {}
    if programs.apt("libgdcm-tools", "gdcmanon"):
        found.append(Tool("gdcmanon", program(programs.gdcmanon(programs.certificate(root)))))
        found.append(Tool("gdcmanon --dumb", program(programs.gdcmanon(programs.dumb_arguments()))))
    else:
        absent["gdcmanon"] = "not installed, and apt-get cannot install libgdcm-tools here"
    bar.advance(task)
    if programs.apt("dcmtk", "dcmodify"):
        found.append(Tool("dcmodify", program(programs.dcmodify), in_place=True))
    else:
        absent["dcmodify"] = "not installed, and apt-get cannot install dcmtk here"
    bar.advance(task)
    ready, missing = installed(each=lambda _: bar.advance(task))
    return [*found, *(Tool(one.peer.name, peer(one), slow=True) for one in ready)], {**absent, **missing}


def ratios(some: list[Tool], name: str) -> dict[str, float]:
    """Ours over each other, round by round, median."""
    mine = next(tool for tool in some if tool.name == name)
    return {
        tool.name: round(statistics.median(a / b for a, b in zip(mine.files_per_s, tool.files_per_s, strict=True)), 3)
        for tool in some
        if tool.name not in POLICIES
    }


def cpu_ratios(some: list[Tool], name: str) -> dict[str, float]:
    """Their CPU time a file over ours, medians: what a busy machine changes least."""
    mine = next(statistics.median(tool.cpu_ms) for tool in some if tool.name == name)
    return {tool.name: round(statistics.median(tool.cpu_ms) / mine, 3) for tool in some if tool.name not in POLICIES}


def figures(some: list[Tool]) -> dict[str, dict[str, float]]:
    return {
        tool.name: {
            "files_per_s": round(statistics.median(tool.files_per_s), 1),
            "cpu_ms_per_file": round(statistics.median(tool.cpu_ms), 3),
            "not_cleaned": tool.failed,
        }
        for tool in some
    }


def measure(some: list[Tool], few: Path, many: Path, root: Path, bar: Progress, title: str) -> None:
    task = bar.add_task(title, total=ROUNDS * len(some))
    for _ in range(ROUNDS):
        for tool in some:
            tool.once(few if tool.slow else many, root / "out")
            bar.advance(task)


def shown(result: dict[str, dict[str, float]], ratio: dict[str, float], title: str) -> Table:
    table = Table(title=title)
    for column in ("tool", "files/s", "CPU ms a file", "not cleaned", "gateway is times as fast"):
        table.add_column(column, justify="left" if column == "tool" else "right")
    for name, row in result.items():
        faster = f"{ratio[name]:.2f}" if name in ratio else ""
        cells = (f"{row['files_per_s']:,.0f}", f"{row['cpu_ms_per_file']:.2f}", str(row["not_cleaned"] or ""))
        table.add_row(name, *cells, faster)
    return table


def main() -> None:
    console = Console(width=120)
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    memory = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="bench-header-", dir=memory) as folder,
        Progress(*columns, console=console) as bar,
    ):
        root = Path(folder)
        write_large(root / "many", FILES["fast"])
        write_large(root / "few", FILES["slow"])
        elements, size = elements_each(root / "few"), sum(p.stat().st_size for p in (root / "many").iterdir())
        some, absent = tools(root, bar)
        measure(some, root / "few", root / "many", root, bar, "CT and MR objects")
        result, ratio, basic = figures(some), ratios(some, "gateway"), ratios(some, "gateway basic")
        shutil.rmtree(root / "many")
        write_large(root / "alike", FILES["fast"], texts_differ=False)
        alike = [Tool(tool.name, tool.measure) for tool in some if not tool.slow and not tool.in_place]
        measure(alike, root / "alike", root / "alike", root, bar, "one text a series")
        shutil.rmtree(root / "alike")
        mixed_count = write_mixed(root / "mixed")
        mixed = [Tool(tool.name, tool.measure, in_place=tool.in_place) for tool in some]
        measure(mixed, root / "mixed", root / "mixed", root, bar, "pydicom's test files")
    console.print(
        shown(result, ratio, f"{FILES['fast']} CT and MR objects, {elements} elements each, medians of {ROUNDS}")
    )
    console.print(shown(figures(alike), ratios(alike, "gateway"), "the same with one text a series"))
    console.print(shown(figures(mixed), ratios(mixed, "gateway"), f"{mixed_count} of pydicom's test files"))
    peers = [one.name for one in PEERS if one.name in ratio]
    anonymisers = [name for name in ("gdcmanon", "gdcmanon --dumb") if name in ratio]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    report = {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "rounds": ROUNDS,
        "machine": {"cpus": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "load_average_at_end": os.getloadavg(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "commands": {"bench": "make bench NAME=header", **{one.name: one.how for one in PEERS}},
        "corpus": {
            "synthetic": True,
            "files": FILES,
            "mean_bytes": round(size / FILES["fast"]),
            "elements_each": elements,
            "pydicom_test_files": mixed_count,
        },
        "figures": result,
        "figures_one_text_a_series": figures(alike),
        "ratio_vs_each_one_text_a_series": ratios(alike, "gateway"),
        "figures_pydicom_test_files": figures(mixed),
        "ratio_vs_python_peers": {name: ratio[name] for name in peers},
        "ratio_vs_copy": ratio["plain copy"],
        "ratio_vs_gdcmanon": min((ratio[name] for name in anonymisers), default=None),
        "ratio_vs_each": ratio,
        "ratio_vs_each_basic_policy": basic,
        "cpu_ratio_vs_each": cpu_ratios(some, "gateway"),
        "cpu_ratio_vs_each_basic_policy": cpu_ratios(some, "gateway basic"),
        "peers_absent": absent,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
