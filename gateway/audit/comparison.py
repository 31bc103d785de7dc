"""Before and after: released embeddings against the originals' of the same scans, two attacks apart.

    same_scan     the attacker holds the original of this very scan
    other_visit   another session's original; only people who have one

Every attacker must first succeed on the untouched originals, or its figure is void: by another visit, and where nobody
has one by the scans themselves, which only an encoder that tells nothing apart fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from gateway.audit.inputs import AuditInput
from gateway.audit.options import MIN_PEOPLE, Options, Table, densities, measured, stream
from gateway.errors import UsageError
from gateway.evidence import METRICS, fixed_gallery, leave_one_out, score_pairs, score_same_scan

WORKS_AT_P = 0.01  # an attacker that finds nothing on untouched originals says nothing by its silence


def compare(
    before: AuditInput, after: AuditInput, options: Options, tick: Callable[[str, int, int], None]
) -> dict[str, Any]:
    """The report of A (originals) against B (released). Raises UsageError for files that are not of the same scans."""
    after = _in_order_of(before, after)
    encoders = [name for name in before.embeddings if name in after.embeddings]
    if not encoders:
        raise UsageError("A and B have no encoder in common")
    work = [(encoder, metric, attack) for encoder in encoders for metric in METRICS for attack in ATTACKS]
    rows: Table = []
    for done, (encoder, metric, attack) in enumerate(work):
        tick(f"{encoder}, {metric}, {attack}", done, len(work))
        rows.append(_row(before, after, encoder, metric, attack, options))
    tick("done", len(work), len(work))
    return {
        "kind": "comparison",
        "synthetic": options.synthetic,
        "scans": len(before.people.subject),
        "people": before.people.count,
        "enough_people": before.people.count >= MIN_PEOPLE,
        "options": asdict(options),
        "tables": {"attacks": rows},
    }


ATTACKS = ("same_scan", "other_visit")


def _in_order_of(before: AuditInput, after: AuditInput) -> AuditInput:
    """The scans of `after` as they stand in `before`. Raises UsageError when they are not the same ones."""
    at = {name: i for i, name in enumerate(after.columns["scan"])}
    if at.keys() != set(before.columns["scan"]):
        raise UsageError("BEFORE and AFTER must hold the same scans: name them alike in both files")
    return after.chosen(np.array([at[name] for name in before.columns["scan"]], np.int64))


def _row(before: AuditInput, after: AuditInput, encoder: str, metric: str, attack: str, o: Options) -> dict[str, Any]:
    originals, released, people = before.embeddings[encoder], after.embeddings[encoder], before.people
    row: dict[str, Any] = {"encoder": encoder, "metric": metric, "attack": attack}
    try:
        if attack == "same_scan":
            pairs = score_same_scan(released, originals, people, metric)
        else:
            pairs = score_pairs(released, people, metric, gallery=originals)
        visits = score_pairs(originals, people, metric)
        alone = attack == "same_scan" and visits.people_with_mates < 2
        untouched = score_same_scan(originals, originals, people, metric) if alone else visits
        was = measured(untouched, o, encoder, metric, "before")
        now = measured(pairs, o, encoder, metric, attack)
        works = leave_one_out(originals, people, metric).rank1 if not alone else None
        size = min(o.gallery, now.people_with_mates)
        found = fixed_gallery(
            released,
            people,
            metric,
            stream(o, encoder, metric, attack, "gallery"),
            gallery=originals,
            size=size,
            draws=o.draws,
            same_scan=attack == "same_scan",
        )
    except ValueError as error:
        return {**row, "no_evidence": str(error)}
    return {
        **row,
        "d_sys_before": asdict(was),
        "d_sys": asdict(now),
        "rank1_before": works,
        "void": was.p > WORKS_AT_P,
        "fixed_gallery": asdict(found),
        "densities": densities(pairs),
    }
