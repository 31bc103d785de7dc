"""Sending, and what came of it: for tests of the DICOM transport."""

from __future__ import annotations

from pydicom.uid import (
    CTImageStorage,
    ExplicitVRLittleEndian,
)

from gateway.errors import GatewayError, Hold, Retry
from gateway.forward.dicom import DicomTransport
from gateway.study import Receipt
from tests.forward.archives import Answer
from tests.forward.consignments import Consignment

CT = [(CTImageStorage, [ExplicitVRLittleEndian])]


def outcome(transport: DicomTransport, goods: Consignment) -> tuple[dict[str, Receipt], GatewayError | None]:
    """Receipts by instance, each instance reported once at most, and what was raised."""
    receipts: list[Receipt] = []
    raised: GatewayError | None = None
    try:
        transport.send(goods.items, receipts.append)
    except (Retry, Hold) as error:
        raised = error
    assert len({receipt.name for receipt in receipts}) == len(receipts)
    return {receipt.name: receipt for receipt in receipts}, raised


def statuses(*codes: int) -> Answer:
    """The n-th request gets the n-th code, later ones success."""
    return lambda number, _event: codes[number] if number < len(codes) else 0
