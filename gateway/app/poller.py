"""The poller: closes quiet studies, hands intents and retention to the engine, revives what was lost."""

from __future__ import annotations

import logging
import shutil
import threading
import time

from gateway.app.course import decide_leg
from gateway.app.parts import Parts
from gateway.app.release.releases import Releasing
from gateway.flow import Engine, Leg, Next
from gateway.observe import log, origin
from gateway.study import FINAL_STATES, State

RECONCILE_S = 30.0
RETENTION_S = 3600.0
NIGHT_S = 24 * 3600.0
STALLED_S = 30.0  # silent for this long is not healthy


class Poller:
    """One thread. It does nothing that takes long: what does is a leg."""

    def __init__(self, parts: Parts, engine: Engine) -> None:
        self._parts = parts
        self._engine = engine
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)
        # Monotonic: a clock that is set must not make us look dead.
        self._turned_at = self._succeeded_at = self._reconciled_at = time.monotonic()
        self._handed_on = 0  # serial of the last intent that became a leg
        self._retained_hour = 0
        self._closed_night = 0

    def start(self) -> None:
        self._turned_at = self._succeeded_at = self._reconciled_at = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    @property
    def alive(self) -> bool:
        """The thread is there and comes round, whether it succeeds or not."""
        return self._thread.is_alive() and time.monotonic() - self._turned_at < STALLED_S

    @property
    def succeeding(self) -> bool:
        """It came round without trouble not long ago."""
        return self.alive and time.monotonic() - self._succeeded_at < STALLED_S

    def _run(self) -> None:
        while not self._stopping.wait(self._parts.settings.poll_s):
            self._turned_at = time.monotonic()
            try:
                self.once()
                self._succeeded_at = time.monotonic()
            except Exception as error:  # noqa: BLE001 - thread top: the next turn tries again, /readyz tells of it
                log("poll_failed", level=logging.ERROR, exception=origin(error))

    def once(self) -> None:
        """One turn."""
        self._close_studies()
        for intent in self._parts.database.open_intents(after=self._handed_on):
            self._engine.enqueue(decide_leg(intent.serial))
            self._handed_on = intent.serial
        self._retain()
        self._close_releases()
        if time.monotonic() - self._reconciled_at > RECONCILE_S:
            self._reconciled_at = time.monotonic()
            self._engine.reconcile()
            self._engine.sweep()
            remove_candidates(self._parts)

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

    def _close_releases(self) -> None:
        night = int(time.time() // NIGHT_S)
        if night != self._closed_night:
            for leg in Releasing(self._parts).close_tonight(time.time()):
                self._engine.enqueue(leg)
            self._closed_night = night

    def _retain(self) -> None:
        hour = int(time.time() // RETENTION_S)
        if hour != self._retained_hour:
            self._engine.enqueue(Next(Leg.RETAIN, str(hour), 1))
            self._retained_hour = hour


def remove_candidates(parts: Parts) -> None:
    """Candidates of jobs that will never need them again; originals, key and policy make them anew."""
    gone = FINAL_STATES - {State.HELD}
    for folder in parts.home.work.iterdir():
        job = parts.database.job(folder.name)
        if job is None or job.state in gone:
            shutil.rmtree(folder)
