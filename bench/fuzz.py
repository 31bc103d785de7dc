"""Coverage-guided fuzzing of every reader of foreign bytes: no crash, no hang, no exception that nobody foresaw.

    make fuzz                                (python -m bench.fuzz --minutes 10)
    python -m bench.fuzz --target stow --minutes 2 --seed 7

Targets are in bench/fuzz_targets.py, each runs in a process of its own under atheris (`pip install
'deid-gateway[fuzz]'`). A case that takes more than 20 s or 3 GB ends the search and is a finding. Seeds are pydicom's
test files, made conversations and the shipped policies (synthetic). Results go to bench/results/fuzz.json, by target;
the exit code is 1 when there were findings.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.fuzz_targets import TARGETS

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "bench" / "results" / "fuzz.json"
CASE_S, CASE_MB = 20, 3072
KEPT_BYTES = 4096


def search(name: str, minutes: float, seed: int, folder: Path) -> dict[str, Any]:
    """One target for so long; what it found."""
    corpus, report, log = folder / "corpus", folder / "report.json", folder / "log"
    corpus.mkdir()
    for number, data in enumerate(TARGETS[name].seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
    options = [f"-max_total_time={int(minutes * 60)}", f"-timeout={CASE_S}", f"-rss_limit_mb={CASE_MB}"]
    options += [f"-seed={seed}", f"-max_len={TARGETS[name].most_bytes}", f"-artifact_prefix={folder}/", "-verbosity=0"]
    command = [sys.executable, "-m", "bench.fuzz_loop", name, str(report), str(corpus), *options]
    began = time.monotonic()
    with open(log, "wb") as output:
        ended = subprocess.run(
            command, cwd=ROOT, stdout=output, stderr=output, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
        )
    result: dict[str, Any] = {"cases": 0, "findings": {}}
    if report.exists():
        result = json.loads(report.read_text())
    result["minutes"] = round((time.monotonic() - began) / 60, 2)
    if ended.returncode != 0:
        result["findings"]["the process ended"] = {"count": 1, "log": log.read_text(errors="replace")[-1500:]}
        for artifact in sorted(folder.glob("*-*")):
            data = artifact.read_bytes()
            kind = artifact.name.partition("-")[0]
            kept = base64.b64encode(data[:KEPT_BYTES]).decode()
            result["findings"][f"the process ended: {kind}"] = {"count": 1, "bytes": len(data), "input": kept}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="default: each")
    parser.add_argument("--minutes", type=float, default=10, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    names = asked.target or list(TARGETS)
    results: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    table = Table("target", "cases", "minutes", "findings")
    failed = False
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console()) as progress:
        bar = progress.add_task("fuzzing", total=len(names))
        for name in names:
            progress.update(bar, description=f"fuzzing {name}")
            with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
                found = search(name, asked.minutes, asked.seed, Path(folder))
            command = f"python -m bench.fuzz --target {name} --minutes {asked.minutes:g} --seed {asked.seed}"
            results[name] = {"command": command, **found}
            RESULT.write_text(json.dumps(results, indent=1) + "\n")
            kinds = ", ".join(found["findings"]) or "none"
            table.add_row(name, str(found["cases"]), f"{found['minutes']:g}", kinds)
            failed = failed or bool(found["findings"])
            progress.advance(bar)
    Console().print(table)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
