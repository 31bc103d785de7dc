"""What an archive says of one instance that it was offered by STOW-RS (PS3.18 10.5.3, 10.5.4, Annex I.2).

200 and 202 may each carry a warning or a failure, so the status alone never says "stored": the body must name the
instance, or be empty where the status leaves no doubt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.forward import dimse
from gateway.forward.transport import Tally
from gateway.study import ClearedInstance

STORED_SEQUENCE, FAILED_SEQUENCE = "00081199", "00081198"  # ReferencedSOPSequence, FailedSOPSequence
INSTANCE_UID, FAILURE, WARNING = "00081155", "00081197", "00081196"
_ALL_STORED = frozenset({200, 201, 204})
_REJECTS_US = frozenset({401, 403, 404, 405, 407, 410, 501})
_LATER = frozenset({408, 423, 425, 429})


def note(one: ClearedInstance, status: int, body: bytes, tally: Tally) -> None:
    """Report what became of an instance: its DIMSE status where the body has one, else that of HTTP."""
    at = f"instance {one.name} (HTTP {status})"
    if status in _REJECTS_US or 300 <= status < 400:
        tally.postponed(one.name, "archive_rejects_us", at)
    elif status in _LATER or status >= 500:
        tally.postponed(one.name, "archive_busy", at)
    elif status in _ALL_STORED and not body.strip():
        tally.delivered(one.name)
    else:
        _note_body(one, status, _parsed(body), tally)


def _note_body(one: ClearedInstance, status: int, answer: Mapping[str, Any], tally: Tally) -> None:
    failed = _reason(answer, FAILED_SEQUENCE, FAILURE, one.sop_instance_uid)
    if failed is not None:
        at = f"instance {one.name} (HTTP {status}, status {failed:04X})"
        if dimse.status_kind(failed) == "busy":
            tally.postponed(one.name, "archive_busy", at, failed)
        else:
            tally.refused(one.name, "archive_refuses", at, failed)
        return
    stored = _reason(answer, STORED_SEQUENCE, WARNING, one.sop_instance_uid)
    at = f"instance {one.name} (HTTP {status})"
    if stored is not None and (status in _ALL_STORED or status == 202):
        tally.delivered(one.name, stored, "warning" if stored else "success")
    elif status == 415:
        tally.refused(one.name, "archive_refuses_syntax", at)
    elif status in _ALL_STORED or status == 202:  # it says neither that it has the instance nor why not
        tally.postponed(one.name, "archive_aborted", at)
    else:
        tally.refused(one.name, "archive_refuses", at)


def _parsed(body: bytes) -> Mapping[str, Any]:
    """The DICOM JSON object, or the first of an array of them; {} for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(found, list) and found:
        found = found[0]
    return found if isinstance(found, dict) else {}


def _reason(answer: Mapping[str, Any], sequence: str, reason: str, uid: str) -> int | None:
    """The status of the instance in a sequence, 0 without one; None when it is not in there."""
    for entry in _values(answer, sequence):
        if isinstance(entry, dict) and uid in _values(entry, INSTANCE_UID):
            code = next(_values(entry, reason), 0)
            return code if isinstance(code, int) and 0 <= code <= 0xFFFF else 0x0110
    return None


def _values(dataset: Mapping[str, Any], tag: str) -> Iterator[Any]:
    element = dataset.get(tag)
    found = element.get("Value") if isinstance(element, dict) else None
    return iter(found if isinstance(found, list) else ())
