"""`deid-gateway serve` as a process of its own, with a policy for each set of stages."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import yaml

from gateway.database import Database
from gateway.settings import SHIPPED_POLICIES, Home
from tests import peers

PACS = "PACS"
START_S = 180.0
TEXT, FACE, IDENTITY = "burned_in_text", "recognizable_features", "image_identity"
# pixels, checks of the gate, and what is accepted as not assessed; the identifiers are always looked for
STAGES: dict[str, tuple[list[dict[str, object]], dict[str, object], list[str]]] = {
    "header": ([], {}, [TEXT, FACE, IDENTITY]),
    "header+text": ([{"burned_in_text": {}}], {}, [TEXT, FACE, IDENTITY]),
    "header+text+deface": ([{"burned_in_text": {}}, {"deface": {}}], {}, [TEXT, FACE, IDENTITY]),
    "header+text+deface+gate": (
        [{"burned_in_text": {}}, {"deface": {}}],
        {"residual_text": {"max": 0}, "residual_face": {}},
        [IDENTITY],
    ),
}


def write_policies(folder: Path, stages: str, archive_url: str) -> Path:
    """A folder of policies that sends MR through these stages to the archive."""
    pixels, checks, accepted = STAGES[stages]
    shutil.copytree(SHIPPED_POLICIES, folder, ignore=shutil.ignore_patterns("__pycache__", "*.yaml"))
    policy = {
        "name": "bench",
        "extends": ["ps3.15-basic@2026d"],
        "header": {
            "options": ["retain-longitudinal-modified-dates"],
            "dates": {"shift_days": [-365, 365], "scope": "patient"},
            "patient_id": {"pseudonym": "keyed", "prefix": "BENCH-"},
        },
        "pixels": pixels,
        "gate": {
            "study": {"residual_identifiers": {"max": 0}, **checks},
            "not_assessed": [{"aspects": accepted, "modality": ["MR"], "reason": "a benchmark", "approver": "bench"}],
        },
        "retain": {"originals_days": 30, "held_days": 90, "references_days": 365},
    }
    target = {"project": "bench", "policy": "bench", "destination": "archive"}
    routes = {"routes": [{"name": "all", "when": {"modality": "MR"}, "targets": [target]}]}
    for name, content in (("bench", policy), ("routes", routes), ("destinations", {"archive": archive_url})):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return folder


@dataclass(frozen=True)
class Serving:
    """A running gateway. `pid` is that of `serve`; what it started descends from it."""

    home: Home
    dicom_port: int
    http_port: int
    pid: int

    def waiting(self) -> int:
        """Studies that wait for the machine."""
        database = Database.in_home(self.home.database)
        try:
            return database.count_waiting()
        finally:
            database.close()

    def states(self) -> dict[tuple[str, str], int]:
        """Jobs by state and reason."""
        database = Database.in_home(self.home.database)
        try:
            return dict(database.count_states())
        finally:
            database.close()


@contextmanager
def serving(root: Path, policies: Path, **settings: object) -> Iterator[Serving]:
    """`serve` on free ports with a home below `root`, ready to receive. Its log is `root/serve.log`."""
    home = Home(root / "home")
    home.create()
    dicom_port, http_port = peers.free_port(), peers.free_port()
    chosen = {
        "home": home.root,
        "policies": policies,
        "dicom_port": dicom_port,
        "http_port": http_port,
        "allowed_peers": f"{PACS}@127.0.0.1",
        "min_free_bytes": 0,
        "poll_s": 0.2,
        **settings,
    }
    environment = {f"DEID_{name.upper()}": str(value) for name, value in chosen.items()}

    def ready() -> bool:
        assert process.poll() is None, f"serve ended: {(root / 'serve.log').read_text()[-600:]}"
        try:
            with urlopen(f"http://127.0.0.1:{http_port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    with open(root / "serve.log", "wb") as log:
        process = peers.spawn([sys.executable, "-m", "gateway", "serve"], output=log, env=environment)
    try:
        peers.wait_until(ready, seconds=START_S, what="serve is ready")
        yield Serving(home, dicom_port, http_port, process.pid)
    finally:
        peers.end(process, patience_s=START_S)
