"""`verify: storage-commitment`: a job is sent once the archive has said, of every instance, that it keeps it.

The request is noted before it is made. Whoever hears the answer (this process on the association that asked, or the
receiver, to which archives come back) writes it beside it; the next attempt of the job reads it. An instance that the
archive does not keep is sent again, and asked for again.
"""

from __future__ import annotations

import time

from gateway.app.parts import Parts
from gateway.database import JobRow, Promise
from gateway.errors import Hold, Retry
from gateway.forward import Transport
from gateway.forward.commitment import request_commitment
from gateway.forward.dicom import DicomTransport
from gateway.pseudonyms import derive
from gateway.study import Clearance, Receipt

PATIENCE_S = 3600.0  # an archive that has not answered for so long is asked again
NOT_KEPT = 0x0110


def require_promise(parts: Parts, job: JobRow, clearance: Clearance, transport: Transport) -> None:
    """Return when every instance is committed to. Raises Retry while it is not, Hold when it cannot be."""
    if not isinstance(transport, DicomTransport):
        raise Hold("commitment_unsupported", at=job.destination)
    missing = _missing(parts, job, clearance)
    if not missing:
        return
    made = parts.database.promises_of(job.job_key)
    if any(_is_open(promise) for promise in made):
        raise Retry("commitment_pending", at=f"{job.destination}: {len(missing)} instances")
    transaction_uid = _transaction_uid(parts, job, len(made))
    wanted = [instance for instance in clearance.instances if instance.name in missing]
    parts.database.ask_promise(transaction_uid, job.job_key, {one.sop_instance_uid: one.name for one in wanted})
    request_commitment(transport, transaction_uid, wanted, lambda uid, kept: _note(parts, uid, kept))
    missing = _missing(parts, job, clearance)
    if not missing:
        return
    if not _is_open(parts.database.promises_of(job.job_key)[-1]):  # it answered, and does not keep all of them
        raise Retry("commitment_refused", at=f"{job.destination}: {len(missing)} instances")
    raise Retry("commitment_pending", at=f"{job.destination}: {len(missing)} instances")


def forget_refused(parts: Parts, job: JobRow) -> None:
    """What the archive said that it does not keep is to be sent again: its receipt becomes a failure."""
    made = parts.database.promises_of(job.job_key)
    if not made or made[-1].answered_at is None:
        return
    receipts = parts.database.receipts(job.job_key)
    for name in sorted(set(made[-1].asked.values()) - made[-1].kept):
        if name in receipts and receipts[name].kind != "failure":
            parts.database.record_receipt(job.job_key, Receipt(name, NOT_KEPT, "failure", 0))


def _missing(parts: Parts, job: JobRow, clearance: Clearance) -> frozenset[str]:
    """Names of the instances that nobody committed to, of those that this clearance has."""
    kept: set[str] = set()
    now = {one.sop_instance_uid: one.name for one in clearance.instances}
    for promise in parts.database.promises_of(job.job_key):
        kept |= {name for uid, name in promise.asked.items() if name in promise.kept and now.get(uid) == name}
    return frozenset(one.name for one in clearance.instances) - kept


def _is_open(promise: Promise) -> bool:
    return promise.answered_at is None and time.time() < promise.asked_at + PATIENCE_S


def _note(parts: Parts, transaction_uid: str, kept: frozenset[str]) -> None:
    parts.database.answer_promise(transaction_uid, kept)


def _transaction_uid(parts: Parts, job: JobRow, count: int) -> str:
    """2.25 and 128 keyed bits (PS3.5 B.2): nobody else can name it."""
    bits = derive(parts.keys.master, "commitment", job.job_key, str(job.round), str(count))[:16]
    return f"2.25.{int.from_bytes(bits, 'big') | 1 << 127}"
