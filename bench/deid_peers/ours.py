"""This gateway's header stage in the same terms as a peer: a folder in, a folder out, figures back."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from gateway.app.policy.registry import REGISTRY
from gateway.app.workers import settle
from gateway.errors import StudyError
from gateway.header import scrub_file
from gateway.policy import HeaderPolicy, load_policy
from gateway.policy.model import CARRIED_OUT
from gateway.pseudonyms import Pseudonyms

KEY = bytes(range(7, 39))  # the benchmark's own, so that a run can be repeated


def as_far_as_possible(path: Path) -> tuple[str, list[str]]:
    """A policy file's text without the options that this version cannot carry out, and their names."""
    text = path.read_text("utf-8")
    document = yaml.safe_load(text)
    header = document["header"]
    missing = [name for name in header["options"] if name not in CARRIED_OUT]
    if not missing:
        return text, []
    header["options"] = [name for name in header["options"] if name not in missing]
    if "retain-safe-private" in missing:
        header.pop("private", None)
    return yaml.safe_dump(document), missing


def header_policy(path: Path) -> tuple[HeaderPolicy, list[str]]:
    """The header part of a policy file, and the options it asks for that were left off."""
    text, missing = as_far_as_possible(path)
    with TemporaryDirectory() as folder:
        (Path(folder) / path.name).write_text(text)
        return load_policy(Path(folder) / path.name, REGISTRY).header, missing


def clean_folder(
    sources: Path, target: Path, policy: HeaderPolicy, *, each: Callable[[], None] = lambda: None
) -> dict[str, object]:
    """Scrub every file of a folder under the same name. Figures as `worker.py` gives them."""
    target.mkdir(parents=True, exist_ok=True)
    pseudonyms = Pseudonyms.of_project(KEY, "bench")
    files = sorted(sources.iterdir())
    errors: Counter[str] = Counter()
    with suppress(StudyError):  # tables are loaded when they are first needed, which is not what is measured
        scrub_file(files[0], target / files[0].name, policy=policy, pseudonyms=pseudonyms)
    settle()  # as a worker does
    began, cpu = time.perf_counter(), time.process_time()
    for source in files:
        try:
            scrub_file(source, target / source.name, policy=policy, pseudonyms=pseudonyms)
        except StudyError as error:
            errors[f"{error.reason} {error.at}".strip()] += 1
        each()
    return {
        "files": len(files),
        "failed": errors.total(),
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "errors": dict(errors),
    }


def whole_gateway(sources: Path, root: Path, policy: Path) -> dict[str, object]:
    """The same files through the real command: intake, header, gate, folder. How many studies, what was held why."""
    home, reduced = root / "home", root / policy.name
    reduced.write_text(as_far_as_possible(policy)[0])
    command = [sys.executable, "-m", "gateway"]
    subprocess.run([*command, "init", str(home)], check=True, capture_output=True)
    call = [
        *command,
        "scrub",
        str(sources),
        str(root / "sent"),
        "--policy",
        str(reduced),
        "--home",
        str(home),
        "--json",
    ]
    began = time.perf_counter()
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"scrub ended with {done.returncode}")
    studies = json.loads(done.stdout)["studies"]
    return {
        "command": "deid-gateway scrub DIRTY SENT --policy bench/midib.yaml",
        "studies": len(studies),
        "states": dict(Counter(study["state"] for study in studies)),
        "reasons": dict(Counter(f"{study['reason']} {study['at']}".strip() for study in studies if study["reason"])),
        "files_sent": sum(study["sent"] for study in studies),
        "seconds": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    """`python -m bench.deid_peers.ours SOURCES TARGET POLICY`: like a peer's worker, in a process of its own."""
    policy, _ = header_policy(Path(sys.argv[3]))
    print(json.dumps(clean_folder(Path(sys.argv[1]), Path(sys.argv[2]), policy)))


if __name__ == "__main__":
    main()
