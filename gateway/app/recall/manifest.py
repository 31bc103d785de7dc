"""The manifest of a recall: which receiver has what, for people and for scripts, whatever way it went there.

By receiver, study, series and instance: SOP Class and Instance UIDs as they were sent, when, and what the receiver
answered; and the resource under which a DICOMweb service has it (PS3.18 10.1). New UIDs and pseudonyms only.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.app.sending import delivered
from gateway.app.shipments import pseudonym_of
from gateway.database import Database, RecalledRow, RecallRow
from gateway.durable import make_folder, writing
from gateway.errors import UsageError
from gateway.forward.rejection_note import TITLES
from gateway.study import Clearance

COLUMNS = (
    *("receiver", "patient_id", "study_instance_uid", "series_instance_uid", "sop_class_uid", "sop_instance_uid"),
    *("sent_at", "status", "sha256_dataset", "issue", "resource", "job"),
)


def manifest_of(database: Database, recall: RecallRow, master: bytes) -> dict[str, Any]:
    """A recall as JSON data. Raises EnvironmentFault for another master key."""
    rows = database.recalled_in(recall.serial)
    receivers = []
    for receiver in sorted({row.destination for row in rows}):
        mine = [row for row in rows if row.destination == receiver]
        entries = [entry for row in mine for entry in _entries(database, row, master)]
        receivers.append(
            {
                "receiver": receiver,
                "studies": len({entry["study_instance_uid"] or entry["job"] for entry in entries}),
                "rejection_notes": dict(Counter(row.note for row in mine)),
                "instances": entries,
            }
        )
    return {
        "recall": recall.serial,
        "about": recall.scope,
        "release": recall.key if recall.scope == "release" else "",
        "made_at": _time(recall.created_at),
        "code": {"value": recall.code, "scheme": "DCM", "meaning": TITLES[recall.code]},
        "receivers": receivers,
    }


def _entries(database: Database, row: RecalledRow, master: bytes) -> Iterator[dict[str, Any]]:
    job, shipment = database.job(row.job_key), database.shipment(row.job_key)
    receipts, at = database.receipts(row.job_key), database.answered_at(row.job_key)
    if job is None or not job.clearance:
        return
    there = delivered(receipts)
    for one in Clearance.from_json(job.clearance).instances:
        if one.name in there:
            study, series = (shipment.study_uid, shipment.series[one.name]) if shipment else ("", "")
            known = study and series
            yield {
                "receiver": row.destination,
                "patient_id": pseudonym_of(shipment, master) if shipment else "",
                "study_instance_uid": study,
                "series_instance_uid": series,
                "sop_class_uid": one.sop_class_uid,
                "sop_instance_uid": one.sop_instance_uid,
                "sent_at": _time(at[one.name]),
                "status": f"{receipts[one.name].status:04X}",
                "sha256_dataset": one.sha256_dataset,
                "issue": job.issue,
                "resource": f"studies/{study}/series/{series}/instances/{one.sop_instance_uid}" if known else "",
                "job": row.job_key,
            }


def as_csv(manifest: Mapping[str, Any]) -> str:
    """The instances of a manifest, one a line."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")  # RFC 4180
    writer.writeheader()
    for receiver in manifest["receivers"]:
        writer.writerows(receiver["instances"])
    return text.getvalue()


def write_manifest(manifest: Mapping[str, Any], folder: Path) -> list[Path]:
    """`recall-<number>.json` and `.csv` in a folder. Raises UsageError when it is none that can be written to."""
    name = f"recall-{manifest['recall']}"
    files = {f"{name}.json": json.dumps(manifest, indent=1) + "\n", f"{name}.csv": as_csv(manifest)}
    try:
        make_folder(folder)
        for file_name, text in files.items():
            with writing(folder / file_name) as file:
                file.write(text.encode())
    except OSError as error:
        raise UsageError(f"{folder} is no folder that can be written to ({error.strerror}); name another") from None
    return [folder / file_name for file_name in files]


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
