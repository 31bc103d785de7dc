"""Forward of a job: cleared files to its destination, and what the archive said of each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from gateway.app import levels
from gateway.app.account import answers, identity
from gateway.app.clearing import pairs_of
from gateway.app.parts import Parts
from gateway.app.promised import forget_refused, require_promise
from gateway.app.shipments import shipment_of
from gateway.database import JobRow
from gateway.errors import Hold
from gateway.forward import TransportOptions, forward, open_transport, rehearse
from gateway.observe import log
from gateway.policy import Destination
from gateway.study import Clearance, Receipt, State

DELIVERED = frozenset({"success", "warning"})


def delivered(receipts: Mapping[str, Receipt]) -> frozenset[str]:
    """Names of the instances that the archive has."""
    return frozenset(name for name, receipt in receipts.items() if receipt.kind in DELIVERED)


def send(parts: Parts, job: JobRow) -> None:
    """Send what the archive does not have yet. Raises Retry or Hold after all that could be sent was sent."""
    destination = parts.policies.current.destinations.get(job.destination)
    if destination is None:
        raise Hold("destination_unknown")
    clearance = Clearance.from_json(job.clearance)
    files = {pair.name: pair.candidate for pair in pairs_of(parts, job)}
    if parts.policies.of(job.policy_digest).forward.shadow:
        _look_only(parts, job, clearance, files)
        return
    sizes = {entry.name: entry.size_bytes for entry in clearance.instances}

    def on_receipt(receipt: Receipt) -> None:
        parts.database.record_receipt(job.job_key, receipt)
        parts.metrics.sent.labels(job.destination, receipt.kind).inc()
        if receipt.kind in DELIVERED:
            parts.metrics.sent_bytes.labels(job.destination).inc(sizes[receipt.name])

    levels.claim(parts, job, parts.policies.of(job.policy_digest))
    parts.mapper.issue(job.job_key, next(iter(files.values())))
    if parts.database.shipment(job.job_key) is None or not delivered(parts.database.receipts(job.job_key)):
        parts.database.keep_shipment(parts.workers.run(shipment_of, job.job_key, files, parts.keys.master))
    transport = open_transport(destination.url, options_of(parts, destination))
    commits = parts.policies.of(job.policy_digest).forward.verify == "storage-commitment"
    if commits:
        forget_refused(parts, job)
    began = time.perf_counter()
    forward(
        clearance,
        files,
        seal_key=parts.keys.seal,
        transport=transport,
        done=delivered(parts.database.receipts(job.job_key)),
        on_receipt=on_receipt,
    )
    parts.metrics.stage_seconds.labels("forward").observe(time.perf_counter() - began)
    if commits:
        require_promise(parts, job, clearance, transport)
    receipts = parts.database.receipts(job.job_key)
    parts.ledger.append(
        "sent",
        f"sent/{job.job_key}/r{job.round}",
        **identity(job),
        destination=job.destination,
        receipts=answers(receipts.values()),
    )
    if parts.database.change_job(job.job_key, State.CLEARED, state=State.SENT, reason="", at="", attempt=0):
        parts.metrics.decided.labels(str(State.SENT), "").inc()
        parts.metrics.archive_seconds.observe(time.time() - job.created_at)
    log("sent", job=job.job_key, destination=job.destination, instances=len(receipts))


def options_of(parts: Parts, destination: Destination) -> TransportOptions:
    """How this gateway speaks to a destination."""
    settings = parts.settings
    return TransportOptions(
        ae_title=settings.ae_title,
        timeout_s=settings.network_timeout_s,
        base=settings.policies,
        access=destination.access,
    )


def _look_only(parts: Parts, job: JobRow, clearance: Clearance, files: Mapping[str, Path]) -> None:
    """A policy in shadow: all but the sending. Raises Hold when what would be sent is not what was cleared."""
    rehearse(clearance, files, seal_key=parts.keys.seal)
    where = {"destination": job.destination, "instances": len(files)}
    parts.ledger.append("shadowed", f"shadowed/{job.job_key}/r{job.round}", **identity(job), **where)
    parts.database.change_job(job.job_key, State.CLEARED, state=State.SHADOWED, reason="", at="", attempt=0)
    parts.metrics.decided.labels(str(State.SHADOWED), "").inc()
    log("shadowed", job=job.job_key, destination=job.destination, instances=len(files))
