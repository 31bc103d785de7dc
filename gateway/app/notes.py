"""What a person writes as the reason of a decision goes into the ledger, so it must not quote a study it is about."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from gateway.app.parts import Parts
from gateway.gate import mentions

FILES_AT_ONCE = 200
NAMES_SOMEBODY = "the reason names something out of the study; it was not kept: write it without names, ids and dates"


def names_somebody(parts: Parts, study_keys: Iterable[str], text: str) -> bool:
    """True when the text holds an identifying value of one of the studies' originals."""
    paths = [
        parts.spool.path(study_key, row.name)
        for study_key in sorted(set(study_keys))
        for row in parts.database.instances_of(study_key)
    ]
    there = [path for path in paths if path.exists()]
    return any(
        parts.workers.each(
            [
                partial(mentions, text, there[start : start + FILES_AT_ONCE])
                for start in range(0, len(there), FILES_AT_ONCE)
            ]
        )
    )
