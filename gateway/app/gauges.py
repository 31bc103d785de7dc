"""Gauges that are read off the tables when somebody asks for /metrics."""

from __future__ import annotations

import logging
import time

from sqlalchemy.exc import SQLAlchemyError

from gateway.app import release_gauges
from gateway.app.parts import Parts
from gateway.errors import EnvironmentFault
from gateway.observe import log, origin

NOT_KNOWN = float("nan")


def refresh(parts: Parts) -> None:
    """Set every gauge. What cannot be read now is not a number; the counters are told all the same."""
    metrics = parts.metrics
    try:
        metrics.disk_free_bytes.set(parts.spool.free_bytes())
    except OSError as error:
        metrics.disk_free_bytes.set(NOT_KNOWN)
        _complain(error)
    try:
        _count(parts)
    except (SQLAlchemyError, OSError) as error:
        metrics.jobs.clear()
        metrics.studies.clear()
        metrics.queue_depth.set(NOT_KNOWN)
        metrics.oldest_seconds.set(NOT_KNOWN)
        _complain(error)
    try:
        release_gauges.refresh(parts)
    except (SQLAlchemyError, OSError) as error:
        metrics.releases.clear()
        metrics.release_score.clear()
        _complain(error)
    try:
        metrics.ledger_lines.set(len(parts.ledger))
    except (EnvironmentFault, OSError) as error:
        metrics.ledger_lines.set(NOT_KNOWN)
        _complain(error)


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


def _complain(error: Exception) -> None:
    log("gauge_failed", level=logging.WARNING, exception=origin(error))
