"""An engine process of an older version: other code behind the same names. Run as a program; it is killed by the test.

older_engine.py STORE_URL LOCK [EXECUTOR]      prints "busy" when one leg runs, one is queued behind it, and one is
                                               delayed; EXECUTOR: it shares the store with others, and
                                               leaves what was delayed, which is of another queue, to them
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from dbos import DBOS
from engine_cases import Script

from gateway.flow import Engine, Leg, Next
from gateway.flow.queues import CPU, DECISIONS, EMBEDDED


class OlderEngine(Engine):
    """Its workflow is written otherwise, so that its code has another hash."""

    def _register(self) -> None:
        @DBOS.step(name="work")
        def older_work(leg: str, key: str, round_: int, attempt: int, generation: int, tries: int) -> list[Any]:
            print("busy", flush=True)
            time.sleep(600)
            return []

        @DBOS.workflow(name="leg", max_recovery_attempts=None)
        def older_leg(leg: str, key: str, round_: int, attempt: int, generation: int, tries: int) -> None:
            older_work(leg, key, round_, attempt, generation, tries)

        self._workflow = older_leg


if __name__ == "__main__":
    executor = sys.argv[3] if len(sys.argv) > 3 else ""
    engine = OlderEngine(
        steps=Script(),
        pending=list,
        store_url=sys.argv[1],
        lock=Path(sys.argv[2]),
        executor_id=executor,
        queues=(CPU, DECISIONS) if executor else EMBEDDED,
    )
    engine.start(workers=1)
    engine.enqueue(Next(Leg.FORWARD, "delayed", 1, delay_s=2.0))
    for key in ("running", "queued"):
        engine.enqueue(Next(Leg.SCRUB, key, 1))
    time.sleep(600)
