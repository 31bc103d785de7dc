"""How much of rank-1 comes from many scans of one person: by mates per query, and with people capped at a few scans."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from gateway.audit.inputs import AuditInput
from gateway.audit.options import Options, Table, best_metric, stream
from gateway.evidence import People, fixed_gallery, leave_one_out

CAPS, CAP_DRAWS = (2, 5), 10
MATES = (1, 2, 3, 5)  # per query


def by_mates(data: AuditInput, encoder: str, o: Options) -> Table:
    """Rank-1 in one gallery size by the mates that a query has; people with too few of them are left out."""
    rows: Table = []
    try:
        metric = best_metric(data, encoder)
    except ValueError as error:
        return [{"encoder": encoder, "no_evidence": str(error)}]
    for mates in MATES:
        row = {"encoder": encoder, "metric": metric, "mates": mates}
        try:
            able = _able(data.people, mates)
            size = min(o.gallery, able)
            draw = stream(o, encoder, "mates", str(mates))
            x, people = data.embeddings[encoder], data.people
            rows.append(row | asdict(fixed_gallery(x, people, metric, draw, size=size, draws=o.draws, mates=mates)))
        except ValueError as error:
            rows.append({**row, "no_evidence": str(error)})
    return rows


def _able(people: People, mates: int) -> int:
    """People whose every scan has so many scans of other sessions beside it, two at least."""
    count = 0
    for subject in range(people.count):
        sizes = np.unique(people.session[people.subject == subject], return_counts=True)[1]
        count += len(sizes) > 1 and int(sizes.sum() - sizes.max()) >= mates
    if count < 2:
        scans = "another scan" if mates == 1 else f"{mates} other scans"
        raise ValueError(f"fewer than two people have {scans} of other visits beside each of theirs")
    return count


def capped(data: AuditInput, encoder: str, o: Options) -> Table:
    """Every person keeps 2 to 5 random scans, ten times: how much of rank-1 comes from many scans of one person."""
    generator = stream(o, encoder, "capped")
    x, people = data.embeddings[encoder], data.people
    try:
        whole = leave_one_out(x, people, "canberra").rank1
        reads = []
        for _ in range(CAP_DRAWS):
            rows = _cap(people, generator)
            part = data.chosen(rows)
            reads.append(leave_one_out(part.embeddings[encoder], part.people, "canberra").rank1)
    except ValueError as error:
        return [{"encoder": encoder, "no_evidence": str(error)}]
    row = {
        "encoder": encoder,
        "metric": "canberra",
        "rank1_full": whole,
        "rank1_capped_mean": float(np.mean(reads)),
        "rank1_capped_sd": float(np.std(reads, ddof=1)),
        "draws": CAP_DRAWS,
    }
    return [row]


def _cap(people: People, generator: np.random.Generator) -> NDArray[np.int64]:
    low, high = CAPS
    kept = []
    for subject in range(people.count):
        scans = np.flatnonzero(people.subject == subject)
        wanted = min(len(scans), int(generator.integers(low, high + 1)))
        kept.append(generator.choice(scans, wanted, replace=False))
    return np.sort(np.concatenate(kept))
