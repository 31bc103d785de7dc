"""The engine: DBOS, held small (gateway/decisions.md; conditions measured in engine.md are numbered in comments).

One engine process per embedded store, fixed workflow ids, JSON only, opaque keys as arguments, short legs. Our tables
are the truth: at every start, and now and then, unfinished jobs are enqueued again under their fixed ids, which does
nothing where the engine still has them.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetEnqueueOptions, SetWorkflowID
from dbos._serialization import DefaultSerializer

from gateway.errors import EnvironmentFault
from gateway.flow.legs import Leg, Next, Steps, run_leg
from gateway.observe import log

APPLICATION_VERSION = "deid-gateway-1"  # condition 2: pinned, or an upgrade strands what is queued
QUEUES = {Leg.INTAKE: "cpu", Leg.SCRUB: "cpu", Leg.GATE: "cpu", Leg.FORWARD: "net"}  # condition 6
FINISHED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
KEEP_FINISHED_S = 24 * 3600.0  # condition 9: retention is ours
QUEUE_POLL_S = 0.2


def _no_pickle(*_arguments: object) -> Any:
    # Condition 4: a planted py_pickle row would otherwise execute code.
    raise RuntimeError("pickle is blocked in the engine's store")


class Engine:
    """Owns DBOS in this process. `steps` does the work; `pending` lists what our tables say is unfinished."""

    def __init__(
        self, *, steps: Steps, pending: Callable[[], list[Next]], store_url: str, lock: Path, executor_id: str = "local"
    ) -> None:
        self._steps = steps
        self._pending = pending
        self._store_url = store_url
        self._lock_path = lock
        self._executor_id = executor_id  # condition 3
        self._lock: int | None = None
        self.alive = False

    def start(self, *, workers: int) -> None:
        """Lock, recover, and take up work. Raises EnvironmentFault when another engine process has this store."""
        self._take_lock()
        DefaultSerializer.serialize = _no_pickle  # type: ignore[method-assign,assignment]
        DefaultSerializer.deserialize = _no_pickle  # type: ignore[method-assign,assignment]
        config: DBOSConfig = {
            "name": "deid-gateway",
            "system_database_url": self._store_url,
            "application_version": APPLICATION_VERSION,
            "executor_id": self._executor_id,
            "serializer": DBOSPortableJSONSerializer(),
            "enable_otlp": False,
            "log_level": "WARNING",
        }
        # condition 2: explicit names, never reused; condition 5: no attempt limit, our legs end by themselves
        DBOS(config=config)
        self._register()
        DBOS.launch()
        DBOS.register_queue("cpu", worker_concurrency=max(1, workers), polling_interval_sec=QUEUE_POLL_S)
        DBOS.register_queue("net", worker_concurrency=4, polling_interval_sec=QUEUE_POLL_S)
        self.alive = True
        self.reconcile()

    def stop(self, *, timeout_s: int = 20) -> None:
        """Let running legs end (condition 10), then let go of the store. What is left is taken up at the next start."""
        if self._lock is None:
            return
        self.alive = False
        DBOS.destroy(workflow_completion_timeout_sec=timeout_s, destroy_registry=True)
        os.close(self._lock)
        self._lock = None

    def enqueue(self, task: Next) -> None:
        """Enqueue one leg under its fixed id; enqueuing it again changes nothing."""
        with SetWorkflowID(task.workflow_id), SetEnqueueOptions(delay_seconds=task.delay_s or None):
            DBOS.enqueue_workflow(
                QUEUES[task.leg], self._workflow, str(task.leg), task.key, task.round, task.attempt, task.generation
            )

    def reconcile(self) -> int:
        """Enqueue whatever our tables say is unfinished and the engine does not hold. Returns how many."""
        count = 0
        for task in self._pending():
            status = DBOS.get_workflow_status(task.workflow_id)
            if status is None:
                self.enqueue(task)
                count += 1
            elif status.status in FINISHED and not self._moved_on(task):
                # The leg ended but its successor was never enqueued (or the engine gave up): a new id takes it up.
                log("leg_revived", stage=task.leg, job=task.key, attempt=task.attempt)
                self.enqueue(self._fresh(task))
                count += 1
        return count

    def sweep(self) -> None:
        """Delete finished legs that nobody asks for any more."""
        cutoff = datetime.now(UTC) - timedelta(seconds=KEEP_FINISHED_S)
        for workflow in DBOS.list_workflows(
            status=list(FINISHED), completed_before=cutoff.isoformat(), limit=500, load_input=False, load_output=False
        ):
            DBOS.delete_workflow(workflow.workflow_id)

    def _moved_on(self, task: Next) -> bool:
        """True when a later try of this leg is queued or running."""
        prefix = task.workflow_id.rsplit("/a", 1)[0] + "/a"
        later = DBOS.list_workflows(workflow_id_prefix=prefix, load_input=False, load_output=False)
        return any(workflow.status not in FINISHED for workflow in later)

    def _fresh(self, task: Next) -> Next:
        prefix = task.workflow_id.rsplit("/a", 1)[0] + "/a"
        used = DBOS.list_workflows(workflow_id_prefix=prefix, load_input=False, load_output=False)
        attempt = 1 + max((int(workflow.workflow_id.rsplit("/a", 1)[1]) for workflow in used), default=task.attempt)
        return Next(task.leg, task.key, task.round, attempt, task.generation)

    def _register(self) -> None:
        @DBOS.step(name="work")
        def work(leg: str, key: str, round_: int, attempt: int, generation: int) -> list[list[Any]]:
            following = run_leg(self._steps, Next(Leg(leg), key, round_, attempt, generation))  # never raises
            return [[str(n.leg), n.key, n.round, n.attempt, n.generation, n.delay_s] for n in following]

        @DBOS.workflow(name="leg", max_recovery_attempts=None)
        def leg_workflow(leg: str, key: str, round_: int, attempt: int, generation: int) -> None:
            for following in work(leg, key, round_, attempt, generation):
                self.enqueue(Next(Leg(following[0]), *following[1:]))

        self._workflow = leg_workflow

    def _take_lock(self) -> None:
        # Condition 1: a second engine process on one embedded store runs jobs twice.
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise EnvironmentFault(
                f"another gateway runs on this home ({self._lock_path}); stop it, or use another --home"
            ) from None
        self._lock = handle
