"""Makes and finds the peers' environments. They live in the user's cache, never in the repository.

`DEID_BENCH_CACHE` names another place. What pip cannot install here is left out of the tables, with its name and the
reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("DEID_BENCH_CACHE") or Path.home() / ".cache" / "deid-gateway-bench")
WORKER = Path(__file__).with_name("worker.py")
INSTALL_TIMEOUT_S = 600


@dataclass(frozen=True)
class Peer:
    """One package of PyPI. `python` is the only minor version it installs on, "" for any."""

    name: str
    how: str
    python: str = ""


PEERS = (
    Peer("dicognito", "Anonymizer(seed).anonymize(dataset)"),
    Peer("deid", "replace_identifiers(files, deid='dicom'), its default recipe"),
    Peer("dicom-anonymizer", "anonymize_dicom_file(source, target)"),
    Peer("idiscore", "create_default_core().deidentify(dataset)", "3.12"),
    Peer("dicom-dre", "deidentify_paths(profile 'default')", "3.12"),
)


@dataclass(frozen=True)
class Installed:
    peer: Peer
    python: Path
    version: str

    def run(self, sources: Path, target: Path, *, timeout_s: float) -> dict[str, object]:
        """Clean every file of a folder into another one, under the same names, in one process.

        Returns the worker's figures: files, failed, seconds, cpu_seconds, peak_rss_mb, errors by type.
        """
        call = [str(self.python), str(WORKER), self.peer.name, str(sources), str(target)]
        quiet = {"PYTHONWARNINGS": "ignore", "MPLCONFIGDIR": str(CACHE / "matplotlib"), "PATH": os.environ["PATH"]}
        done = subprocess.run(
            call, check=False, capture_output=True, text=True, timeout=timeout_s, env=quiet | {"HOME": str(CACHE)}
        )
        if done.returncode:
            raise RuntimeError(f"{self.peer.name} failed: {done.stderr.strip().splitlines()[-1:]}")
        figures: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
        return figures


def _interpreter(version: str) -> str | None:
    if not version:
        return sys.executable
    managed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"), reverse=True)
    candidates = [str(path) for path in managed] + [shutil.which(f"python{version}") or ""]
    for candidate in filter(None, candidates):  # a version manager's stand-in may be there without its version
        if subprocess.run([candidate, "-c", ""], check=False, capture_output=True).returncode == 0:
            return candidate
    return None


def _version(python: Path, name: str) -> str:
    ask = f"import importlib.metadata as m; print(m.version({name!r}))"
    done = subprocess.run([str(python), "-c", ask], check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def install(peer: Peer) -> Installed | str:
    """The peer's environment, made when it is not there; a sentence when it cannot be had."""
    folder = CACHE / peer.name
    python = folder / "bin" / "python"
    version = _version(python, peer.name) if python.exists() else ""
    if version:
        return Installed(peer, python, version)
    interpreter = _interpreter(peer.python)
    if interpreter is None:
        return f"needs Python {peer.python}, which is not here"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True, capture_output=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", peer.name]
    try:
        done = subprocess.run(pip, check=False, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"pip took more than {INSTALL_TIMEOUT_S} s"
    version = _version(python, peer.name)
    if done.returncode or not version:
        shutil.rmtree(folder, ignore_errors=True)
        return "pip cannot install it here"
    return Installed(peer, python, version)


def installed(
    peers: Iterable[Peer] = PEERS, *, each: Callable[[str], None] = lambda _: None
) -> tuple[list[Installed], dict[str, str]]:
    """The peers that can run, and why the others cannot."""
    ready, missing = [], {}
    for peer in peers:
        each(peer.name)
        found = install(peer)
        if isinstance(found, Installed):
            ready.append(found)
        else:
            missing[peer.name] = found
    return ready, missing
