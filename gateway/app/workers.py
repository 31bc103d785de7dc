"""The process pool, and the functions that run in it. They take paths, keys and policy snapshots, never values.

Workers are spawned (no inherited locks or sockets), die with their parent (PR_SET_PDEATHSIG: without it a kill -9 of
the gateway leaves orphans that go on writing), and print nothing.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path
from typing import ParamSpec, TypeVar

from gateway.app.policies import restore
from gateway.durable import PART, publish, sync_file
from gateway.gate import Judgement, Pair, clear_by_review, judge
from gateway.header import scrub_file
from gateway.observe import silence_libraries
from gateway.policy import Policy
from gateway.pseudonyms import Pseudonyms
from gateway.study import Clearance, Step, Verdict

PR_SET_PDEATHSIG = 1

P = ParamSpec("P")
R = TypeVar("R")


def _start_worker(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before prctl
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    silence_libraries()


class Workers:
    """A pool that replaces itself after a worker was killed (out of memory, hostile object)."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run `function` in a worker. The future raises BrokenProcessPool when the worker died."""
        with self._lock:
            if self._pool is None:
                self._pool = self._new_pool()
            pool = self._pool
        try:
            return pool.submit(function, *args, **kwargs)
        except BrokenProcessPool:
            self._replace(pool)
            raise

    def run(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run in a worker and wait."""
        return self.gather([self.submit(function, *args, **kwargs)])[0]

    def gather(self, futures: Sequence[Future[R]]) -> list[R]:
        """All results in order. The first exception is raised after every future has ended, so that no worker still
        writes when the caller goes on.
        """
        first: BaseException | None = None
        results: list[R] = []
        for future in futures:
            error = future.exception()
            if error is None:
                results.append(future.result())
            elif first is None:
                first = error
        if isinstance(first, BrokenProcessPool):
            self._replace(self._pool)
        if first is not None:
            raise first
        return results

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self.count,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(os.getpid(),),
        )

    def _replace(self, broken: ProcessPoolExecutor | None) -> None:
        with self._lock:
            if self._pool is broken and broken is not None:
                broken.shutdown(wait=False, cancel_futures=True)
                self._pool = None


@lru_cache(maxsize=32)
def policy_of(snapshot: str) -> Policy:
    """The policy of a snapshot, kept between calls of one worker."""
    return restore(snapshot)


def scrub_instance(source: Path, target: Path, snapshot: str, project_key: bytes) -> Step:
    """Header of one instance: `target` is whole and on disk afterwards. Raises Hold or Refuse."""
    part = target.with_name(target.name + PART)
    step = scrub_file(source, part, policy=policy_of(snapshot).header, pseudonyms=Pseudonyms(project_key))
    sync_file(part)
    publish(part, target)
    return step


def judge_job(pairs: Sequence[Pair], snapshot: str, job_key: str, destination: str, seal_key: bytes) -> Judgement:
    """The gate on one job. Raises Hold."""
    return judge(pairs, policy=policy_of(snapshot), job_key=job_key, destination=destination, seal_key=seal_key)


def clear_reviewed_job(
    pairs: Sequence[Pair],
    snapshot: str,
    job_key: str,
    destination: str,
    seal_key: bytes,
    reviewer: str,
    verdicts: Sequence[Verdict],
) -> Clearance:
    """A recorded review's clearance. Raises Hold when the files cannot even be described."""
    return clear_by_review(
        pairs,
        policy=policy_of(snapshot),
        job_key=job_key,
        destination=destination,
        seal_key=seal_key,
        reviewer=reviewer,
        verdicts=verdicts,
    )
