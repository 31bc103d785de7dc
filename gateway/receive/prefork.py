"""Receiving in several processes: each accepts from the same bound ports, and one that ends is started again.

One listening socket, because the kernel then hands connections to whoever has waited longest; with SO_REUSEPORT a few
associations may all meet one process. The ports stay bound here, so nobody is turned away while a process starts.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import os
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from gateway.database import Database
from gateway.errors import EnvironmentFault
from gateway.observe import log, origin
from gateway.observe.metrics import Labels, Metrics, Totals
from gateway.pseudonyms import Keys
from gateway.receive.listening import Listeners, listen
from gateway.receive.places import Places
from gateway.receive.process import STOP, TOTALS, Post, run
from gateway.receive.receiver import STOP_GRACE_S
from gateway.settings import Settings
from gateway.spool import Spool

START_S = 60.0
LOOK_EVERY_S = 1.0  # also how much of what it counted is lost with a process that is killed
ANSWER_S = 2.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0  # before a process is started again; doubles while it does not live longer
GAUGES = frozenset({"deid_open_associations", "deid_receiver_processes"})  # how things are now: they end with a process


class _Seat:
    """One of the processes, and those that sat here before it."""

    def __init__(self) -> None:
        self.process: BaseProcess | None = None
        self.pipe: Connection | None = None
        self.lock = threading.Lock()  # one question at a time
        self.totals: Totals = {}
        self.ready = False
        self.began_at = 0.0
        self.pause_s = FIRST_PAUSE_S

    def hear(self, *, wait_s: float) -> None:
        """Take what the process has said of itself, waiting for the first of it. Raises EOFError, OSError."""
        while self.pipe is not None and self.pipe.poll(wait_s):
            self.totals, self.ready, wait_s = self.pipe.recv(), True, 0.0

    def ask(self) -> None:
        """Bring `totals` up to date; they stay as they are when the process does not answer."""
        with self.lock, suppress(EOFError, OSError):
            if self.ready and self.pipe is not None:
                self.pipe.send(TOTALS)
                self.hear(wait_s=ANSWER_S)


class Receivers:
    """As many receiver processes as the settings say. `start` and `stop` from one thread, as of `Receiver`."""

    def __init__(self, *, settings: Settings, spool: Spool, database: Database, keys: Keys, metrics: Metrics) -> None:
        self._settings, self._spool, self._database, self._keys = settings, spool, database, keys
        self._metrics = metrics
        self._seats = [_Seat() for _ in range(settings.receivers)]
        self._past: dict[str, dict[tuple[str, Labels], float]] = {}
        self._lock = threading.Lock()
        self._places: Places | None = None
        self._listeners = Listeners(None, None)
        self._stopping = threading.Event()
        self._all_ready = threading.Event()
        self._supervisor: threading.Thread | None = None
        self.port = self.tls_port = 0

    def start(self) -> None:
        """Bind the ports and start the processes; returns once all of them accept. Raises EnvironmentFault when a port
        cannot be had, the spool not be made, the TLS files not be used, or a process does not come up.
        """
        self._listeners = listen(self._settings, self._spool)
        self.port, self.tls_port = self._listeners.port, self._listeners.tls_port
        self._places = Places(self._settings)
        self._metrics.elsewhere = self._totals
        atexit.register(self._kill)  # else whoever ends without `stop` waits for them for ever
        # PR_SET_PDEATHSIG means the thread that started a process: this one stays as long as they do.
        self._supervisor = threading.Thread(target=self._supervise, name="receivers", daemon=True)
        self._supervisor.start()
        if not self._all_ready.wait(START_S):
            self.stop()
            raise EnvironmentFault("the receiver processes do not start; the log says why (receiver_failed)")

    @property
    def alive(self) -> bool:
        """True while processes that end are started again."""
        return self._supervisor is not None and self._supervisor.is_alive()

    @property
    def ready(self) -> bool:
        """True while every one of them accepts."""
        return self.alive and all(seat.ready for seat in self._seats)

    def pids(self) -> list[int]:
        """Process ids of those that run now."""
        running = [process for seat in self._seats if (process := seat.process) is not None]
        return [process.pid for process in running if process.pid is not None]

    def stop(self) -> None:
        """Stop accepting, let running C-STOREs be answered, at the longest for STOP_GRACE_S, and end the processes."""
        self._stopping.set()
        if self._supervisor is not None:
            self._supervisor.join()
            self._supervisor = None
            atexit.unregister(self._kill)
            log("receiver_stopped", port=self.port or self.tls_port)
        self._listeners.close()
        self._listeners = Listeners(None, None)

    def _supervise(self) -> None:
        for seat in self._seats:
            self._begin(seat)
        asked_at = time.monotonic()
        while not self._stopping.is_set():
            awaited = [waited for seat in self._seats for waited in self._awaited(seat)]
            wait(awaited, LOOK_EVERY_S / 4)
            for seat in self._seats:
                self._look_at(seat)
            if self.ready:
                self._all_ready.set()
            if time.monotonic() - asked_at >= LOOK_EVERY_S:
                self._totals()
                asked_at = time.monotonic()
        self._end_all()

    @staticmethod
    def _awaited(seat: _Seat) -> list[Connection | int]:
        """What makes a seat worth a look: its process ended, or says that it is ready."""
        if seat.process is None:
            return []
        return [seat.process.sentinel] if seat.ready or seat.pipe is None else [seat.process.sentinel, seat.pipe]

    def _look_at(self, seat: _Seat) -> None:
        now = time.monotonic()
        if seat.process is None:
            if now - seat.began_at >= seat.pause_s:
                self._begin(seat)
        elif not seat.process.is_alive():
            self._bury(seat)
        elif not seat.ready:
            with seat.lock, suppress(EOFError, OSError):
                seat.hear(wait_s=0.0)

    def _begin(self, seat: _Seat) -> None:
        spawning = multiprocessing.get_context("spawn")  # no inherited locks
        ours, theirs = spawning.Pipe()
        places = self._places
        assert places is not None  # noqa: S101 - made before the supervisor
        post = Post(
            os.getpid(), self._settings, self._spool.root, self._database.url, self._keys, self._listeners, places
        )
        process = spawning.Process(target=run, args=(post, theirs), name="receiver", daemon=True)
        seat.began_at = time.monotonic()
        try:
            process.start()
        except OSError as error:  # the machine gives no more processes now
            log("receiver_failed", level=logging.ERROR, origin=origin(error))
            seat.pause_s = min(LONGEST_PAUSE_S, 2 * seat.pause_s)
            ours.close()
        else:
            seat.process, seat.pipe = process, ours
        finally:
            theirs.close()

    def _bury(self, seat: _Seat) -> None:
        """Its process ended by itself: keep what it had counted, and have another one started."""
        process = seat.process
        assert process is not None  # noqa: S101 - only who has one is buried
        lived_s = time.monotonic() - seat.began_at
        seat.pause_s = FIRST_PAUSE_S if lived_s > LONGEST_PAUSE_S else min(LONGEST_PAUSE_S, 2 * seat.pause_s)
        log("receiver_lost", level=logging.ERROR, status=process.exitcode, seconds=round(lived_s, 1))
        self._metrics.receivers_lost.inc()
        self._leave(seat)
        seat.began_at = time.monotonic()

    def _leave(self, seat: _Seat) -> None:
        with seat.lock:
            with suppress(EOFError, OSError):
                seat.hear(wait_s=0.0)
            with self._lock:
                for metric in seat.totals.keys() - GAUGES:
                    past = self._past.setdefault(metric, {})
                    for sample, value in seat.totals[metric].items():
                        past[sample] = past.get(sample, 0.0) + value
                seat.totals = {}
            seat.ready, seat.process = False, None
            if seat.pipe is not None:
                seat.pipe.close()
                seat.pipe = None

    def _totals(self) -> list[Totals]:
        for seat in self._seats:
            seat.ask()
        with self._lock:  # what was counted is with a process or with those that have ended, never with both
            past = {metric: dict(samples) for metric, samples in self._past.items()}
            return [past, *(seat.totals for seat in self._seats)]

    def _end_all(self) -> None:
        for seat in self._seats:
            with seat.lock, suppress(OSError):
                if seat.pipe is not None:
                    seat.pipe.send(STOP)
        self._listeners.shut()
        until = time.monotonic() + 2 * STOP_GRACE_S + ANSWER_S
        for seat in self._seats:
            if seat.process is not None:
                seat.process.join(max(0.0, until - time.monotonic()))
        self._kill()
        for seat in self._seats:
            self._leave(seat)

    def _kill(self) -> None:
        for seat in self._seats:
            if seat.process is not None and seat.process.is_alive():
                seat.process.kill()
                seat.process.join()
