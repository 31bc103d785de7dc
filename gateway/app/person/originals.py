"""Originals leave the spool: of one study generation, with what was estimated from them, and the ledger says so.

Order: ledger line (idempotent), file, row; a crash between any two is mended by doing it again.
"""

from __future__ import annotations

import shutil
from collections import Counter

from gateway.app.parts import Parts
from gateway.durable import sync_folder
from gateway.observe import log


def remove_originals(parts: Parts, study_key: str, generation: int) -> int:
    """Remove what is there of a generation; how many files its rows still named. Rows stay, so that duplicates and
    conflicts are still known.
    """
    p = parts
    rows = [row for row in p.database.instances_of(study_key, generation) if row.removed_at is None]
    if rows:
        p.ledger.append(
            "originals_removed",
            f"originals_removed/{study_key}/g{generation}/{max(row.serial for row in rows)}",
            study=study_key,
            generation=generation,
            instances=dict(Counter(row.use for row in rows)),
        )
    folder = p.spool.root / study_key
    for row in rows:
        p.spool.path(row.study_key, row.name).unlink(missing_ok=True)
    if folder.is_dir():
        sync_folder(folder)
    estimates = p.home.estimates / study_key
    if estimates.is_dir():
        shutil.rmtree(estimates)
    if rows:
        p.database.mark_removed(row.serial for row in rows)
        log("originals_removed", study=study_key, generation=generation, count=len(rows))
    return len(rows)


def remove_restored(parts: Parts) -> int:
    """Files that were removed once and that a restore brought back go again; how many."""
    gone = 0
    for folder in parts.spool.root.iterdir():
        if not folder.is_dir() or folder == parts.spool.incoming:
            continue
        for row in parts.database.instances_of(folder.name):
            path = folder / row.name
            if row.removed_at is not None and path.exists():
                path.unlink()
                gone += 1
    if gone:
        log("restored_removed", count=gone)
    return gone
