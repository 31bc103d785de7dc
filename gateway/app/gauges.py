"""Gauges that are read off the tables when somebody asks for /metrics."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from sqlalchemy.exc import SQLAlchemyError

from gateway.app.message import conditions
from gateway.app.parts import Parts
from gateway.app.release import gauges as release_gauges
from gateway.app.routing.openings import OPEN, Openings
from gateway.database.backloads import PAUSED, RUNNING
from gateway.errors import EnvironmentFault
from gateway.observe import log, origin
from gateway.process_settings import ALL, ROLES
from gateway.study import State

NOT_KNOWN = float("nan")
TROUBLE = (SQLAlchemyError, OSError, EnvironmentFault)


def refresh(parts: Parts, checks: Mapping[str, bool] | None = None) -> None:
    """Set every gauge. What cannot be read now is not a number; the counters are told all the same.

    `checks` says which part of a running gateway is well.
    """
    for set_some, forget in (
        (_disk, _no_disk),
        (_count, _no_count),
        (_destinations, _no_destinations),
        (_backloads, lambda one: one.metrics.backload_items.clear()),
        (release_gauges.refresh, release_gauges.forget),
        (_processes, lambda one: one.metrics.processes.clear()),
        (_certificates, lambda one: one.metrics.expires.clear()),
        (_ledger, _no_ledger),
    ):
        _try(parts, set_some, forget)
    for part, well in (checks or {}).items():
        parts.metrics.part_ok.labels(part).set(well)


def _try(parts: Parts, set_some: Callable[[Parts], None], forget: Callable[[Parts], None]) -> None:
    try:
        set_some(parts)
    except TROUBLE as error:
        forget(parts)
        log("gauge_failed", level=logging.WARNING, exception=origin(error))


def _disk(parts: Parts) -> None:
    found, metrics = conditions.disk(parts), parts.metrics
    metrics.disk_free_bytes.set(found.free)
    metrics.disk_total_bytes.set(found.total)
    metrics.disk_least_bytes.set(found.least)


def _no_disk(parts: Parts) -> None:
    parts.metrics.disk_free_bytes.set(NOT_KNOWN)
    parts.metrics.disk_total_bytes.set(NOT_KNOWN)


def _count(parts: Parts) -> None:
    database, metrics = parts.database, parts.metrics
    states, studies = database.count_states(), database.count_studies("received", "held")
    unfinished = database.unfinished_jobs()
    openings = Openings(database, parts.policies.current.destinations)
    at_work = [job for job in unfinished if job.state != State.CLEARED or openings.state(job.destination) == OPEN]
    metrics.jobs.clear()
    for (state, reason), count in states.items():
        metrics.jobs.labels(state, reason).set(count)
    metrics.studies.clear()
    for (state, reason), count in studies.items():
        metrics.studies.labels(state, reason).set(count)
    metrics.queue_depth.set(len(unfinished))
    now = time.time()
    metrics.oldest_seconds.set(max(0.0, now - min((job.created_at for job in at_work), default=now)))
    held = [at for at in (database.oldest_study("held"), database.oldest_job(State.HELD)) if at is not None]
    metrics.oldest_held_seconds.set(max(0.0, now - min(held, default=now)))


def _no_count(parts: Parts) -> None:
    metrics = parts.metrics
    metrics.jobs.clear()
    metrics.studies.clear()
    metrics.queue_depth.set(NOT_KNOWN)
    metrics.oldest_seconds.set(NOT_KNOWN)
    metrics.oldest_held_seconds.set(NOT_KNOWN)


def _destinations(parts: Parts) -> None:
    parts.metrics.retrying.clear()
    for destination, (count, _) in conditions.retrying(parts).items():
        parts.metrics.retrying.labels(destination).set(count)
    openings = Openings(parts.database, parts.policies.current.destinations)
    parts.metrics.destination_open.clear()
    parts.metrics.destination_waiting.clear()
    for one in openings.all(parts.database.cleared_by_destination()):
        parts.metrics.destination_open.labels(one.destination).set(one.state == OPEN)
        parts.metrics.destination_waiting.labels(one.destination).set(one.waiting)


def _no_destinations(parts: Parts) -> None:
    for gauge in (parts.metrics.retrying, parts.metrics.destination_open, parts.metrics.destination_waiting):
        gauge.clear()


def _processes(parts: Parts) -> None:
    """Also one that does everything counts for every role."""
    parts.metrics.processes.clear()
    there = [one.roles for one in parts.database.processes()] if parts.settings.clustered else [(ALL,)]
    for role in ROLES:
        parts.metrics.processes.labels(role).set(sum(bool({role, ALL} & set(roles)) for roles in there))


def _backloads(parts: Parts) -> None:
    gauge = parts.metrics.backload_items
    gauge.clear()
    for backload in parts.database.backloads(RUNNING, PAUSED):
        for (kind, state, _), count in parts.database.count_items(backload.serial).items():
            gauge.labels(backload.source, kind, state).inc(count)


def _certificates(parts: Parts) -> None:
    parts.metrics.expires.clear()
    for what, end in conditions.expiries(parts).items():
        parts.metrics.expires.labels(what).set(end)


def _ledger(parts: Parts) -> None:
    parts.metrics.ledger_lines.set(len(parts.ledger))
    parts.metrics.ledger_ok.set(not parts.ledger.fault)


def _no_ledger(parts: Parts) -> None:
    """It cannot be read on: nothing can be decided, whatever the cause."""
    parts.metrics.ledger_lines.set(NOT_KNOWN)
    parts.metrics.ledger_ok.set(0)
