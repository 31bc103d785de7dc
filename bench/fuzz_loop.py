"""One target under atheris, in a process of its own: `python -m bench.fuzz_loop TARGET REPORT CORPUS OPTION...`.

Whatever the target raises is noted by its kind and place, with the smallest input that brings it about, and the search
goes on. What ends the process (a crash of a decoder, a hang, too much memory) is for `bench.fuzz` to see.
"""

from __future__ import annotations

import base64
import json
import logging
import sys
import time
import traceback
import warnings
from pathlib import Path

import atheris

from bench.fuzz_targets import INSTRUMENTED, TARGETS, opened

REPORT_EVERY_S = 2.0
KEPT_BYTES = 4096


def place_of(error: BaseException) -> str:
    """Kind and place, without its text."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(where.filename).name}:{where.name}"


def main() -> None:
    name, report, corpus, *options = sys.argv[1:]
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with atheris.instrument_imports(include=INSTRUMENTED), opened(name) as run:
        for seed in TARGETS[name].seeds():  # imports what is imported late, while it is instrumented
            run(seed)
        findings: dict[str, dict[str, object]] = {}
        cases, reported_at = 0, time.monotonic()

        def write() -> None:
            Path(report).write_text(json.dumps({"cases": cases, "findings": findings}))

        def one(data: bytes) -> None:
            nonlocal cases, reported_at
            cases += 1
            try:
                run(data)
            except Exception as error:  # noqa: BLE001 - whatever a hostile input brings about is a finding
                found = findings.setdefault(place_of(error), {"count": 0, "bytes": 1 << 62})
                found["count"] = int(str(found["count"])) + 1
                if len(data) < int(str(found["bytes"])):
                    found["bytes"] = len(data)
                    found["input"] = base64.b64encode(data[:KEPT_BYTES]).decode()
            if time.monotonic() - reported_at > REPORT_EVERY_S:
                reported_at = time.monotonic()
                write()

        atheris.Setup([sys.argv[0], *options, corpus], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
