"""The running gateway: wired from settings and policies, started, stopped, and how well its parts are."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from gateway.app import gauges
from gateway.app.backload.runner import Backloading
from gateway.app.commitments import CommitmentReports
from gateway.app.housekeeping import remove_candidates, take_over
from gateway.app.http import StatusServer
from gateway.app.keyring import require_keys, ring_of
from gateway.app.lease import Lease
from gateway.app.message.setup import channels_of
from gateway.app.message.watch import Watch
from gateway.app.parts import Parts
from gateway.app.person.mapping import Mapper
from gateway.app.person.tables import PeopleTables
from gateway.app.policy.approvals import Approvals
from gateway.app.policy.loaded import Policies
from gateway.app.policy.registry import registry_of
from gateway.app.poller import RECONCILE_S, Poller
from gateway.app.release.references import MODELS
from gateway.app.release.sight import require_sight
from gateway.app.roles import Served, queues_of
from gateway.app.steps import StudySteps
from gateway.app.workers import Workers
from gateway.database import Database
from gateway.database.releases import AUDITING, ESCALATING
from gateway.errors import EnvironmentFault, PolicyError, Stopping, UsageError
from gateway.flow import Engine, Next
from gateway.ledger import Ledger
from gateway.observe import log, origin
from gateway.observe.metrics import Metrics
from gateway.process_settings import ALL, RECEIVE, WEB, WORK_CPU, WORK_GPU
from gateway.pseudonyms import Keys, master_key
from gateway.receive import receiver_of
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
        workers=Workers(settings.workers, memory_bytes=settings.worker_memory_bytes),
        mapper=Mapper(keys, ring, database, PeopleTables(settings.policies, keys, settings.lookup_urls)),
    )


class Gateway:
    """Receiver, engine, poller, watch, review page and status over one home: all of it, or what the roles name.

    Among several processes (PostgreSQL) a lease says who is there and who leads.
    """

    def __init__(self, home: Home, settings: Settings) -> None:
        if WEB in settings.roles and settings.review_port is None:
            raise UsageError("the role web is the review page, and it has no port; set DEID_REVIEW_PORT")
        self.parts = wire(home, settings)
        p = self.parts
        self.lease = Lease(Database(settings.database_url), home, settings.roles) if settings.clustered else None
        leads = self.lease.leads if self.lease is not None else lambda: True
        self.steps = StudySteps(p)
        self.works = settings.plays(WORK_CPU, WORK_GPU)
        self.engine = Engine(
            steps=self.steps,
            pending=self._pending,
            store_url=settings.database_url or f"sqlite:///{home.engine_database}",
            lock=home.engine_lock,
            executor_id=self.lease.executor if self.lease is not None else "",
            queues=queues_of(settings),
        )
        self.poller = Poller(p, self.engine, self.lease)
        self.watch = Watch(p, channels_of(settings), leads)
        self.receiver = receiver_of(
            settings=settings, spool=p.spool, database=p.database, keys=p.keys, metrics=p.metrics
        )
        self.stow = self._stow_receiver()
        self.commitments = CommitmentReports(p, leads) if settings.commitment != "off" else None
        self.backload = Backloading(p, leads)
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
        """Engine first (it holds the lock on the home), then what a restart asks for, then the doors open.

        Raises EnvironmentFault when the home is taken, a port is in use, the ledger is damaged, or the gate is blind.
        """
        p, swept = self.parts, 0
        try:
            if self.works:
                self.engine.claim()
                require_sight(p.policies.current.policies.values(), p.workers, p.home.root)
            if self.lease is not None:
                self.lease.take()
                p.database.executor = self.lease.executor
            if self.works:
                self.engine.start(workers=p.settings.workers)
            roles = {} if p.settings.roles == (ALL,) else {"roles": list(p.settings.roles)}
            p.ledger.append("started", f"started/{time.time_ns()}", policies=self._policy_digests(), **roles)
            if self.lease is None:  # else the one that leads does it, beside receivers that are at work
                take_over(p)
                swept = p.spool.sweep(p.database.spooled_names())
                remove_candidates(p)
            for served in self._served().values():
                served.start()
            self.status.start()
        except BaseException:
            self.stop()
            raise
        log("started", port=self.receiver.port, home=str(p.home.root), workers=p.settings.workers, count=swept)

    def stop(self) -> None:
        """Close the doors, let running legs end, let go of everything. What is unfinished goes on at the next start."""
        if self.lease is not None and self.lease.lost:  # others have this work: nothing of it is written or begun here
            self.parts.workers.close()
            self.engine.stop()
        for served in self._served().values():
            served.stop()
        self.engine.stop()
        self.parts.workers.close()
        self.status.stop()
        if self.lease is not None:
            self.lease.release()
        self.parts.database.close()
        log("stopped")

    def _served(self) -> dict[str, Served]:
        """The parts that this process runs, in the order of their starts."""
        of_roles: tuple[tuple[str, tuple[str, ...], Served | None], ...] = (
            ("receiver", (RECEIVE,), self.receiver),
            ("stow", (RECEIVE,), self.stow),
            ("commitments", (WORK_CPU,), self.commitments),
            ("backload", (WORK_CPU,), self.backload),
            ("poller", (WORK_CPU, WORK_GPU), self.poller),
            ("watch", (WORK_CPU,), self.watch),
            ("review", (WEB,), self.review),
        )
        plays = self.parts.settings.plays
        return {name: part for name, roles, part in of_roles if part is not None and plays(*roles)}

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

    def dead(self) -> list[str]:
        """Parts without which nothing moves and whose threads have ended or hang: the process should end, and begin
        again.
        """
        alive = {name: served.alive for name, served in self._served().items()}
        if self.works:
            alive["engine"] = self.engine.alive
        if self.lease is not None:
            alive["lease"] = self.lease.alive
        return [name for name, well in alive.items() if not well]

    def healthy(self) -> bool:
        """False when a restart would help."""
        return not self.dead()

    def checks(self) -> Mapping[str, bool]:
        """Which part is well; ready when all are. Trouble in here is the machine's, and a restart would not mend it."""
        p = self.parts
        parts = {name: served.alive for name, served in self._served().items()}
        if "receiver" in parts:
            parts["receiver"] = self.receiver.ready
        if self.works:
            parts |= {"engine": self.engine.alive, "poller": self.poller.succeeding}
        if self.lease is not None:
            parts["lease"] = self.lease.alive
        return {
            **parts,
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
            or database.releases_in(AUDITING, ESCALATING)
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
    except (SQLAlchemyError, OSError, EnvironmentFault, Stopping):
        return False
