"""What a reviewer writes as the reason of a decision goes into the ledger, so it must not quote the study."""

from __future__ import annotations

from functools import partial

from gateway.app.parts import Parts
from gateway.gate import mentions

FILES_AT_ONCE = 200


def names_somebody(parts: Parts, study_key: str, text: str) -> bool:
    """True when the text holds an identifying value of one of the study's originals."""
    paths = [parts.spool.path(study_key, row.name) for row in parts.database.instances_of(study_key)]
    there = [path for path in paths if path.exists()]
    return any(
        parts.workers.each(
            [
                partial(mentions, text, there[start : start + FILES_AT_ONCE])
                for start in range(0, len(there), FILES_AT_ONCE)
            ]
        )
    )
