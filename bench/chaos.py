"""Chaos: kills and faults from seeds on a running gateway, and what must hold after each run.

    make chaos                        (python -m bench.chaos --kills 200)
    python -m bench.chaos --store postgresql --kills 40 --first-seed 100 --before HEAD~20

Each run (tests/faults/chaos_run.py) has a home, an archive and a database of its own, sends synthetic studies with a
planted identity, kills 20 times and then judges. Runs with an odd seed begin with the version of `--before` and go on
with this one; those with an even seed receive in two processes. Runs of this commit that the result file holds already
are not run again: a bench that was stopped goes on. Those of another commit say nothing of this one and are forgotten.
Results go to bench/results/chaos.json, by store; the exit code is 1 when anything did not hold.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "bench" / "results" / "chaos.json"
STORES = ("sqlite", "postgresql")
KILLS_A_RUN = 20
STUDIES_A_RUN = 40
RUN_S = 3600  # a run that takes longer hangs, which is a finding
SUMS = ("acknowledged", "refused", "arrivals", "restarts", "duration_s")
COUNTS = ("kills", "faults", "ends")


def one_run(store: str, seed: int, members: int, receivers: int, before: str, folder: Path) -> dict[str, Any]:
    """In a process of its own. A run that ends without a judgement is a finding as well."""
    out = folder / f"{store}-{seed}.json"
    paths = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "faults")]
    command = [sys.executable, "-m", "chaos_run", "--store", store, "--seed", str(seed), "--out", str(out)]
    command += ["--kills", str(KILLS_A_RUN), "--studies", str(STUDIES_A_RUN), "--members", str(members)]
    command += ["--receivers", str(receivers)]
    command += ["--before", before] if before else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    said = {"seed": seed, "revision": revision(), "members": members, "receivers": receivers, "upgraded": bool(before)}
    try:
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=RUN_S)
    except subprocess.CalledProcessError as error:
        return {**said, "findings": {"broken": [error.stderr[-3000:]]}}
    except subprocess.TimeoutExpired:
        return {**said, "findings": {"broken": [f"not through within {RUN_S} s"]}}
    ran = json.loads(out.read_text())
    return {**said, **{name: what for name, what in ran.items() if name != "plan"}}


def revision() -> str:
    """What is run: the commit, and whether the files differ from it."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(asked, capture_output=True, check=False, text=True).stdout.strip()


def of_commit(runs: list[dict[str, Any]], now: str) -> list[dict[str, Any]]:
    """Those that ran this commit, as `revision` names it; files that differ from it are not told apart."""
    return [run for run in runs if run.get("revision", "").removesuffix("-dirty") == now.removesuffix("-dirty")]


def summed(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What the result file says of a store."""
    whole = [run for run in runs if "kills" in run]
    counts = {name: Counter[str]() for name in COUNTS}
    for run in whole:
        for name, counter in counts.items():
            counter.update(run[name])
    found = Counter(dict.fromkeys(("lost", "sent_twice_different", "identifiers_outside"), 0))
    for run in runs:
        found.update({name: len(what) for name, what in run["findings"].items()})
    return {
        "kills": sum(counts["kills"].values()),
        **found,
        "studies": STUDIES_A_RUN * len(whole),
        **{name: round(sum(run[name] for run in whole), 1) for name in SUMS},
        "seeds": sorted(run["seed"] for run in runs),
        "upgraded_runs": sum(run["upgraded"] for run in whole),
        "killed": dict(counts["kills"]),
        "faults": dict(sorted(counts["faults"].items())),
        "ends": dict(counts["ends"].most_common()),
        "runs": sorted(runs, key=lambda run: int(run["seed"])),
    }


def version_of(revision: str, folder: Path) -> str:
    """The gateway of a revision, laid out in `folder`; "" where there is no such thing."""
    archive = ["git", "-C", str(ROOT), "archive", "--format=tar", revision, "gateway", "models", "policies"]
    made = subprocess.run(archive, capture_output=True, check=False)
    if made.returncode != 0:
        return ""
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return str(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--store", choices=STORES, action="append", help="default: each")
    parser.add_argument("--kills", type=int, default=200, help="for each store")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--members", type=int, default=1, help="gateway processes on PostgreSQL")
    parser.add_argument("--before", default="HEAD~1", help="revision to upgrade from in every second run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--fresh", action="store_true", help="forget what the result file holds")
    asked = parser.parse_args()
    stores = asked.store or list(STORES)
    results: dict[str, Any] = {} if asked.fresh or not RESULT.exists() else json.loads(RESULT.read_text())
    runs = {store: of_commit(results.get(store, {}).get("runs", []), revision()) for store in stores}
    seeds = range(asked.first_seed, asked.first_seed + -(-asked.kills // KILLS_A_RUN))
    wanted = [(s, seed) for seed in seeds for s in stores if seed not in {run["seed"] for run in runs[s]}]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-bench-")))
        older = version_of(asked.before, folder / "older") if asked.before else ""
        progress = stack.enter_context(Progress(*columns, console=Console()))
        bars = {s: progress.add_task(f"{s}: kills", total=len(seeds) * KILLS_A_RUN) for s in stores}
        for store in stores:
            progress.advance(bars[store], KILLS_A_RUN * sum(run["seed"] in seeds for run in runs[store]))
        pool = stack.enter_context(ThreadPoolExecutor(asked.jobs))
        going = {}
        for store, seed in wanted:
            members = asked.members if store == "postgresql" else 1
            # Older versions had one process: several begin with this one.
            before = older if seed % 2 and members == 1 else ""
            receivers = 1 if seed % 2 else 2
            going[pool.submit(one_run, store, seed, members, receivers, before, folder)] = store
        for done in as_completed(going):
            store = going[done]
            runs[store].append(done.result())
            progress.advance(bars[store], KILLS_A_RUN)
            results |= {"data": "synthetic studies", store: summed(runs[store])}
            RESULT.write_text(json.dumps(results, indent=1) + "\n")
    table = Table("store", "kills", "studies", "lost", "sent twice, different", "identifiers outside", "anything else")
    failed = False
    for store in stores:
        one = summed(runs[store])
        found = {name: one[name] for run in runs[store] for name in run["findings"] if one[name]}
        failed = failed or bool(found)
        first = [one[name] for name in ("kills", "studies", "lost", "sent_twice_different", "identifiers_outside")]
        table.add_row(store, *map(str, first), ", ".join(f"{n} {what}" for what, n in found.items()) or "nothing")
    Console().print(table)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
