"""Gauges that are read off the tables when somebody asks for /metrics."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from sqlalchemy.exc import SQLAlchemyError

from gateway.app.message import conditions
from gateway.app.parts import Parts
from gateway.app.release import gauges as release_gauges
from gateway.errors import EnvironmentFault
from gateway.observe import log, origin
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
        (_destinations, lambda one: one.metrics.retrying.clear()),
        (release_gauges.refresh, release_gauges.forget),
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
    metrics.jobs.clear()
    for (state, reason), count in states.items():
        metrics.jobs.labels(state, reason).set(count)
    metrics.studies.clear()
    for (state, reason), count in studies.items():
        metrics.studies.labels(state, reason).set(count)
    metrics.queue_depth.set(len(unfinished))
    now = time.time()
    metrics.oldest_seconds.set(max(0.0, now - min((job.created_at for job in unfinished), default=now)))
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
