"""One run of chaos: a gateway, a PACS, an archive and a database, kills and faults from a seed, then the judgement.

PYTHONPATH=.:tests:tests/faults python -m chaos_run --store sqlite --seed 1 --kills 20 --out result.json
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.request import urlopen

from chaos_archive import moody_archive
from chaos_faults import Disturbance, Reach, small_disk
from chaos_gateway import Gateways
from chaos_invariants import Evidence, Findings, judge
from chaos_postgres import postgres_behind_link
from chaos_studies import Pacs
from running import policies_for

from gateway.settings import Home

NETWORK_TIMEOUT_S = 3.0
DISK_BYTES = 96 << 20
PR_SET_PDEATHSIG = 1
CALM_S = 240.0  # longest until everything is at its end, once the faults are over
SETTINGS = {
    "DEID_WORKERS": "1",
    "DEID_QUIET_S": "0.5",
    "DEID_NETWORK_TIMEOUT_S": str(NETWORK_TIMEOUT_S),
    "DEID_RETRY_LIMIT": "500",  # an archive in a mood is no reason to give up
}


@dataclass(frozen=True)
class Plan:
    """`faults` names what may happen besides kills, "all" for whatever can be done here. `members` are processes of the
    gateway, each with so many `receivers`.
    """

    store: str
    seed: int
    kills: int
    studies: int
    members: int = 1
    receivers: int = 1
    faults: tuple[str, ...] = ("all",)
    before: str = ""  # folder of an older version, which runs for the first third


@dataclass
class Outcome:
    """What was done, what came of it, and what did not hold."""

    plan: Plan
    kills: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    restarts: int = 0  # the gateway ended by itself, and was started again as a supervisor would
    acknowledged: int = 0
    refused: int = 0
    arrivals: int = 0
    duration_s: float = 0.0
    findings: Findings = field(default_factory=Findings)

    def as_json(self) -> dict[str, object]:
        counts = {name: dict(sorted(getattr(self, name).items())) for name in ("kills", "faults", "ends")}
        return {**vars(self), "plan": asdict(self.plan), **counts, "findings": vars(self.findings)}


@contextmanager
def world(plan: Plan, root: Path) -> Iterator[tuple[Home, Reach, str]]:
    """Everything that outlives a gateway: its home on a small disk, its archive, its database (URL, "" = embedded)."""
    with ExitStack() as stack:
        archive = stack.enter_context(moody_archive(plan.seed, NETWORK_TIMEOUT_S + 1.0))
        disk = stack.enter_context(small_disk(DISK_BYTES))
        server, link, url = (
            stack.enter_context(postgres_behind_link()) if plan.store == "postgresql" else (None, None, "")
        )
        home = Home((disk or root) / "home")
        home.create()
        disturbance = Disturbance(root) if Disturbance.can() else None
        yield home, Reach(archive, disturbance, disk, server, link), url


def run(plan: Plan, root: Path) -> Outcome:
    """Needs an empty folder. AssertionError when a gateway cannot be brought back at all."""
    began = time.monotonic()
    outcome = Outcome(plan)
    dice = random.Random(f"chaos {plan.seed}")
    with world(plan, root) as (home, reach, url):
        environment = {**SETTINGS, **(reach.disturbance.environment if reach.disturbance else {})}
        if url:
            environment["DEID_DATABASE_URL"] = url
        if plan.receivers > 1:
            environment["DEID_RECEIVERS"] = str(plan.receivers)
        gateways = Gateways(home, policies_for(root / "policies", reach.archive.url), environment, plan.members)
        pacs = Pacs(plan.seed, plan.studies, lambda: gateways.dicom_ports)
        try:
            gateways.older = Path(plan.before) if plan.before else None
            gateways.start()
            pacs.start()
            _trouble(plan, outcome, dice, gateways, pacs, reach)
            gateways.revive(all)
            through = pacs.finish(CALM_S)
            _calm_down(gateways, url)
            texts = {**gateways.command_lines(), **_metrics(gateways)}
        finally:
            pacs.stop()
            codes = gateways.stop()
        folders = [reach.server.root] if reach.server else []
        shared = plan.members * plan.receivers > 1
        evidence = Evidence(home, url, pacs.acknowledged, reach.archive.arrivals, texts, folders, shared)
        outcome.findings = judge(evidence)
        if not through:
            outcome.findings.unfinished.append("the PACS is not through")
        outcome.findings.left_behind += [f"exit code {code}" for code in codes if code != 0]
        outcome.findings.left_behind += [f"process {pid}" for pid in gateways.orphans()]
        outcome.ends = gateways.ends(url)
    outcome.restarts = gateways.restarts
    outcome.acknowledged, outcome.refused = len(pacs.acknowledged), pacs.refused
    outcome.arrivals = len(reach.archive.arrivals)
    outcome.duration_s = round(time.monotonic() - began, 1)
    return outcome


def _trouble(plan: Plan, outcome: Outcome, dice: random.Random, gateways: Gateways, pacs: Pacs, reach: Reach) -> None:
    """All the kills, each while there is work, most of them while something else is wrong as well."""
    faults = {**reach.faults, "standing still": gateways.standing_still}
    if "all" not in plan.faults:
        faults = {name: faults[name] for name in plan.faults}
    for number in range(plan.kills):
        if number == plan.kills // 3:
            gateways.older = None
        pacs.allow(plan.studies // plan.kills + 1)  # there is always something new on its way
        fault = dice.choice(list(faults))
        outcome.faults[fault] += 1
        with faults[fault](dice):  # type: ignore[attr-defined]
            time.sleep(dice.uniform(0.0, 1.5))
            outcome.kills[gateways.kill(dice)] += 1
            gateways.revive()
            time.sleep(dice.uniform(0.0, 1.0))
        if dice.random() < 0.6:  # other kills hit a gateway that is still starting
            gateways.revive(any)


def _calm_down(gateways: Gateways, url: str) -> None:
    """Until nothing waits for the machine, or CALM_S are over: what still does is found by the judgement."""
    deadline = time.monotonic() + CALM_S
    while time.monotonic() < deadline and not gateways.idle(url):
        gateways.revive()
        time.sleep(0.3)


def _metrics(gateways: Gateways) -> Mapping[str, bytes]:
    texts = {}
    for port in gateways.http_ports:
        for page in ("metrics", "readyz", "healthz"):
            with urlopen(f"http://127.0.0.1:{port}/{page}", timeout=20) as answer:
                texts[f"{page} of {port}"] = answer.read()
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--receivers", type=int, default=1)
    parser.add_argument("--faults", nargs="*", default=["all"])
    parser.add_argument("--before", default="")
    parser.add_argument("--out", type=Path, required=True)
    asked = vars(parser.parse_args())
    out = asked.pop("out")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing that was started here stays
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    plan = Plan(**{**asked, "faults": tuple(asked["faults"])})
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        outcome = run(plan, Path(folder))
    out.write_text(json.dumps(outcome.as_json(), indent=1) + "\n")


if __name__ == "__main__":
    main()
