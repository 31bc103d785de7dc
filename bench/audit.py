"""How sound and how fast the linkability audit is, and what attackers find on people whom none was trained on.

    make bench NAME=audit
    python -m bench.audit --repeats 200 --data ../shared/data

1. D_sys of two normal distributions against its integral, 200,000 scores each.
2. Coverage of the bounds by simulation (`bench.audit_coverage`).
3. Canberra scoring against scipy's cdist, same arrays, same run, medians; the nearest of a million references in
   blocks, with the memory that it took.
4. Every table of the report (`bench.audit_tables`): linkage and re-identification, sex, Canberra against cosine, across
   data sets, people capped at 2 to 5 scans ten times; by encoders without training and by ours.

Parts that are done are kept in results/audit.json and not done again unless --anew, or named with --only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.stats import norm

from bench.audit_coverage import coverage
from bench.audit_tables import sets, show, strongest, tables_of
from gateway.evidence import Nearest, d_sys, distances
from gateway.evidence.distances import BLOCK_ROWS

RESULT = Path(__file__).parent / "results" / "audit.json"
VECTORS = [(mu, omega) for mu in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0) for omega in (1.0, 0.1, 0.01)]
console = Console()


def vectors() -> dict[str, Any]:
    """Largest distance of the estimate from the integral."""
    generator, errors = np.random.default_rng(1), {}
    for mu, omega in VECTORS:

        def integrand(s: float, mu: float = mu, omega: float = omega) -> float:
            mated, other = omega * norm.pdf(s, mu), norm.pdf(s)
            return float(norm.pdf(s, mu) * max(0.0, (mated - other) / (mated + other)))

        truth = quad(integrand, -10, 15, limit=400)[0]
        estimate = d_sys(generator.normal(mu, 1, 200_000), generator.normal(0, 1, 200_000), omega=omega)
        errors[f"mu {mu}, omega {omega}"] = estimate - truth
    return {"dsys_max_abs_error_on_vectors": max(map(abs, errors.values())), "errors": errors}


def speed(rows: int = 2000, repeats: int = 3) -> dict[str, Any]:
    """Wall time of numba's kernel against scipy, interleaved."""
    generator = np.random.default_rng(2)
    a, b = (generator.normal(size=(rows, 512)).astype(np.float32) for _ in range(2))
    distances(a[:8], b[:8], "canberra")  # compiles
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(_seconds(lambda: distances(a, b, "canberra")))
        theirs.append(_seconds(lambda: cdist(a, b, "canberra")))
    worst = float(np.abs(distances(a[:200], b[:200], "canberra") / cdist(a[:200], b[:200], "canberra") - 1).max())
    return {
        "speed_ratio_vs_cdist": statistics.median(theirs) / statistics.median(ours),
        "relative_error": worst,
        "shape": [rows, rows, 512],
        "seconds": statistics.median(ours),
    }


def million(references: int = 1_000_000, queries: int = 64, dimensions: int = 512) -> dict[str, Any]:
    """The nearest of a million references by Canberra, in blocks that are drawn as they are taken."""
    asked = np.random.default_rng(3).normal(size=(queries, dimensions)).astype(np.float32)
    block = np.random.default_rng(4).normal(size=(BLOCK_ROWS, dimensions)).astype(np.float32)
    Nearest(asked, "canberra", 1).take(block[:8])  # compiles
    running, before = Nearest(asked, "canberra", 1), _peak_mb()
    began, cpu = time.perf_counter(), time.process_time()
    for start in track(range(0, references, BLOCK_ROWS), "a million references", console=console):
        running.take(np.roll(block, start // BLOCK_ROWS, axis=1)[: min(BLOCK_ROWS, references - start)])
    return {
        "references": running.size,
        "queries": queries,
        "dimensions": dimensions,
        "seconds": time.perf_counter() - began,
        "cpu_s": time.process_time() - cpu,
        "memory_mb": _peak_mb() - before,
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def tables(data: Path, found: dict[str, Any], done: Callable[[], None]) -> None:
    """Fills `found`, set by set; `done` is called after each."""
    for name, one in sets(data).items():
        if name in found and "absent" not in found[name]:
            continue
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(name)

            def tick(what: str, at: int, total: int, name: str = name, task: Any = task, bar: Any = bar) -> None:
                bar.update(task, description=f"{name}: {what}", completed=at, total=total)

            try:
                found[name] = tables_of(one, tick)
            except OSError:
                found[name] = {"absent": "not in the data folder"}
        done()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100, help="simulations of each coverage setting")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--anew", action="store_true", help="do every part again")
    parser.add_argument(
        "--only", nargs="*", default=[], help="do these again: vectors, coverage, speed, million, tables"
    )
    arguments = parser.parse_args()
    result = json.loads(RESULT.read_text()) if RESULT.is_file() and not arguments.anew else {}
    for name in arguments.only:
        result.pop(name, None)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "vectors": vectors,
        "speed": speed,
        "million": million,
    }
    for name, work in parts.items():
        if name not in result:
            result[name] = work()
            _write(result)
    coverage(arguments.repeats, result.setdefault("coverage", {}), lambda: _write(result), console)
    tables(arguments.data, result.setdefault("tables", {}), lambda: _write(result))
    rank1, sex, who = strongest(result["tables"])
    result |= {
        "dsys_max_abs_error_on_vectors": result["vectors"]["dsys_max_abs_error_on_vectors"],
        "coverage_min": result["coverage"]["coverage_min"],
        "coverage_p": result["coverage"]["coverage_p"],
        "speed_ratio_vs_cdist": result["speed"]["speed_ratio_vs_cdist"],
        "rank1": rank1,
        "sex_balanced_accuracy": sex,
        "strongest": who,
        "encoders": "raw similarity and HOG without training, and our cards; people whom our card was not trained on",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "command": f"python -m bench.audit --repeats {result['coverage']['settings'][0]['repeats']}",
    }
    _write(result)
    _show(result)


def _write(result: dict[str, Any]) -> None:
    RESULT.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")


def _show(result: dict[str, Any]) -> None:
    table = Table("what", "figure", title="Linkability audit")
    table.add_row("largest error of D_sys on the vectors", f"{result['dsys_max_abs_error_on_vectors']:.4f}")
    for row in result["coverage"]["settings"]:
        table.add_row(
            f"coverage (synthetic), {row['kind']}, {row['people']} people x {row['scans']}, D {row['truth']:.2f}",
            " ".join(f"{name} {row[name]['coverage']:.2f} (p {row[name]['p']:.2f})" for name in ("upper", "excess")),
        )
    table.add_row("Canberra, times scipy's speed", f"{result['speed_ratio_vs_cdist']:.1f}")
    many = result["million"]
    table.add_row(
        f"nearest of {many['references']:,} references, {many['queries']} queries",
        f"{many['seconds']:.0f} s ({many['cpu_s']:.0f} s CPU), {many['memory_mb']:.0f} MB",
    )
    for name, value in result["rank1"].items():
        who = result["strongest"][name]["rank1"]
        table.add_row(
            f"rank-1, leave one out, {name}", f"{value:.3f} by {who['encoder']} (people ≤ {who['upper']:.3f})"
        )
    for name, value in result["sex_balanced_accuracy"].items():
        who = result["strongest"][name]["sex"]
        table.add_row(
            f"recorded sex, balanced accuracy, {name}",
            f"{value:.3f} by {who['encoder']} ({who['lower']:.3f} to {who['upper']:.3f})",
        )
    show(result["tables"], console)
    console.print(table)


if __name__ == "__main__":
    main()
