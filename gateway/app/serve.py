"""The running gateway: wired from settings and policies, started, polled, stopped."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Mapping

from sqlalchemy.exc import DBAPIError

from gateway.app.decisions import Decisions
from gateway.app.http import StatusServer
from gateway.app.parts import Parts
from gateway.app.policies import Policies
from gateway.app.steps import StudySteps
from gateway.app.workers import Workers
from gateway.database import Database
from gateway.errors import GatewayError, PolicyError
from gateway.flow import Engine, Leg, Next
from gateway.ledger import Ledger
from gateway.observe import Metrics, log, origin
from gateway.pseudonyms import Keys, master_key
from gateway.receive import Receiver
from gateway.settings import Home, Settings
from gateway.spool import Spool
from gateway.study import FINAL_STATES, State

RECONCILE_S = 30.0
STALLED_S = 30.0  # a poller silent for this long is not healthy


def wire(home: Home, settings: Settings) -> Parts:
    """Open everything a gateway owns. Raises EnvironmentFault or PolicyError before anything is started."""
    home.require()
    keys = Keys(master_key(home, settings))
    policies = Policies(settings.policies, home.policy_snapshots)
    return Parts(
        home=home,
        settings=settings,
        keys=keys,
        spool=Spool(home.spool),
        database=Database.in_home(home.database, settings.database_url),
        ledger=Ledger(home.ledger, keys.ledger),
        metrics=Metrics(),
        policies=policies,
        workers=Workers(settings.workers),
    )


class Gateway:
    """Receiver, engine, poller and status page over one home."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self.parts = wire(home, settings)
        p = self.parts
        self.steps = StudySteps(p)
        self.engine = Engine(
            steps=self.steps,
            pending=lambda: self.steps.pending(older_than_s=0.0 if not self._polled_at else RECONCILE_S),
            store_url=settings.database_url or f"sqlite:///{home.engine_database}",
            lock=home.engine_lock,
        )
        self.decisions = Decisions(p, self.steps, self.engine.enqueue)
        self.receiver = Receiver(settings=settings, spool=p.spool, database=p.database, keys=p.keys, metrics=p.metrics)
        self.status = StatusServer(
            host=settings.http_host,
            port=settings.http_port,
            metrics=p.metrics,
            refresh=self.refresh_metrics,
            checks=self.checks,
        )
        self._stopping = threading.Event()
        self._polled_at = 0.0
        self._reconciled_at = 0.0
        self._poller = threading.Thread(target=self._poll, name="poller", daemon=True)

    def start(self) -> None:
        """Engine first (it holds the lock on the home), then the sweep, then the doors open.

        Raises EnvironmentFault when the home is taken, a port is in use, or the ledger is damaged.
        """
        p = self.parts
        self.engine.start(workers=p.settings.workers)
        try:
            p.ledger.append("started", f"started/{time.time_ns()}", policies=self._policy_digests())
            swept = p.spool.sweep(p.database.spooled_names())
            self.receiver.start()
            self.status.start()
        except BaseException:
            self.stop()
            raise
        self._poller.start()
        log("started", port=self.receiver.port, home=str(p.home.root), workers=p.settings.workers, count=swept)

    def stop(self) -> None:
        """Close the doors, let running legs end, let go of everything. What is unfinished goes on at the next start."""
        self._stopping.set()
        self.receiver.stop()
        if self._poller.is_alive():
            self._poller.join(timeout=10)
        self.engine.stop()
        self.parts.workers.close()
        self.status.stop()
        self.parts.database.close()
        log("stopped")

    def reload_policies(self) -> bool:
        """Load policies, routes and destinations again (SIGHUP). Faults leave the present ones in force."""
        try:
            self.parts.policies.reload()
        except PolicyError as error:
            log("policies_refused", level=logging.ERROR, count=len(error.faults))
            return False
        self.parts.ledger.append("policies", f"policies/{time.time_ns()}", policies=self._policy_digests())
        log("policies_loaded", count=len(self.parts.policies.current.policies))
        return True

    def healthy(self) -> bool:
        """False when the poller has died: nothing would move any more, so the process should end and be restarted."""
        return self._poller.is_alive()

    def checks(self) -> Mapping[str, bool]:
        """Which part is well; for /readyz and /healthz."""
        p = self.parts
        return {
            "engine": self.engine.alive,
            "poller": time.time() - self._polled_at < STALLED_S,
            "disk": p.spool.free_bytes() >= p.settings.min_free_bytes,
        }

    def refresh_metrics(self) -> None:
        """Gauges that are read off the tables when somebody asks."""
        p = self.parts
        p.metrics.jobs.clear()
        for (state, reason), count in p.database.count_states().items():
            p.metrics.jobs.labels(state, reason).set(count)
        unfinished = p.database.unfinished_jobs()
        p.metrics.queue_depth.set(len(unfinished))
        p.metrics.oldest_seconds.set(time.time() - min((j.created_at for j in unfinished), default=time.time()))
        p.metrics.disk_free_bytes.set(p.spool.free_bytes())
        p.metrics.ledger_lines.set(len(p.ledger))

    def idle(self) -> bool:
        """True when nothing waits for the machine: no open study, no unrouted one, no unfinished job, no intent."""
        database = self.parts.database
        return not (database.studies_in("received") or database.unfinished_jobs() or database.open_intents())

    def _poll(self) -> None:
        """Thread top: closes quiet studies, carries out intents, revives what was lost."""
        settings = self.parts.settings
        while not self._stopping.wait(settings.poll_s):
            try:
                self._poll_once()
                self._polled_at = time.time()
            except (GatewayError, DBAPIError, OSError) as error:
                log("poll_failed", level=logging.ERROR, exception=origin(error))  # healthz turns red if it stays so

    def _poll_once(self) -> None:
        p = self.parts
        closed = p.database.close_complete(
            quiet_s=p.settings.quiet_s,
            forced_s=p.settings.forced_complete_s,
            use_expected=p.settings.use_expected_count,
        )
        for study_key, generation in closed:
            study = p.database.study(study_key, generation)
            p.metrics.studies_closed.inc()
            log("study_complete", study=study_key, generation=generation)
            self.engine.enqueue(Next(Leg.INTAKE, study_key, study.round if study else 1, 0, generation))
        self.decisions.apply_all()
        if time.time() - self._reconciled_at > RECONCILE_S:
            self._reconciled_at = time.time()
            self.engine.reconcile()
            self.engine.sweep()
            self._remove_candidates()

    def _remove_candidates(self) -> None:
        """Candidates of jobs that will never need them again; originals, key and policy make them anew."""
        gone = FINAL_STATES - {State.HELD}
        for folder in self.parts.home.work.iterdir():
            job = self.parts.database.job(folder.name)
            if job is None or job.state in gone:
                shutil.rmtree(folder)

    def _policy_digests(self) -> dict[str, str]:
        return {name: policy.digest for name, policy in self.parts.policies.current.policies.items()}
