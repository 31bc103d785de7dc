"""From a PACS to the archive, whole: studies an hour by set of stages, and Orthanc on the same studies.

    make bench NAME=pipeline                       # .venv/bin/python -m bench.pipeline [ROUNDS]

Ours is a real `serve` with its embedded database: storescu sends, the archive is DCMTK's storescp, and the clock runs
from the first association to the last object in the archive, after one study has gone through that does not count.
Orthanc gets the same by its own means: storescu sends, its REST API anonymises each study and stores the result in the
same archive. It changes headers only and judges nothing, so its figure is the peer of `header`; beside the other sets
it says what they cost.

The heads are synthetic and small (28 slices of 64 thousand pixels at most): what a study costs, not a byte of it.
Rounds are interleaved, figures are medians. What was measured is kept; an interrupted run goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from rich.console import Console
from rich.table import Table

from bench.serving.gateway import STAGES, serving, write_policies
from bench.serving.studies import INSTANCES, store, study_uid, write_studies
from tests import peers

ROUNDS = 3
STUDIES = {"header": 40, "header+text": 12, "header+text+deface": 6, "header+text+deface+gate": 6, "orthanc": 40}
SENDERS = 2
LIMIT_S = 600.0
RESULT = Path(__file__).parent / "results" / "pipeline.json"
UNFINISHED = Path(tempfile.gettempdir()) / "bench-pipeline-unfinished.json"


def wait_for(archive: Path, count: int) -> None:
    """Until so many objects are in the archive. AssertionError after LIMIT_S."""
    give_up = time.monotonic() + LIMIT_S
    while sum(1 for _ in archive.iterdir()) < count:
        assert time.monotonic() < give_up, f"{sum(1 for _ in archive.iterdir())} of {count} objects arrived"
        time.sleep(0.02)


def ours(stages: str, studies: list[Path], warm: Path, root: Path) -> float:
    """Seconds for all of them; `warm` goes first, and does not count: processes start once a day, not with each."""
    with peers.storescp(root / "archive", "--fork", "+B", ae_title="ARCHIVE") as archive:
        policies = write_policies(root / "policies", stages, archive.url)
        with serving(root, policies, quiet_s=5.0) as gateway, ThreadPoolExecutor(SENDERS) as senders:
            store(warm, gateway.dicom_port, "DEID")
            wait_for(root / "archive", INSTANCES)
            began = time.perf_counter()
            sent = [senders.submit(store, study, gateway.dicom_port, "DEID") for study in studies]
            for one in sent:
                one.result()
            wait_for(root / "archive", INSTANCES * (1 + len(studies)))
            seconds = time.perf_counter() - began
            give_up = time.monotonic() + 10
            while gateway.states() != {("sent", ""): 1 + len(studies)}:
                assert time.monotonic() < give_up, gateway.states()
                time.sleep(0.1)
    return seconds


def ask(server: peers.OrthancServer, path: str, body: str) -> Any:
    """Orthanc's answer to a POST."""
    url = f"http://127.0.0.1:{server.http_port}{path}"
    with urlopen(Request(url, data=body.encode(), method="POST"), timeout=LIMIT_S) as answer:
        return json.loads(answer.read())


def orthanc(studies: list[Path], warm: Path, root: Path) -> float:
    """The same by Orthanc: C-STORE in, anonymise, C-STORE out."""
    with peers.storescp(root / "archive", "--fork", "+B", ae_title="ARCHIVE") as archive:
        modalities = {"archive": {"AET": archive.ae_title, "Host": archive.host, "Port": archive.port}}
        with peers.Orthanc(root, DicomModalities=modalities) as server, ThreadPoolExecutor(SENDERS) as senders:

            def through(study: Path) -> None:
                store(study, server.dicom.port, server.dicom.ae_title)
                (found,) = ask(server, "/tools/lookup", study_uid(int(study.name)))
                made = ask(server, f"/studies/{found['ID']}/anonymize", "{}")
                ask(server, "/modalities/archive/store", made["ID"])

            through(warm)
            wait_for(root / "archive", INSTANCES)
            began = time.perf_counter()
            for one in [senders.submit(through, study) for study in studies]:
                one.result()
            wait_for(root / "archive", INSTANCES * (1 + len(studies)))
            return time.perf_counter() - began


def measure(rounds: int, state: dict[str, Any]) -> None:
    """Rounds of all sets by turns; `state["studies_per_hour"]` has a list for each, and is kept after every figure."""
    with tempfile.TemporaryDirectory(prefix="bench-pipeline-") as folder:
        root = Path(folder)
        warm, *studies = write_studies(root / "studies", 1 + max(STUDIES.values()))
        for number in range(rounds):
            for name, count in STUDIES.items():
                figures = state["studies_per_hour"].setdefault(name, [])
                if len(figures) > number or (name == "orthanc" and not peers.available("orthanc")):
                    continue
                place = root / f"{number}-{name}"
                place.mkdir()
                seconds = (
                    orthanc(studies[:count], warm, place)
                    if name == "orthanc"
                    else ours(name, studies[:count], warm, place)
                )
                figures.append(3600 * count / seconds)
                shutil.rmtree(place)
                UNFINISHED.write_text(json.dumps(state))


def begun() -> dict[str, Any]:
    """An interrupted run of this very code, or a new one."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted([*root.glob("gateway/**/*.py"), *root.glob("bench/serving/*.py"), Path(__file__)]):
        digest.update(path.read_bytes())
    if UNFINISHED.exists():
        state: dict[str, Any] = json.loads(UNFINISHED.read_text())
        if state["code"] == digest.hexdigest():
            return state
    return {"code": digest.hexdigest(), "studies_per_hour": {}}


def main(rounds: int) -> None:
    console = Console(width=120)
    state = begun()
    measure(rounds, state)
    rates = {name: statistics.median(figures) for name, figures in state["studies_per_hour"].items() if figures}
    peer = rates.pop("orthanc", None)
    table = Table(title=f"studies an hour, {INSTANCES} slices each, synthetic; medians of {rounds}")
    for column in ("stages", "studies/h", "x Orthanc (headers only)"):
        table.add_column(column, justify="left" if column == "stages" else "right")
    for name, rate in rates.items():
        table.add_row(name, f"{rate:,.0f}", f"{rate / peer:.2f}" if peer else "")
    if peer:
        table.add_row("Orthanc: receive, anonymise, store", f"{peer:,.0f}", "1.00")
    console.print(table)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    report = {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cpus": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "commit": commit.stdout.strip(),
        "command": f"python -m bench.pipeline {rounds}",
        "load_average": os.getloadavg(),
        "corpus": f"synthetic heads, {INSTANCES} instances a study",
        "studies": {name: count for name, count in STUDIES.items() if name in STAGES or peer},
        "rounds": rounds,
        "studies_per_hour": {name: round(rate, 1) for name, rate in rates.items()},
        "orthanc_studies_per_hour": round(peer, 1) if peer else None,
        "ratio_vs_orthanc": {name: round(rate / peer, 3) for name, rate in rates.items()} if peer else {},
        "all_rounds": state["studies_per_hour"],
    }
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    UNFINISHED.unlink(missing_ok=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
