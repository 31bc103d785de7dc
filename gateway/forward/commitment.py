"""Storage commitment of an archive (PS3.4 Annex J), as its SCU: the archive is asked, and says later what it will keep.

By pynetdicom: it is one message for a study. An archive may report on the association that asked, while it is open, or
on one of its own, to our DICOM port.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydicom import Dataset
from pynetdicom import AE, evt
from pynetdicom.sop_class import StorageCommitmentPushModel  # type: ignore[attr-defined]

from gateway.errors import EnvironmentFault, Hold, Retry
from gateway.forward.dicom import DicomTransport
from gateway.forward.transport import is_uid
from gateway.study import ClearedInstance
from gateway.tls import client_context

CLASS_UID, INSTANCE_UID = "1.2.840.10008.1.20.1", "1.2.840.10008.1.20.1.1"
REQUEST = 1
WAIT_S = 3.0  # for a report on the association that asked


@dataclass(slots=True)
class _Report:
    """What came on the association that asked."""

    transaction_uid: str
    on_report: Callable[[str, frozenset[str]], None]
    came: threading.Event = field(default_factory=threading.Event)

    def take(self, event: evt.Event) -> tuple[int, None]:
        transaction_uid, committed = committed_in(event.event_information)
        if transaction_uid != self.transaction_uid:
            return 0x0115, None
        self.on_report(transaction_uid, committed)
        self.came.set()
        return 0x0000, None


def request_commitment(
    transport: DicomTransport,
    transaction_uid: str,
    instances: Sequence[ClearedInstance],
    on_report: Callable[[str, frozenset[str]], None],
) -> None:
    """Ask for all `instances` under a name of ours. `on_report(transaction, committed SOP Instance UIDs)` is called if
    the archive answers at once.

    Raises Retry as sending does, Hold commitment_unsupported when it does not offer this.
    """
    peer, options = transport.peer, transport.options
    entity = AE(options.ae_title)
    entity.acse_timeout = entity.dimse_timeout = entity.network_timeout = options.timeout_s
    entity.connection_timeout = options.timeout_s
    entity.add_requested_context(StorageCommitmentPushModel)
    tls = None
    if peer.tls is not None:
        try:
            tls = (client_context(peer.tls.tls), peer.tls.server_name or peer.host)
        except EnvironmentFault as error:
            raise Retry("archive_access", at=f"{peer} ({error})") from None
    report = _Report(transaction_uid, on_report)
    association = entity.associate(
        peer.host,
        peer.port,
        ae_title=peer.ae_title,
        tls_args=tls,
        evt_handlers=[(evt.EVT_N_EVENT_REPORT, report.take)],
    )
    if association.is_rejected:
        raise Retry("archive_rejects_us", at=str(peer))
    if not association.is_established:
        if association.rejected_contexts:
            raise Hold("commitment_unsupported", at=str(peer))
        raise Retry("archive_unreachable", at=str(peer))
    try:
        status, _ = association.send_n_action(_asked(transaction_uid, instances), REQUEST, CLASS_UID, INSTANCE_UID)
        if "Status" not in status:
            raise Retry("archive_aborted", at=f"{peer} (N-ACTION)")
        if status.Status != 0x0000:
            raise Hold("commitment_unsupported", at=f"{peer} (N-ACTION status {status.Status:04X})")
        report.came.wait(WAIT_S)
    finally:
        association.release()


def committed_in(dataset: Dataset) -> tuple[str, frozenset[str]]:
    """Transaction UID, and the SOP Instance UIDs that a report commits to; what it does not name is not committed."""
    items = dataset.get("ReferencedSOPSequence") or []
    uids = {str(item.get("ReferencedSOPInstanceUID") or "") for item in items}
    failed = {str(item.get("ReferencedSOPInstanceUID") or "") for item in dataset.get("FailedSOPSequence") or []}
    return str(dataset.get("TransactionUID") or ""), frozenset(uid for uid in uids - failed if is_uid(uid))


def _asked(transaction_uid: str, instances: Sequence[ClearedInstance]) -> Dataset:
    dataset = Dataset()
    dataset.TransactionUID = transaction_uid
    dataset.ReferencedSOPSequence = []
    for one in instances:
        item = Dataset()
        item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID = one.sop_class_uid, one.sop_instance_uid
        dataset.ReferencedSOPSequence.append(item)
    return dataset
