"""The running gateway: wired from settings and policies, started, stopped, and how well its parts are."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from gateway.app import gauges
from gateway.app.commitments import CommitmentReports
from gateway.app.http import StatusServer
from gateway.app.keyring import require_keys, ring_of
from gateway.app.message.setup import channels_of
from gateway.app.message.watch import Watch
from gateway.app.parts import Parts
from gateway.app.person.mapping import Mapper
from gateway.app.person.retention import Retention
from gateway.app.person.subjects import Subjects
from gateway.app.person.tables import PeopleTables
from gateway.app.person.wishes import Rights
from gateway.app.policy.approvals import Approvals
from gateway.app.policy.loaded import Policies
from gateway.app.policy.registry import registry_of
from gateway.app.poller import RECONCILE_S, Poller, remove_candidates
from gateway.app.release.references import MODELS
from gateway.app.release.releases import Releasing
from gateway.app.release.sight import require_sight
from gateway.app.steps import StudySteps
from gateway.app.workers import Workers
from gateway.database import Database
from gateway.database.releases import AUDITING
from gateway.errors import EnvironmentFault, Hold, PolicyError, UsageError
from gateway.flow import Engine, Next
from gateway.ledger import Ledger
from gateway.observe import Metrics, log, origin
from gateway.pseudonyms import Keys, master_key
from gateway.receive import Receiver
from gateway.settings import Home, Settings
from gateway.spool import Spool

if TYPE_CHECKING:
    from gateway.app.review.page import ReviewPage
    from gateway.receive.stow import StowReceiver


def wire(home: Home, settings: Settings) -> Parts:
    """Open everything a gateway owns. Raises EnvironmentFault or PolicyError before anything is started."""
    home.require()
    keys = Keys(master_key(home, settings))
    approvals = Approvals(home, settings) if settings.require_approval else None
    policies = Policies(settings.policies, home.policy_snapshots, registry_of(home.root / MODELS), approvals)
    database = Database.in_home(home.database, settings.database_url)
    ring = ring_of(home, keys)
    require_keys(ring, database)
    return Parts(
        home=home,
        settings=settings,
        keys=keys,
        spool=Spool(home.spool),
        database=database,
        ledger=Ledger(home.ledger, keys.ledger),
        metrics=Metrics(),
        policies=policies,
        workers=Workers(settings.workers),
        mapper=Mapper(keys, ring, database, PeopleTables(settings.policies, keys, settings.lookup_urls)),
    )


class Gateway:
    """Receiver, engine, poller, watch and status page over one home."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self.parts = wire(home, settings)
        p = self.parts
        self.steps = StudySteps(p)
        self.engine = Engine(
            steps=self.steps,
            pending=self._pending,
            store_url=settings.database_url or f"sqlite:///{home.engine_database}",
            lock=home.engine_lock,
        )
        self.poller = Poller(p, self.engine)
        self.watch = Watch(p, channels_of(settings))
        self.receiver = Receiver(settings=settings, spool=p.spool, database=p.database, keys=p.keys, metrics=p.metrics)
        self.stow = self._stow_receiver()
        self.commitments = CommitmentReports(p) if settings.commitment != "off" else None
        self.review = self._review_page()
        self.status = StatusServer(
            host=settings.http_host,
            port=settings.http_port,
            metrics=p.metrics,
            refresh=self.refresh_metrics,
            healthy=self.healthy,
            checks=self.checks,
        )

    def start(self) -> None:
        """Engine first (it holds the lock on the home), then the sweep, then the doors open.

        Raises EnvironmentFault when the home is taken, a port is in use, the ledger is damaged, or the gate is blind.
        """
        p = self.parts
        try:
            require_sight(p.policies.current.policies.values(), p.workers, p.home.root)
            self.engine.start(workers=p.settings.workers)
            Releasing(p).take_in()
            p.ledger.append("started", f"started/{time.time_ns()}", policies=self._policy_digests())
            self._after_restore()
            swept = p.spool.sweep(p.database.spooled_names())
            remove_candidates(p)
            self.receiver.start()
            if self.stow is not None:
                self.stow.start()
            if self.commitments is not None:
                self.commitments.start()
            self.poller.start()
            self.watch.start()
            if self.review is not None:
                self.review.start()
            self.status.start()
        except BaseException:
            self.stop()
            raise
        log("started", port=self.receiver.port, home=str(p.home.root), workers=p.settings.workers, count=swept)

    def stop(self) -> None:
        """Close the doors, let running legs end, let go of everything. What is unfinished goes on at the next start."""
        if self.review is not None:
            self.review.stop()
        self.receiver.stop()
        if self.stow is not None:
            self.stow.stop()
        if self.commitments is not None:
            self.commitments.stop()
        self.poller.stop()
        self.watch.stop()
        self.engine.stop()
        self.parts.workers.close()
        self.status.stop()
        self.parts.database.close()
        log("stopped")

    def _after_restore(self) -> None:
        """Before anything is taken in: what people asked for and what was removed holds also in a restored home. The
        spool's sweep, which comes next, sees to originals.
        """
        p = self.parts
        Rights(p.database, p.ledger, p.keys).restore_from_ledger()
        Retention(p).forget_restored()
        try:
            Subjects(p).enforce(everything=True)
        except Hold as error:  # a merge table cannot be read: intake holds for that as well
            log("not_enforced", level=logging.WARNING, reason=error.reason, at=error.at)

    def reload_policies(self) -> bool:
        """Load policies, routes and destinations again (SIGHUP). Faults leave the present ones in force."""
        before = self.parts.policies.current
        try:
            self.parts.policies.reload()
            require_sight(self.parts.policies.current.policies.values(), self.parts.workers, self.parts.home.root)
        except EnvironmentFault as error:
            self.parts.policies.current = before
            log("policies_refused", level=logging.ERROR, exception=origin(error))
            return False
        except UsageError as error:
            faults = len(error.faults) if isinstance(error, PolicyError) else 1
            log("policies_refused", level=logging.ERROR, count=faults)
            return False
        self.parts.ledger.append("policies", f"policies/{time.time_ns()}", policies=self._policy_digests())
        log("policies_loaded", count=len(self.parts.policies.current.policies))
        return True

    def healthy(self) -> bool:
        """False when a thread without which nothing moves has died: the process should end and be started again."""
        pages = all(page is None or page.alive for page in (self.review, self.stow, self.commitments))
        return self.poller.alive and self.engine.alive and self.receiver.alive and self.watch.alive and pages

    def checks(self) -> Mapping[str, bool]:
        """Which part is well; ready when all are. Trouble in here is the machine's, and a restart would not mend it."""
        p = self.parts
        return {
            "receiver": self.receiver.alive,
            "engine": self.engine.alive,
            "poller": self.poller.succeeding,
            "watch": self.watch.alive,
            "disk": _well(lambda: p.spool.free_bytes() >= p.settings.min_free_bytes),
            "database": _well(lambda: p.database.study("", 0) is None),
            "ledger": _well(lambda: len(p.ledger) > 0),
        }

    def refresh_metrics(self) -> None:
        """Gauges that are read off the tables when somebody asks."""
        gauges.refresh(self.parts, self.checks())

    def idle(self) -> bool:
        """True when nothing waits for the machine: no open or unrouted study, no unfinished job, intent or audit."""
        database = self.parts.database
        return not (
            database.studies_in("received")
            or database.unfinished_jobs()
            or database.open_intents()
            or database.releases_in(AUDITING)
        )

    def _stow_receiver(self) -> StowReceiver | None:
        """DICOMweb, where a port is set for it."""
        p = self.parts
        if p.settings.stow_port is None:
            return None
        from gateway.receive.stow import StowReceiver  # a web framework that not every gateway needs

        return StowReceiver(settings=p.settings, spool=p.spool, database=p.database, keys=p.keys, metrics=p.metrics)

    def _review_page(self) -> ReviewPage | None:
        """The page for held studies, where a port is set for it."""
        if self.parts.settings.review_port is None:
            return None
        from gateway.app.review.page import ReviewPage  # a web framework that not every gateway needs

        return ReviewPage(self.parts)

    def _pending(self) -> list[Next]:
        """At the start all that is due; later only what has been due for a while, for the engine has the rest."""
        return self.steps.pending(older_than_s=RECONCILE_S if self.poller.alive else 0.0)

    def _policy_digests(self) -> dict[str, str]:
        return {name: policy.digest for name, policy in self.parts.policies.current.policies.items()}


def _well(look: Callable[[], bool]) -> bool:
    try:
        return look()
    except (SQLAlchemyError, OSError, EnvironmentFault):
        return False
