"""The poller: closes quiet studies, hands intents and retention to the engine, revives what was lost.

Among several processes the one that leads does that, and takes up the work of the dead; the others look after
themselves.
"""

from __future__ import annotations

import logging
import threading
import time

from gateway.app.backup.contents import clear_stage
from gateway.app.course import decide_leg
from gateway.app.housekeeping import Leftovers, remove_candidates, take_over
from gateway.app.lease import BEAT_S, Lease
from gateway.app.parts import Parts
from gateway.app.release.closing import Closing
from gateway.errors import Stopping
from gateway.flow import Engine, Leg, Next
from gateway.flow.pause import Pause
from gateway.observe import log, origin

RECONCILE_S = 30.0
RETENTION_S = 3600.0
STALLED_S = 30.0  # silent for this long is not healthy
OUTAGE_S = 120.0  # after an outage of the database the engine still sleeps for up to 90 s before it asks again


class Poller:
    """One thread. It does nothing that takes long: what does is a leg. `lease` is None for the only process."""

    def __init__(self, parts: Parts, engine: Engine, lease: Lease | None = None) -> None:
        self._parts = parts
        self._engine = engine
        self._lease = lease
        self._leading = lease is None
        self._taking_over = False  # which may take minutes, and nothing is wrong then
        self._failing = False
        self._leftovers = Leftovers()
        self._pause = Pause(parts.home.engine_lock)
        self._rescued_at = float("-inf")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)
        # Monotonic: a clock that is set must not make us look dead.
        self._moved_at = self._succeeded_at = self._reconciled_at = time.monotonic()
        self._handed_on = 0  # serial of the last intent that became a leg
        self._retained_hour = 0

    def start(self) -> None:
        self._moved_at = self._succeeded_at = self._reconciled_at = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    @property
    def alive(self) -> bool:
        """The thread is there and moves on, whether it succeeds or not. A turn may take long, when the studies of a
        night are complete at once; and it may wait for a database that is away: a restart would not bring it back.
        """
        waits = self._lease is not None and self._lease.heard_s < OUTAGE_S
        return self._thread.is_alive() and (not self._stalled or waits)

    @property
    def succeeding(self) -> bool:
        """It moves on, and came round without trouble not long ago or has had none since."""
        well = not self._failing or time.monotonic() - self._succeeded_at < STALLED_S
        return self.alive and well and not self._stalled

    @property
    def _stalled(self) -> bool:
        return time.monotonic() - self._moved_at >= STALLED_S and not self._taking_over

    def _move_on(self) -> None:
        """Each piece of a turn tells that it is done."""
        self._moved_at = time.monotonic()

    def _run(self) -> None:
        while not self._stopping.wait(self._parts.settings.poll_s):
            self._move_on()
            try:
                self.once()
                self._succeeded_at, self._failing = time.monotonic(), False
            except Stopping:  # taken for dead, and noticed here before the lease did: the process ends
                if self._lease is not None:
                    self._lease.lost = True
                return
            except Exception as error:  # noqa: BLE001 - thread top: the next turn tries again, /readyz tells of it
                self._failing = True
                log("poll_failed", level=logging.ERROR, exception=origin(error))

    def once(self) -> None:
        """One turn."""
        due = time.monotonic() - self._reconciled_at > RECONCILE_S
        if due:
            self._reconciled_at = time.monotonic()
        if self._lease is not None and not self._leads(self._lease):
            if due:
                self._engine.look_after()
            return
        self._close_studies()
        for intent in self._parts.database.open_intents(after=self._handed_on):
            self._engine.enqueue(decide_leg(intent.serial))
            self._handed_on = intent.serial
            self._move_on()
        self._retain()
        self._close_releases()
        if due:
            for piece in (self._engine.reconcile, self._engine.sweep, self._clean):
                self._move_on()
                piece()

    def _clean(self) -> None:
        clear_stage(self._parts.home)
        with self._pause.working():
            remove_candidates(self._parts)
        self._leftovers.look(self._parts)

    def _leads(self, lease: Lease) -> bool:
        """Whether it is this process that leads. It begins by looking at everything that the one before had in hand."""
        if not lease.leads():
            self._leading = False
            return False
        if not self._leading:
            log("leading")
            self._handed_on = self._retained_hour = 0
            self._taking_over = True
            try:
                with self._pause.working():
                    take_over(self._parts)
                    remove_candidates(self._parts)
                self._engine.reconcile()
            finally:
                self._moved_at, self._taking_over = time.monotonic(), False
            self._leading = True
        if time.monotonic() - self._rescued_at >= BEAT_S:
            self._rescued_at = time.monotonic()
            self._engine.rescue(lambda: [row.executor for row in self._parts.database.processes()])
        return True

    def _close_studies(self) -> None:
        p = self._parts
        closed = p.database.close_complete(
            quiet_s=p.settings.quiet_s,
            forced_s=p.settings.forced_complete_s,
            use_expected=p.settings.use_expected_count,
        )
        for study_key, generation in closed:
            study = p.database.study(study_key, generation)
            p.metrics.studies_closed.inc()
            log("study_complete", study=study_key, generation=generation)
            self._engine.enqueue(Next(Leg.INTAKE, study_key, study.round if study else 1, 0, generation))
            self._move_on()

    def _close_releases(self) -> None:
        for leg in Closing(self._parts).close_due(time.time()):
            self._engine.enqueue(leg)

    def _retain(self) -> None:
        hour = int(time.time() // RETENTION_S)
        if hour != self._retained_hour:
            self._engine.enqueue(Next(Leg.RETAIN, str(hour), 1))
            self._retained_hour = hour
