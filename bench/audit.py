"""How sound and how fast the linkability audit is, and what baseline attackers find on real people.

    make bench NAME=audit
    python -m bench.audit --repeats 200 --data ../shared/data

1. D_sys of two normal distributions against its integral, 200,000 scores each.
2. Coverage of the 99th-percentile bound by simulation: synthetic embeddings, truth from half a million pairs; the exact
   binomial p of seeing so few covered if the bound held in 95 %.
3. Canberra scoring against scipy's cdist, same arrays, same run, medians; memory is that of the result.
4. Real data sets where they are: leave-one-out rank-1, D_sys and recorded sex by encoders without training.

Parts that are done are kept in results/audit.json and not done again unless --anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.stats import binom, norm

from gateway.audit.inputs import AuditInput
from gateway.audit.measures import measure
from gateway.audit.options import Options
from gateway.audit.options import Table as Rows
from gateway.evidence import People, d_sys, distances, linkability, score_pairs
from models.audit_encoders import BASELINES, embed
from models.cohorts import Cohort, read_manifest

RESULT = Path(__file__).parent / "results" / "audit.json"
VECTORS = [(mu, omega) for mu in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0) for omega in (1.0, 0.1, 0.01)]
# People, scans of each, strength of identity.
SETTINGS = [(30, 2, 0.5), (30, 5, 0.35), (60, 3, 0.5), (69, 10, 0.35), (150, 2, 0.7), (150, 4, 0.35)]
NOMINAL = 0.95
REAL = {"nih64": ("cxr", "nih-chestxray14"), "hannover": ("cxr", "hannover-covid19"), "ridb": ("fundus", "RIDB")}
DIMENSIONS = 24
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


def _cohort(people: int, scans: int, signal: float, generator: np.random.Generator) -> tuple[Any, People]:
    subject = np.repeat(np.arange(people), scans)
    identity = generator.normal(size=(people, DIMENSIONS))[subject]
    return signal * identity + generator.normal(size=(len(subject), DIMENSIONS)), People.of(subject.tolist())


def _truth(signal: float) -> float:
    """D_sys of endless people: independent pairs, one a person."""
    x, people = _cohort(1000, 2, signal, np.random.default_rng(99))
    mated = np.concatenate([-_between(*_cohort(1000, 2, signal, np.random.default_rng(s))) for s in range(100, 350)])
    pairs = score_pairs(x, people, "cosine")
    return d_sys(mated, pairs.non_mated[:: max(1, len(pairs.non_mated) // 500_000)])


def _between(x: Any, _people: People) -> Any:
    a, b = x[0::2], x[1::2]
    return 1 - (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def coverage(repeats: int) -> dict[str, Any]:
    rows = []
    for people, scans, signal in SETTINGS:
        truth, covered, above = _truth(signal), 0, []
        for k in track(range(repeats), f"{people} people, {scans} scans, D {truth:.2f}", console=console):
            x, who = _cohort(people, scans, signal, np.random.default_rng([people, scans, k]))
            found = linkability(score_pairs(x, who, "cosine"), np.random.default_rng(k), replicates=400, permutations=1)
            covered += found.upper >= truth
            above.append(found.upper - found.value)
        rows.append(
            {
                "people": people,
                "scans": scans,
                "truth": truth,
                "coverage": covered / repeats,
                "p": float(binom.cdf(covered, repeats, NOMINAL)),
                "bound_above_estimate": statistics.median(above),
                "repeats": repeats,
            }
        )
    return {
        "synthetic": True,
        "nominal": NOMINAL,
        "coverage_min": min(row["coverage"] for row in rows),
        "coverage_p": min(row["p"] for row in rows),
        "settings": rows,
    }


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


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def real(data: Path) -> dict[str, Any]:
    """Baselines on the real sets that are here."""
    options = Options(replicates=400, permutations=199)
    out: dict[str, Any] = {}
    for name, (folder, dataset) in REAL.items():
        if not (data / folder / "manifest.csv").is_file():
            out[name] = {"absent": f"{folder} is not in the data folder"}
            continue
        with console.status(f"{name}: embedding"):
            found = _input(read_manifest(data / folder, dataset))
        with console.status(f"{name}: measuring") as status:

            def tick(what: str, done: int, total: int, status: Any = status, name: str = name) -> None:
                status.update(f"{name}: {what} {done}/{total}")

            report = measure(found, options, tick)
        out[name] = {"people": report["people"], "scans": report["scans"], "tables": _slim(report["tables"])}
    return out


def _input(cohort: Cohort) -> AuditInput:
    embeddings = {name: embed((scan.load() for scan in cohort), encoder) for name, encoder in BASELINES.items()}
    columns = {
        "scan": tuple(scan.name for scan in cohort),
        "subject": tuple(scan.subject for scan in cohort),
        "session": tuple(scan.session for scan in cohort),
    }
    if all(scan.attributes.get("sex") for scan in cohort):
        columns["sex"] = tuple(scan.attributes["sex"] for scan in cohort)
    return AuditInput(embeddings, columns)


def _slim(tables: dict[str, Rows]) -> dict[str, Rows]:
    return {name: [{k: v for k, v in row.items() if k != "densities"} for row in rows] for name, rows in tables.items()}


def _strongest(found: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    rank1, sex = {}, {}
    for name, entry in found.items():
        if "tables" not in entry:
            continue
        rank1[name] = max(row["rank1"]["rank1"] for row in entry["tables"]["linkage"] if "rank1" in row)
        rows = entry["tables"].get("attributes", [])
        inferred = [row["balanced_accuracy"] for row in rows if "balanced_accuracy" in row]
        if inferred:
            sex[name] = max(inferred)
    return rank1, sex


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100, help="simulations of each coverage setting")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--anew", action="store_true", help="do every part again")
    arguments = parser.parse_args()
    result = json.loads(RESULT.read_text()) if RESULT.is_file() and not arguments.anew else {}
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "vectors": vectors,
        "coverage": lambda: coverage(arguments.repeats),
        "speed": speed,
        "real": lambda: real(arguments.data),
    }
    for name, work in parts.items():
        if name not in result:
            result[name] = work()
            _write(result)
    rank1, sex = _strongest(result["real"])
    result |= {
        "dsys_max_abs_error_on_vectors": result["vectors"]["dsys_max_abs_error_on_vectors"],
        "coverage_min": result["coverage"]["coverage_min"],
        "coverage_p": result["coverage"]["coverage_p"],
        "speed_ratio_vs_cdist": result["speed"]["speed_ratio_vs_cdist"],
        "rank1": rank1,
        "sex_balanced_accuracy": sex,
        "encoders": "baselines without training (raw similarity, HOG)",
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
            f"coverage (synthetic), {row['people']} people x {row['scans']}, D {row['truth']:.2f}",
            f"{row['coverage']:.3f}  p {row['p']:.3f}",
        )
    table.add_row("Canberra, times scipy's speed", f"{result['speed_ratio_vs_cdist']:.1f}")
    for name, value in result["rank1"].items():
        table.add_row(f"rank-1, leave one out, {name}", f"{value:.3f}")
    for name, value in result["sex_balanced_accuracy"].items():
        table.add_row(f"recorded sex, balanced accuracy, {name}", f"{value:.3f}")
    console.print(table)


if __name__ == "__main__":
    main()
