"""What `bench.pipeline` measured, as medians, ratios and a table."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.serving.studies import FILM_PIXELS, INSTANCES

Rounds = Mapping[str, Sequence[Mapping[str, Any]]]


def report(rounds: Rounds, number: int, commands: Mapping[str, str]) -> dict[str, Any]:
    """The result file. `rounds`: for each set and each peer its figures, one for each round."""
    ours = {name: runs for name, runs in rounds.items() if runs[0]["who"] == "gateway"}
    theirs = {name: runs for name, runs in rounds.items() if runs[0]["who"] == "peer"}
    rates = {name: _rate(runs) for name, runs in rounds.items()}
    cpu = {name: _of_each(runs, "cpu_s") for name, runs in ours.items()}
    cores = os.cpu_count() or 1
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    changed = subprocess.run(["git", "status", "--porcelain", "gateway"], check=False, capture_output=True, text=True)
    return {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cpus": cores, "processor": platform.processor() or platform.machine()},
        "commit": commit.stdout.strip() + ("+" if changed.stdout.strip() else ""),
        "command": f"python -m bench.pipeline {number}",
        "commands": dict(commands),
        "rounds": number,
        "corpus": f"synthetic: heads of {INSTANCES['heads']} slices, chest films of {FILM_PIXELS} x {FILM_PIXELS}",
        "load_average_median": _median(run["load"] for runs in rounds.values() for run in runs),
        "others_cores": {name: _median(run["others_cores"] for run in runs) for name, runs in rounds.items()},
        "studies": {name: runs[0]["studies"] for name, runs in rounds.items()},
        "studies_per_hour": {name: rates[name] for name in ours},
        "peers_studies_per_hour": {name: rates[name] for name in theirs},
        "studies_per_hour_range": {name: _range(map(_rate_of, runs)) for name, runs in rounds.items()},
        "ratio_vs": {
            name: {peer: round(rates[name] / rates[full], 4) for peer, full in _beside(name, rounds)} for name in ours
        },
        "ratio_vs_range": {
            name: {
                peer: _range(_rate_of(run) / _rate_of(other) for run, other in zip(runs, rounds[full], strict=True))
                for peer, full in _beside(name, rounds)
            }
            for name, runs in ours.items()
        },
        "cpu_s_per_study": cpu,
        # Calculated, not measured: all cores busy with this, and `serve` on one of them (it is one Python process).
        "calculated_studies_per_hour_at_most": {
            name: round(3600 / max(sum(of.values()) / cores, of["serve"]), 1) for name, of in cpu.items()
        },
        "cores_used": {
            name: _median(sum(run["cpu_s"].values()) / run["seconds"] for run in runs) for name, runs in ours.items()
        },
        "leg_s_per_study": {name: _of_each(runs, "leg_s") for name, runs in ours.items()},
        "all_rounds": rounds,
    }


def show(made: Mapping[str, Any], console: Console) -> None:
    """Ours, with what a study costs and where its time goes; then the others."""
    known = {peer for ratios in made["ratio_vs"].values() for peer in ratios}
    beside = [peer for peer in ("storescu", "orthanc", "orthanc anonymise") if peer in known]
    title = f"studies an hour, medians of {made['rounds']}"
    table = _table(title, "stages", "studies/h", "others' cores", "CPU s", "in workers", "longest leg, s", *beside)
    for name, rate in made["studies_per_hour"].items():
        cpu, legs, ratio = (made[what][name] for what in ("cpu_s_per_study", "leg_s_per_study", "ratio_vs"))
        leg, total = max(legs, key=lambda one: legs[one]), sum(cpu.values())
        cost = (f"{total:.2f}", f"{cpu['workers'] / total:.0%}", f"{leg} {legs[leg]:.2f}")
        ratios = (f"x {ratio[peer]:.3f}" if peer in ratio else "" for peer in beside)
        table.add_row(name, f"{rate:,.0f}", f"{made['others_cores'][name]:.1f}", *cost, *ratios)
    console.print(table)
    table = _table("the same studies without this gateway", "who, what", "studies/h", "others' cores")
    for name, rate in made["peers_studies_per_hour"].items():
        table.add_row(name, f"{rate:,.0f}", f"{made['others_cores'][name]:.1f}")
    console.print(table)


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title)
    table.add_column(first, no_wrap=True)
    for column in others:
        table.add_column(column, justify="right")
    return table


def _beside(name: str, rounds: Rounds) -> list[tuple[str, str]]:
    """The peers that had the same kind of studies: their names, and those of their rounds."""
    kind = rounds[name][0]["kind"]
    peers = {full: runs[0] for full, runs in rounds.items() if runs[0]["who"] == "peer"}
    return [(full.rpartition(", ")[0], full) for full, run in peers.items() if run["kind"] == kind]


def _rate_of(run: Mapping[str, Any]) -> float:
    return float(3600 * run["studies"] / run["seconds"])


def _rate(runs: Sequence[Mapping[str, Any]]) -> float:
    return _median(map(_rate_of, runs), digits=1)


def _range(values: Iterable[float]) -> list[float]:
    """Least and greatest of the rounds: what the median hides."""
    found = sorted(values)
    return [round(found[0], 4), round(found[-1], 4)]


def _of_each(runs: Sequence[Mapping[str, Any]], what: str) -> dict[str, float]:
    """Medians a study."""
    return {key: _median((run[what].get(key, 0.0) / run["studies"] for run in runs), 4) for key in runs[-1][what]}


def _median(values: Iterable[float], digits: int = 2) -> float:
    return round(statistics.median(values), digits)
