"""The engine: DBOS, held small (gateway/decisions.md; conditions measured in engine.md are numbered in comments).

Fixed workflow ids, JSON only, opaque keys as arguments, short legs. Our tables are the truth: at every start, and now
and then, unfinished work is enqueued again under fixed ids, which does nothing where the engine still has it. An
embedded store has one engine process. Those that share a store have executor ids of their own, serve the queues of
their roles, and one of them takes up the work of the dead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from dbos._error import DBOSException
from sqlalchemy.exc import SQLAlchemyError

from gateway.errors import EnvironmentFault
from gateway.flow.launch import set_up
from gateway.flow.legs import MACHINE_PAUSE_S, Leg, Next, Steps, run_leg
from gateway.flow.lock import StoreLock
from gateway.flow.pause import Pause
from gateway.flow.queues import CPU, EMBEDDED, GPU, NET, QUEUES, open_queues
from gateway.observe import log, origin

WORKFLOW = "leg"  # condition 2: explicit, never reused for something else
UNFINISHED = ("PENDING", "ENQUEUED", "DELAYED")
FINISHED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
KEEP_FINISHED_S = 24 * 3600.0  # condition 9: retention is ours
SWEEP_AT_ONCE = 500
MANY_TRIES = 30  # after so many a pause has grown as long as it will
RECONCILING_S = 10.0
STARTING_S = 15.0  # after this the threads that take up work must be there


class Engine:
    """Owns DBOS in this process. `steps` does the work; `pending` lists what our tables say is unfinished.

    `executor_id`: the name of this process among those that share the store, "" where it is the only one.
    """

    def __init__(
        self,
        *,
        steps: Steps,
        pending: Callable[[], list[Next]],
        store_url: str,
        lock: Path,
        executor_id: str = "",
        queues: Sequence[str] = EMBEDDED,
    ) -> None:
        self._steps = steps
        self._pending = pending
        self._store_url = store_url
        self._shared = bool(executor_id)
        self._executor_id = executor_id or "local"  # condition 3
        self._queues = tuple(queues)
        self._lock = StoreLock(lock, store_url, shared=self._shared)
        self._pause = Pause(lock)
        self._started_at: float | None = None
        self._running: set[str] = set()  # workflow ids of the legs that this process is at
        self._stranded: set[str] = set()
        self._running_lock = threading.Lock()

    @property
    def alive(self) -> bool:
        """True while the threads that take up work are there, or may still be starting."""
        if self._started_at is None:
            return False
        names = {thread.name for thread in threading.enumerate()}
        there = {f"queue-worker-{queue}" for queue in self._queues} <= names
        return there or time.monotonic() - self._started_at < STARTING_S

    def claim(self) -> None:
        """Take the store before anything slow is done for it. Raises EnvironmentFault when another process has it."""
        if not self._lock.held:
            self._lock.take()

    def start(self, *, workers: int) -> None:
        """Lock, recover, and take up work; those that share a store leave it to the one that leads to `reconcile`.

        Raises EnvironmentFault when another process has this store, or when it cannot be opened.
        """
        self.claim()
        try:
            self._started_at = time.monotonic()
            self._launch(max(1, workers))
            if not self._shared:
                self.reconcile()
        except (SQLAlchemyError, DBOSException, OSError) as error:
            self.stop(timeout_s=0)
            raise EnvironmentFault(
                "the engine's store cannot be opened; check DEID_DATABASE_URL and the disk"
            ) from error
        except BaseException:
            self.stop(timeout_s=0)
            raise

    def stop(self, *, timeout_s: int = 20) -> None:
        """Let running legs end (condition 10), then let go of the store. What is left is taken up at the next start."""
        if not self._lock.held:
            return
        self._started_at = None
        with self._running_lock:
            wait_s = timeout_s if self._running else 0
        with suppress(SQLAlchemyError, DBOSException):
            DBOS.destroy(workflow_completion_timeout_sec=wait_s, destroy_registry=True)
        self._lock.release()

    def enqueue(self, task: Next) -> None:
        """Enqueue one leg under its fixed id; enqueuing it again changes nothing."""
        queue = QUEUES[task.leg]
        if self._shared and queue == CPU and self._steps.is_learned(task):
            queue = GPU
        lane = self._steps.lane(task) if queue == NET else None
        options = SetEnqueueOptions(
            delay_seconds=task.delay_s or None, queue_partition_key=lane, priority=self._steps.rank(task)
        )
        arguments = (str(task.leg), task.key, task.round, task.attempt, task.generation, task.tries)
        with SetWorkflowID(task.workflow_id), options:
            DBOS.enqueue_workflow(queue, self._workflow, *arguments)

    def look_after(self) -> None:
        """What every process does for itself now and then: keep the lock, and resume what a failing store left behind.
        Raises EnvironmentFault when the lock is lost, SQLAlchemyError while the store is out of reach.
        """
        try:
            self._lock.keep()
        except EnvironmentFault:
            self._started_at = None  # somebody else may be at work on this store: the process must end
            raise
        self._resume_stranded()

    def rescue(self, alive: Callable[[], Collection[str]]) -> int:
        """Queue again what was running in processes that are dead (condition 3). Returns how many processes.

        `alive` is asked after the look into the store: whoever is in the store is among the living by then, or dead.
        """
        at_work = {str(workflow.executor_id) for workflow in _list(status="PENDING", name=WORKFLOW)}
        dead = sorted(at_work - set(alive())) if at_work else []
        if dead:
            # `resume_workflow` does not ask who has the workflow: it would take it from whoever was quicker than we.
            DBOS._recover_pending_workflows(dead)  # noqa: SLF001
            log("rescued", count=len(dead))
        return len(dead)

    def reconcile(self) -> int:
        """Enqueue whatever our tables say is unfinished and the engine does not hold. Returns how many.

        When it is much (the night's studies, as a destination opens) the rest comes the next time.
        """
        self.look_after()
        self._hasten()
        held = {_prefix(workflow.workflow_id) for workflow in _list(status=list(UNFINISHED))}
        count, until = 0, time.monotonic() + RECONCILING_S
        for task in self._pending():
            if time.monotonic() > until:
                break
            if task.prefix in held:
                continue
            known = _list(workflow_id_prefix=task.prefix)
            if any(workflow.status in UNFINISHED for workflow in known):
                continue  # enqueued since the look above
            if known:
                # The leg ended but its successor was never enqueued (or the engine gave up): a new id takes it up.
                log("leg_revived", stage=task.leg, job=task.key, attempt=task.attempt)
                last = max(_attempt(workflow.workflow_id) for workflow in known)
                task = replace(task, attempt=max(task.attempt, last + 1))  # noqa: PLW2901
            self.enqueue(task)
            count += 1
        return count

    def sweep(self) -> int:
        """Delete finished legs that nobody asks for any more. Returns how many."""
        cutoff = datetime.now(UTC) - timedelta(seconds=KEEP_FINISHED_S)
        old = _list(status=list(FINISHED), completed_before=cutoff.isoformat(), limit=SWEEP_AT_ONCE)
        if old:
            DBOS.delete_workflows([workflow.workflow_id for workflow in old])
        return len(old)

    def _resume_stranded(self) -> None:
        """Condition 9: when the store fails under a leg (a full disk), the leg is over and its workflow stays PENDING.
        What is PENDING and not running here at two looks in a row is queued again."""
        pending = {
            workflow.workflow_id: workflow.queue_name
            for workflow in _list(status="PENDING", executor_id=self._executor_id, name=WORKFLOW)
        }
        with self._running_lock:
            idle = pending.keys() - self._running
        for workflow_id in idle & self._stranded:
            log("leg_resumed", stage=workflow_id.partition("/")[0])
            DBOS.resume_workflow(workflow_id, queue_name=pending[workflow_id])
        self._stranded = idle - self._stranded

    def _hasten(self) -> None:
        """A clock that was set back leaves pauses that end at the old time: no pause is that long, so it ends now."""
        latest_ms = 1000 * (time.time() + max(self._steps.pause_s(MANY_TRIES), MACHINE_PAUSE_S))
        for workflow in _list(status="DELAYED", name=WORKFLOW):
            if (workflow.delay_until_epoch_ms or 0) > latest_ms:
                log("leg_hastened", stage=workflow.workflow_id.partition("/")[0])
                DBOS.set_workflow_delay(workflow.workflow_id, delay_seconds=0)

    def _launch(self, workers: int) -> None:
        set_up(self._store_url, self._executor_id)
        self._register()
        DBOS.listen_queues(self._queues)
        DBOS.launch()
        open_queues(self._queues, workers=workers, shared=self._shared)

    def _register(self) -> None:
        @DBOS.step(name="work")
        def work(leg: str, key: str, round_: int, attempt: int, generation: int, tries: int) -> list[list[Any]]:
            task = Next(Leg(leg), key, round_, attempt, generation, tries=tries)
            room = nullcontext() if QUEUES[task.leg] == NET else self._pause.working()  # sending changes no files
            following = run_leg(self._steps, task, room)  # raises nothing that the engine would store
            return [[str(n.leg), n.key, n.round, n.attempt, n.generation, n.delay_s, n.tries] for n in following]

        # condition 5: no attempt limit, our legs end by themselves
        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)
        def leg_workflow(leg: str, key: str, round_: int, attempt: int, generation: int, tries: int) -> None:
            own_id = Next(Leg(leg), key, round_, attempt, generation).workflow_id
            with self._running_lock:
                self._running.add(own_id)
            try:
                for following in work(leg, key, round_, attempt, generation, tries):
                    self.enqueue(Next(Leg(following[0]), *following[1:]))
            except (SQLAlchemyError, OSError) as error:  # its text, stored as the outcome, would say too much
                log("store_failed", stage=leg, exception=origin(error))
                raise RuntimeError("the engine's store failed; the leg is taken up again") from None
            finally:
                with self._running_lock:
                    self._running.discard(own_id)

        self._workflow = leg_workflow


def _list(**which: Any) -> list[Any]:
    """Workflows without their arguments and results: a planted one must not be read, let alone fail the look."""
    return list(DBOS.list_workflows(load_input=False, load_output=False, **which))


def _prefix(workflow_id: str) -> str:
    return workflow_id.rstrip("0123456789")


def _attempt(workflow_id: str) -> int:
    digits = workflow_id[len(_prefix(workflow_id)) :]
    return int(digits) if digits else -1
