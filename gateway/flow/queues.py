"""Queues by kind of work (engine.md condition 6), and how much of each is done at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dbos import DBOS

from gateway.flow.legs import Leg

CPU, GPU, NET, DECISIONS = "cpu", "gpu", "net", "decisions"
EMBEDDED = (CPU, NET, DECISIONS)  # one process does it all: learned parts need no queue of their own
QUEUES = {
    Leg.INTAKE: CPU,
    Leg.SCRUB: CPU,
    Leg.GATE: CPU,
    Leg.FORWARD: NET,
    Leg.DECIDE: DECISIONS,
    Leg.RETAIN: DECISIONS,
    Leg.RELEASE: CPU,
    Leg.RECALL: NET,
}
POLL_S = 0.2
SENDING, SENDING_PER_LANE = 32, 4


def open_queues(served: Collection[str], *, workers: int, shared: bool) -> None:
    """Say how much is done at once. Limits lie in the store: those of a queue are set by the processes that serve it.

    Legs wait for the process pool; some more than it has processes keep it busy from one poll to the next. A lane
    (a destination) has its limit over all processes.
    """
    at_once = 2 * workers + 2
    limits: dict[str, dict[str, Any]] = {
        CPU: {"worker_concurrency": at_once},
        **({GPU: {"worker_concurrency": at_once}} if shared else {}),
        NET: {"worker_concurrency": SENDING, "partition_concurrency": SENDING_PER_LANE},
        DECISIONS: {"global_concurrency": 1},  # in order, and never while retention removes something
    }
    for queue, limit in limits.items():
        conflict: Any = "update_if_latest_version" if queue in served else "never_update"
        DBOS.register_queue(queue, polling_interval_sec=POLL_S, on_conflict=conflict, **limit)
