"""The process pool that `tasks` run in.

Workers are forked off a server process that has loaded `tasks` and nothing else: they inherit no locks and no sockets
of the gateway, begin at once, and share the memory of what they loaded. They die with the gateway (without that a
kill -9 of it leaves orphans that go on writing), and print nothing. They may be given a limit of memory, so that what
a hostile object unfolds to ends one call, and not the machine.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import multiprocessing
import os
import resource
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from multiprocessing import forkserver
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from gateway.errors import EnvironmentFault, Stopping
from gateway.observe import log, silence_libraries

PR_SET_PDEATHSIG = 1
LOADED_FIRST = ["gateway.app.tasks"]  # by the server, once
SOCKET_BYTES, IN_TEMPORARY = 107, len("/pymp-12345678/listener-12345678")  # unix(7); where the server listens
STALLED_S = 1800.0  # a pool in which nothing ends for this long hangs: its workers are killed

P = ParamSpec("P")
R = TypeVar("R")


def _start_worker(memory_bytes: int) -> None:
    _die_with_the_gateway()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    if memory_bytes:
        # What is written to, not what is mapped: weights and CUDA map much that no memory stands behind (setrlimit(2)).
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    # A worker starts no processes. numba believes that it might, and would make a lock between them, which stays behind
    # when the kernel ends the worker, and told of on stderr.
    multiprocessing.set_start_method("spawn", force=True)
    silence_libraries()


def _die_with_the_gateway() -> None:
    """The server ends when nobody holds the other end of its pipe any more, which a worker does from its birth: with
    that let go, the server ends with the gateway, and the kernel kills the workers with the server.
    """
    server: Any = forkserver._forkserver  # noqa: SLF001 - it cannot be asked to
    gateway = multiprocessing.parent_process()
    os.close(server._forkserver_alive_fd)  # noqa: SLF001
    server._forkserver_alive_fd = None  # noqa: SLF001
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if gateway is None or not gateway.is_alive():  # it died before that
        os._exit(1)


@cache
def settle() -> None:
    """Once a worker has loaded its tables, they stay until it ends: the garbage collector need not look at them again.

    Tables, dictionaries and code are more than 150,000 objects, and a full collection, 80 ms and longer with them,
    comes every few hundred files. What is frozen is freed by its last reference as before.
    """
    gc.collect()
    gc.freeze()


class Workers:
    """A pool that replaces itself after a worker was killed (out of memory, hostile object).

    One dead worker breaks a pool for everybody who uses it. What was lost in it runs once more in a pool of its own:
    only who breaks that one as well is to blame, and gets BrokenProcessPool. With `memory_bytes` (0 = no limit) a call
    that needs more of it gets MemoryError, or BrokenProcessPool where a library cannot tell.

    Raises EnvironmentFault where the path of temporary files is too long for a socket.
    """

    def __init__(self, count: int, *, memory_bytes: int = 0) -> None:
        most = SOCKET_BYTES - IN_TEMPORARY
        if len(os.fsencode(tempfile.gettempdir())) > most:
            raise EnvironmentFault(f"TMPDIR is too long a path for a socket; set one of {most} characters at most")
        self.count = count
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._open: set[ProcessPoolExecutor] = set()  # not yet being shut down
        self._gone: WeakKeyDictionary[ProcessPoolExecutor, threading.Event] = WeakKeyDictionary()
        self._closed = False
        self._ended = 0  # calls that ended in any pool
        self._calls: WeakKeyDictionary[Future[Any], tuple[ProcessPoolExecutor, Callable[[], Any]]] = WeakKeyDictionary()

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run `function` in a worker; give the future to `gather`. Raises Stopping when the workers are closed."""
        return self._submit(partial(function, *args, **kwargs))

    def run(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run in a worker and wait."""
        return self.each([partial(function, *args, **kwargs)])[0]

    def each(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """Run all and wait: results in order, or the first exception (in order) after every call has ended."""
        return self.gather([self._submit(call) for call in calls])

    def gather(self, futures: Sequence[Future[R]]) -> list[R]:
        """All results in order. The first exception is raised after every future has ended, so that no worker still
        writes when the caller goes on. Raises Stopping when the workers were closed meanwhile.
        """
        ended = [self._outcome(future) for future in futures]
        lost = [i for i, (error, _) in enumerate(ended) if isinstance(error, BrokenProcessPool)]
        if lost:
            for pool in {self._calls[futures[i]][0] for i in lost}:
                self._discard(pool)
            for i, outcome in zip(lost, self._apart([self._calls[futures[i]][1] for i in lost]), strict=True):
                ended[i] = outcome
        for error, _ in ended:
            if error is not None:
                raise error
        return [result for _, result in ended]

    def close(self) -> None:
        """End all workers, at once: whoever still waits for one gets Stopping."""
        with self._lock:
            self._closed = True
            pools, self._pool = set(self._open), None
        for pool in pools:
            _kill(pool)
            self._discard(pool)

    def _submit(self, call: Callable[[], R]) -> Future[R]:
        while True:
            with self._lock:
                if self._pool is None and not self._closed:
                    self._pool = self._new_pool(self.count)
                pool = self._pool
            if pool is None:
                raise Stopping
            try:
                return self._submit_to(pool, call)
            except BrokenProcessPool:  # broken by somebody's call before this one: take a new one
                self._discard(pool)

    def _submit_to(self, pool: ProcessPoolExecutor, call: Callable[[], R]) -> Future[R]:
        try:
            future = pool.submit(call)
        except BrokenProcessPool:
            raise
        except RuntimeError:  # shut down: by `close`, or by somebody who found it broken
            if self._closed:
                raise Stopping from None
            raise BrokenProcessPool("the pool was replaced") from None
        with self._lock:
            self._calls[future] = (pool, call)
        future.add_done_callback(self._count)
        return future

    def _count(self, _future: Future[Any]) -> None:
        with self._lock:
            self._ended += 1

    def _outcome(self, future: Future[R]) -> tuple[BaseException | None, Any]:
        try:
            error = self._wait(future)
        except CancelledError:
            error = BrokenProcessPool("cancelled with its pool")
        if isinstance(error, BrokenProcessPool) and self._closed:
            raise Stopping
        return error, None if error is not None else future.result()

    def _wait(self, future: Future[R]) -> BaseException | None:
        while True:
            before = self._ended
            try:
                return future.exception(timeout=STALLED_S)
            except TimeoutError:
                if self._ended == before:
                    log("workers_stalled", level=logging.ERROR, seconds=STALLED_S)
                    _kill(self._calls[future][0])

    def _apart(self, calls: Sequence[Callable[[], R]]) -> list[tuple[BaseException | None, Any]]:
        """The same calls in a pool that nobody else uses."""
        log("workers_apart", level=logging.WARNING, count=len(calls))
        with self._lock:
            if self._closed:
                raise Stopping
            pool = self._new_pool(min(self.count, len(calls)))
        try:
            return [self._outcome(future) for future in [self._submit_to(pool, call) for call in calls]]
        finally:
            self._discard(pool)

    def _new_pool(self, count: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(LOADED_FIRST)
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=_start_worker, initargs=(self._memory_bytes,))
        self._open.add(pool)
        return pool

    def _discard(self, pool: ProcessPoolExecutor) -> None:
        """Forget a pool, and wait until its processes are gone: they must not write beside their successors.

        One thread alone shuts a pool down. Two would close its pipes twice, and the second time the number of a pipe
        may be that of another pool's already, which then loses a call and waits for it for ever.
        """
        with self._lock:
            if self._pool is pool:
                self._pool = None
            mine = pool in self._open
            self._open.discard(pool)
            gone = self._gone.setdefault(pool, threading.Event())
        if mine:
            try:
                pool.shutdown(wait=True, cancel_futures=True)
            finally:
                gone.set()
        else:
            gone.wait()


def _kill(pool: ProcessPoolExecutor) -> None:
    for process in list((pool._processes or {}).values()):  # noqa: SLF001 - a pool cannot be asked to
        process.kill()
