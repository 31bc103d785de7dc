"""Forward of a job: cleared files to its destination, and what the archive said of each."""

from __future__ import annotations

import time
from collections.abc import Mapping

from gateway.app.account import answers, identity
from gateway.app.clearing import pairs_of
from gateway.app.parts import Parts
from gateway.database import JobRow
from gateway.errors import Hold
from gateway.forward import TransportOptions, forward, open_transport
from gateway.observe import log
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
    sizes = {entry.name: entry.size_bytes for entry in clearance.instances}

    def on_receipt(receipt: Receipt) -> None:
        parts.database.record_receipt(job.job_key, receipt)
        parts.metrics.sent.labels(job.destination, receipt.kind).inc()
        if receipt.kind in DELIVERED:
            parts.metrics.sent_bytes.labels(job.destination).inc(sizes[receipt.name])

    parts.mapper.issue(job.job_key, next(iter(files.values())))
    began = time.perf_counter()
    settings = parts.settings
    options = TransportOptions(ae_title=settings.ae_title, timeout_s=settings.network_timeout_s, base=settings.policies)
    forward(
        clearance,
        files,
        seal_key=parts.keys.seal,
        transport=open_transport(destination.url, options),
        done=delivered(parts.database.receipts(job.job_key)),
        on_receipt=on_receipt,
    )
    parts.metrics.stage_seconds.labels("forward").observe(time.perf_counter() - began)
    receipts = parts.database.receipts(job.job_key)
    parts.ledger.append(
        "sent",
        f"sent/{job.job_key}/r{job.round}",
        **identity(job),
        destination=job.destination,
        receipts=answers(receipts.values()),
    )
    parts.database.set_job(job.job_key, state=State.SENT, reason="", at="", attempt=0)
    parts.metrics.decided.labels(str(State.SENT), "").inc()
    log("sent", job=job.job_key, destination=job.destination, instances=len(receipts))
