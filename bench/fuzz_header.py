"""Hostile bytes into the header stage: no crash, no hang, no planted identity in what comes out.

    python -m bench.fuzz_header --minutes 10 [--seed 1] [--case N]

Seeds are pydicom's test files and generated objects with a planted identity (synthetic), each with the plant put into
more of its attributes. A case is some mutations of one seed (flips, splices, lengths, VRs, tags, nesting, truncation,
hostile UN and SQ); it is scrubbed twice, the second time from what the first one taught, and as a whole. Findings are
anything but an output, a hold, a refusal or a drop; more than LIMIT_S seconds or LIMIT_BYTES of memory; outputs that
differ; and a plant in an output outside bulk data (with cleaning off: unless a mutation may have moved it into text
that stays). `--case` repeats one. Results go to bench/results/fuzz_header.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.table import Table

from bench.fuzz_mutations import MOVES_TEXT, case
from bench.fuzz_seeds import planted_outside_bulk, seeds
from gateway.errors import StudyError
from gateway.header import scrub_file
from gateway.header.repeats import REPEATS
from gateway.header.scrub import scrubbed_whole
from gateway.header.source import open_source
from gateway.header.streaming import Span
from gateway.policy import HeaderPolicy
from gateway.pseudonyms import Pseudonyms
from gateway.study import Step

RESULT = Path(__file__).parent / "results" / "fuzz_header.json"
LIMIT_S, LIMIT_BYTES = 10, 3 << 30
PSEUDONYMS = Pseudonyms(bytes(range(32)))
OPTIONS = frozenset(
    {
        *("clean-descriptors", "clean-structured-content", "clean-graphics", "retain-longitudinal-modified-dates"),
        *("retain-patient-characteristics", "retain-safe-private"),
    }
)
POLICIES = {
    "all": HeaderPolicy.model_validate({"options": OPTIONS, "private": {"dispositions": "tcia"}}),
    "basic": HeaderPolicy(),
}


class TooLong(Exception):
    """A case went on for LIMIT_S."""


def _alarm(_: int, __: FrameType | None) -> None:
    raise TooLong


def finding(file: bytes, policy: HeaderPolicy, folder: Path, *, search: bool) -> tuple[str, str]:
    """(outcome, what is wrong with it or "")."""
    source, target = folder / "in", folder / "out"
    source.write_bytes(file)
    outputs: list[tuple[bytes, Step | None]] = []
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        for _ in range(2):
            target.unlink(missing_ok=True)
            try:
                step = scrub_file(source, target, policy=policy, pseudonyms=PSEUDONYMS)
                outputs.append((target.read_bytes(), step))
            except StudyError as error:
                if target.exists():
                    return error.reason, "wrote something and raised"
                outputs.append((error.reason.encode(), None))
        try:
            original = open_source(source)
            whole = scrubbed_whole(original, policy, PSEUDONYMS)
            data = b"".join(file[part.start : part.end] if isinstance(part, Span) else part for part in whole.parts)
            outputs.append((data, whole.step))
        except StudyError as error:
            outputs.append((error.reason.encode(), None))
    except TooLong:
        return "", "too long"
    except (Exception, RecursionError) as error:  # noqa: BLE001 - whatever a hostile file brings about is a finding
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "", f"{type(error).__name__} in {Path(where.filename).name}:{where.name}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if len({data for data, _ in outputs}) > 1 or any(step != outputs[0][1] for _, step in outputs):
        return "", "the ways differ"
    if outputs[0][1] is None:
        return outputs[0][0].decode(), ""
    return "cleaned", planted_outside_bulk(outputs[0][0]) if search else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    asked = parser.parse_args()
    console = Console()
    signal.signal(signal.SIGALRM, _alarm)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    files = seeds()
    outcomes: Counter[str] = Counter()
    findings: dict[str, dict[str, object]] = {}
    began, number = time.monotonic(), asked.case or 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - began < asked.minutes * 60:
            file, mutations = case(asked.seed, number, files)
            for name, policy in POLICIES.items():
                search = name == "all" or MOVES_TEXT.isdisjoint(mutations.split("+"))
                outcome, wrong = finding(file, policy, Path(folder), search=search)
                outcomes[outcome or "finding"] += 1
                if wrong:
                    found = findings.setdefault(wrong, {"count": 0, "case": number, "by": mutations, "policy": name})
                    found["count"] = int(str(found["count"])) + 1
                    if found["count"] == 1:
                        console.print(f"[red]{wrong}[/] case {number} ({mutations}, {name})")
            if asked.case is not None:
                return
            number += 1
            if number % 500 == 0:
                REPEATS.clear()
                console.print(f"{number} cases, {len(findings)} kinds of findings", style="dim")
    minutes = (time.monotonic() - began) / 60
    table = Table("outcome", "cases")
    for outcome, count in outcomes.most_common():
        table.add_row(outcome, str(count))
    console.print(table)
    report = {
        "command": f"python -m bench.fuzz_header --minutes {asked.minutes:g} --seed {asked.seed}",
        "seeds": len(files),
        "cases": number,
        "policies": list(POLICIES),
        "minutes": round(minutes, 2),
        "findings": findings,
        "outcomes": dict(outcomes.most_common()),
    }
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    if findings:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
