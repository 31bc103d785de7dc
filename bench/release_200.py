"""A release of two hundred people who do not exist, through the whole system, as its users run it.

    make bench NAME=release_200             --people N for a smaller look, which writes no result

`deid-gateway serve` takes synthetic chest films by C-STORE from DCMTK's storescu and sends by two policies: `as-it-is`
cleans the header and leaves the pixels, `made-anew` makes each film anew with the card that ships, and escalates. Each
collects a release, closed by the command line; `made-anew` goes to a storescp and to a folder. Then: states, leak
scores of `release show` against those on /metrics, and a recall with its receivers.

People are synthetic, and so are the attackers' and the card's training people: nobody of them is among these.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pydicom
import yaml
from prometheus_client.parser import text_string_to_metric_families

from gateway.learn.writing import write_dicom
from gateway.pixels.resynthesize_card import card_of
from gateway.pixels.stage_card import folders_of
from gateway.settings import SHIPPED_POLICIES
from models.cohorts.chest import synthetic_chest
from tests.peers import free_port, storescp

OUT = Path(__file__).parent / "results" / "release_200.json"
PEOPLE, SIZE, SEED = 200, 64, 20261130
CARD = "chest-resynth-small-1"
ATTACKERS = ["chest-audit-1", "gradients"]
LEVELS = [0.2, 0.1, 0.04, 0.02]
LIMITS = {"max_excess_upper": 0.2, "max_upper": 0.12}
LIMITS_OF_FEW = {"max_excess_upper": 0.5, "max_upper": 0.3}  # below 150 people: a look, and no claim
BY = ["--by", "bench", "--reason", "a bench of releases"]
WAIT_S = 7200.0
ENDED = ("awaiting_release", "held")


def policy_of(name: str, people: int, given: argparse.Namespace, *, anew: bool) -> dict[str, Any]:
    """Films leave as they are, or made anew at the weakest level that the release lets through."""
    stage = {"resynthesize": {"card": given.card, "levels": LEVELS}}
    limits = limits_of(people)
    body: dict[str, Any] = {
        "name": name,
        "extends": ["ps3.15-basic@2026d"],
        "header": {"patient_id": {"pseudonym": "keyed", "prefix": "DEMO-"}},
        "pixels": [stage] if anew else [],
        "gate": {
            "study": {"residual_identifiers": {"max": 0}},
            "release": {
                "linkability": {"cards": given.attackers.split(","), "max_excess_upper": limits["max_excess_upper"]},
                "rank1": {"max_upper": limits["max_upper"], "gallery": 50},
            },
            "not_assessed": [
                {
                    "aspects": ["burned_in_text", "recognizable_features"],
                    "modality": ["CR"],
                    "reason": "synthetic films without text",
                    "approver": "bench",
                }
            ],
        },
        "release": {"min_subjects": int(0.95 * people), "on_fail": "escalate" if anew else "hold"},
    }
    if anew:
        body["escalate"] = {"stage": "resynthesize", "levels": list(LEVELS), "max_attempts": len(LEVELS)}
    return body


def limits_of(people: int) -> dict[str, float]:
    """Of linkability and of rank-1, so that a release of so many people passes without a leak."""
    return LIMITS if people >= 150 else LIMITS_OF_FEW


class Serve:
    """`deid-gateway serve` as a process, and the command line beside it."""

    def __init__(self, given: argparse.Namespace, receivers: dict[str, str], *, anew: bool) -> None:
        root, people = given.work, given.people
        self.models = given.models
        self.home, self.policies = root / "home", root / "policies"
        self.log = root / "serve.log"
        self.dicom_port, self.http_port = free_port(), free_port()
        shutil.copytree(SHIPPED_POLICIES / "standard", self.policies / "standard")
        bodies = [policy_of("as-it-is", people, given, anew=False)]
        targets = [{"project": "raw", "policy": "as-it-is", "destination": "folder"}]
        if anew:
            bodies.append(policy_of("made-anew", people, given, anew=True))
            targets += [{"project": "anew", "policy": "made-anew", "destination": one} for one in receivers]
        for body in bodies:
            (self.policies / f"{body['name']}.yaml").write_text(yaml.safe_dump(body))
        (self.policies / "destinations.yaml").write_text(yaml.safe_dump(receivers))
        route = {"name": "films", "when": {"modality": "CR"}, "targets": targets}
        (self.policies / "routes.yaml").write_text(yaml.safe_dump({"routes": [route]}))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DEID_")}
        self.environment = {
            **clean,
            "DEID_HOME": str(self.home),
            "DEID_POLICIES": str(self.policies),
            "DEID_DICOM_PORT": str(self.dicom_port),
            "DEID_HTTP_PORT": str(self.http_port),
            "DEID_ALLOWED_PEERS": "PACS@127.0.0.1",
            "DEID_QUIET_S": "3",
            "DEID_POLL_S": "0.5",
            "DEID_MIN_FREE_BYTES": "0",
            "DEID_WORKERS": "2",
        }

    def __call__(self, *words: str) -> Any:
        """A command of the gateway, its answer as JSON."""
        command = [sys.executable, "-m", "gateway", *words, "--home", str(self.home), "--json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")
        return json.loads(done.stdout)

    @contextmanager
    def running(self) -> Iterator[None]:
        command = [sys.executable, "-m", "gateway", "init", str(self.home)]
        subprocess.run(command, env=self.environment, check=True, capture_output=True)
        if self.models is not None:
            shutil.copytree(self.models, self.home / "models", dirs_exist_ok=True)
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "gateway", "serve"], env=self.environment, stdout=log, stderr=log
            )
        try:
            wait(lambda: self._answers("readyz"), "serve is not ready", process)
            yield
        finally:
            process.terminate()
            process.wait(timeout=120)

    def _answers(self, path: str) -> str:
        try:
            with urlopen(f"http://127.0.0.1:{self.http_port}/{path}", timeout=30) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def metrics(self) -> str:
        return self._answers("metrics")

    def jobs(self) -> dict[str, int]:
        """Jobs by state."""
        found: dict[str, int] = {}
        for row in self("status")["jobs"]:
            found[row["state"]] = found.get(row["state"], 0) + row["jobs"]
        return found


def wait(ready: Any, otherwise: str, process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + WAIT_S
    while not ready():
        if time.monotonic() > deadline or (process is not None and process.poll() is not None):
            raise SystemExit(otherwise)
        time.sleep(1.0)


def worst(scores: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """By check the figure nearest to its limit, or furthest beyond it."""
    found: dict[str, dict[str, float]] = {}
    for one in scores:
        if one["note"] or one["upper"] is None:
            continue
        if one["check"] not in found or one["upper"] > found[one["check"]]["upper"]:
            found[one["check"]] = {name: one[name] for name in ("estimate", "upper", "limit", "people")}
    return found


def on_metrics(text: str, release: str, scores: list[dict[str, Any]]) -> float:
    """How far /metrics and `release show` are apart about a release, at most: over checks, the worst bound."""
    policy, _, number = release.rpartition("-")
    told: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            of = sample.labels
            if sample.name == "deid_release_score" and (of["policy"], of["release"]) == (policy, number):
                key = (of["check"], of["kind"])
                told[key] = max(sample.value, told.get(key, float("-inf")))
    return max(abs(told[check, "upper"] - figure["upper"]) for check, figure in worst(scores).items())


def close(serve: Serve, name: str) -> dict[str, Any]:
    """Close a release, wait for its end, and tell it."""
    began = time.perf_counter()
    serve("release", "close", name, *BY)
    wait(lambda: serve("release", "show", name)["state"] in {"sent", "blocked"}, f"{name} does not end")
    row = serve("release", "show", name)
    policy, _, number = name.rpartition("-")
    difference = on_metrics(serve.metrics(), name, row["scores"])
    text = serve.metrics()
    levels = {
        sample.labels["level"]: int(sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "deid_release_level_studies"
        and (sample.labels["policy"], sample.labels["release"]) == (policy, number)
    }
    return {
        "state": row["state"],
        "reason": row["reason"],
        "at": row["at"],
        "people": row["people"],
        "studies": row["studies"],
        "scores": worst(row["scores"]),
        "metrics_differ_by": difference,
        "levels": levels,
        "seconds": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--attackers", default=",".join(ATTACKERS), help="cards of the gate, with commas")
    parser.add_argument("--card", default=CARD, help="the anonymiser's")
    parser.add_argument("--models", type=Path, help="a folder with cards of one's own")
    parser.add_argument("--work", type=Path, default=Path("/tmp/bench-release-200"))
    given = parser.parse_args()
    shutil.rmtree(given.work, ignore_errors=True)
    given.work.mkdir(parents=True)
    anew = card_of(given.card, folders_of(given.models)) is not None
    films = given.work / "films"
    cohort = synthetic_chest(given.people, 1, SEED, size=SIZE)
    write_dicom(cohort, films, modality="CR", masks=())
    began = time.perf_counter()
    (given.work / "archive").mkdir()
    with storescp(given.work / "archive", "--fork", "+B") as scp:
        receivers = {"folder": f"folder:{given.work}/received", "archive": f"dicom://ARCHIVE@127.0.0.1:{scp.port}"}
        serve = Serve(given, receivers, anew=anew)
        with serve.running():
            command = ["storescu", "+sd", "+r", "-aet", "PACS", "-aec", "DEID", "127.0.0.1", str(serve.dicom_port)]
            subprocess.run([*command, str(films)], check=True, capture_output=True)
            expected = given.people * (1 + (len(receivers) if anew else 0))
            wait(lambda: sum(serve.jobs().get(one, 0) for one in ENDED) == expected, "not all of them wait, or hold")
            held = serve.jobs().get("held", 0)  # films that the card's domain does not take: one in a hundred
            names = [row["release"] for row in serve("release", "list")]
            result: dict[str, Any] = {
                "synthetic": True,
                "people": given.people,
                "attackers": given.attackers.split(","),
                "limits": limits_of(given.people),
                "card": given.card if anew else "none that ships makes chest films anew: only `as-it-is` was run",
                "held": held,
                "received_and_waiting_seconds": round(time.perf_counter() - began, 1),
                "releases": {},
            }
            for name in names:
                result["releases"][name] = close(serve, name)
                print(name, result["releases"][name], flush=True)
            sent = [name for name in names if result["releases"][name]["state"] == "sent"]
            if sent:
                out = given.work / "recall"
                arrived = (path for one in ("received", "archive") for path in sorted((given.work / one).rglob("*")))
                first = next(path for path in arrived if path.is_file())
                pseudonym = str(pydicom.dcmread(first, stop_before_pixels=True).PatientID)
                serve("recall", "pseudonym", pseudonym, *BY, "--out", str(out))
                manifest = json.loads(next(out.glob("recall-*.json")).read_text())
                result["recalled_from"] = {one["receiver"]: len(one["instances"]) for one in manifest["receivers"]}
        result["received"] = {
            "folder": len(list((given.work / "received").rglob("*.dcm"))),
            "archive": len(list((given.work / "archive").rglob("*"))),
        }
    result["seconds"] = round(time.perf_counter() - began)
    print(json.dumps(result, indent=1))
    if given.people >= PEOPLE:
        OUT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
