"""Every figure of an audit, for each encoder: linkage, rank-1, time gaps, strata, capped, attributes, cross-dataset.

Threat models are named and never mixed: `other-visit` (another session's embedding of the person) here; `same-scan` and
`other-visit` against originals in `comparison`. A figure that cannot be had says why; it is never left out silently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.audit.inputs import AuditInput
from gateway.audit.mates import by_mates, capped
from gateway.audit.options import MIN_PEOPLE, Options, Table, best_metric, densities, measured, stream
from gateway.evidence import (
    FOLDS,
    METRICS,
    ScoredPairs,
    fixed_gallery,
    infer_across,
    infer_within,
    leave_one_out,
    score_pairs,
    separation,
)

GAPS_DAYS = ((0, 183), (183, 366), (366, 731), (731, 100_000))
MAX_VALUES = 12  # of an attribute


def measure(
    data: AuditInput, options: Options, tick: Callable[[str, int, int], None], only: Collection[str] = ()
) -> dict[str, Any]:
    """The report as JSON data, all of it or `only` some tables. `tick(what, done, total)` before each piece of work."""
    people = data.people
    pieces = [piece for piece in _pieces(data, options) if not only or piece[0] in only]
    tables: dict[str, Table] = {}
    for done, (table, what, work) in enumerate(pieces):
        tick(what, done, len(pieces))
        tables.setdefault(table, []).extend(work())
    tick("done", len(pieces), len(pieces))
    return {
        "kind": "audit",
        "synthetic": options.synthetic,
        "threat_model": "other-visit",
        "scans": len(people.subject),
        "people": people.count,
        "enough_people": people.count >= MIN_PEOPLE,
        "encoders": {name: int(array.shape[1]) for name, array in data.embeddings.items()},
        "people_trained_on": dict(data.trained_on),
        "options": asdict(options),
        "tables": tables,
    }


Piece = tuple[str, str, Callable[[], Table]]  # table, what is told, work


def _pieces(data: AuditInput, o: Options) -> Iterator[Piece]:
    for encoder in data.embeddings:
        for metric in METRICS:
            yield "linkage", f"{encoder}, {metric}", partial(_linkage, data, encoder, metric, o)
        yield "worst_people", f"{encoder}: worst people", partial(_worst, data, encoder)
        if data.days is not None:
            yield "time_gap", f"{encoder}: time gaps", partial(_gaps, data, encoder, data.days, o)
        yield "mates", f"{encoder}: mates per query", partial(by_mates, data, encoder, o)
        yield "capped", f"{encoder}: capped", partial(capped, data, encoder, o)
        for attribute in data.attributes:
            yield "strata", f"{encoder}: by {attribute}", partial(_strata, data, encoder, attribute, o)
            yield "attributes", f"{encoder}: {attribute}", partial(_attribute, data, encoder, attribute, o)


def _linkage(data: AuditInput, encoder: str, metric: str, o: Options) -> Table:
    x, people = data.embeddings[encoder], data.people
    row: dict[str, Any] = {"encoder": encoder, "metric": metric}
    if len(x) and not np.ptp(x, axis=0).any():
        return [{**row, "no_evidence": "every scan has the same embedding: this encoder tells nothing apart"}]
    try:
        pairs = score_pairs(x, people, metric)
        found = measured(pairs, o, encoder, metric)
    except ValueError as error:
        return [{**row, "no_evidence": str(error)}]
    auc, eer = separation(pairs.mated, pairs.non_mated)
    matched = leave_one_out(x, people, metric)
    row |= {"d_sys": asdict(found), "auc": auc, "eer": eer, "densities": densities(pairs)}
    row["rank1"] = {name: value for name, value in asdict(matched).items() if name != "by_subject"}
    size = min(o.gallery, found.people_with_mates)
    gallery = fixed_gallery(x, people, metric, stream(o, encoder, metric, "gallery"), size=size, draws=o.draws)
    return [{**row, "fixed_gallery": asdict(gallery)}]


def _worst(data: AuditInput, encoder: str) -> Table:
    """How unequal the risk is: an attack that is harmless on average may find single people each time."""
    try:
        metric = best_metric(data, encoder)
        share = leave_one_out(data.embeddings[encoder], data.people, metric).by_subject
    except ValueError as error:
        return [{"encoder": encoder, "no_evidence": str(error)}]
    share = share[~np.isnan(share)]
    row = {
        "encoder": encoder,
        "metric": metric,
        "people": len(share),
        "always_found": int((share == 1).sum()),
        "never_found": int((share == 0).sum()),
        "mean": float(share.mean()),
        "percentile_95": float(np.percentile(share, 95)),
    }
    return [row]


def _gaps(data: AuditInput, encoder: str, days: NDArray[np.int64], o: Options) -> Table:
    """Linkage of pairs by the time between them; non-mated pairs are the same for all."""
    try:
        metric = best_metric(data, encoder)
    except ValueError as error:
        return [{"encoder": encoder, "no_evidence": str(error)}]
    pairs = score_pairs(data.embeddings[encoder], data.people, metric)
    apart = np.abs(days[pairs.mated_at[:, 0]] - days[pairs.mated_at[:, 1]])
    rows = []
    for low, high in GAPS_DAYS:
        chosen = pairs.mated_at[(apart >= low) & (apart < high)]
        part = ScoredPairs(pairs.scores, chosen, pairs.non_mated_at, pairs.subject, False, pairs.count)
        name = f"{low} to {high} days" if high < 100_000 else f"over {low} days"
        few = {"no_evidence": "fewer than two people have visits so far apart"}
        found = _reading(part, o, encoder, name) if part.people_with_mates > 1 else few
        rows.append({"encoder": encoder, "metric": metric, "gap": name, **found})
    return rows


def _learnable(data: AuditInput, attribute: str) -> NDArray[np.bool_]:
    """Scans whose value is there, and that of FOLDS people and more."""
    values, whose = np.array(data.columns[attribute], str), data.people.subject
    often = [v for v in sorted(set(values) - {""}) if len(np.unique(whose[values == v])) >= FOLDS]
    return np.isin(values, often)


def _strata(data: AuditInput, encoder: str, attribute: str, o: Options) -> Table:
    """Linkage among people who share a value; bounds are not corrected for the number of strata that were looked at."""
    values = np.array(data.columns[attribute])
    rows: Table = []
    if len(set(values)) > MAX_VALUES:
        return [{"encoder": encoder, "attribute": attribute, "no_evidence": f"more than {MAX_VALUES} values"}]
    for value in sorted(set(values) - {""}):
        part = data.chosen(values == value)
        row = {"encoder": encoder, "attribute": attribute, "value": str(value), "people": part.people.count}
        try:
            metric = best_metric(part, encoder)
            pairs = score_pairs(part.embeddings[encoder], part.people, metric)
            rows.append({**row, "metric": metric, **_reading(pairs, o, encoder, attribute, str(value))})
        except ValueError as error:
            rows.append({**row, "no_evidence": str(error)})
    return rows


def _reading(pairs: ScoredPairs, o: Options, *purpose: str) -> dict[str, Any]:
    try:
        return {"d_sys": asdict(measured(pairs, o, *purpose))}
    except ValueError as error:
        return {"no_evidence": str(error)}


def _attribute(data: AuditInput, encoder: str, attribute: str, o: Options) -> Table:
    """Within the whole cohort, and across data sets both ways when there are two and more.

    Nothing is learnt of people without a value, nor of a value that fewer than FOLDS people have.
    """
    seed = int(stream(o, encoder, attribute, "forest").integers(1 << 31))
    everybody, count = data, len(set(data.columns[attribute]))
    data = data.chosen(_learnable(data, attribute))
    left_out = everybody.people.count - data.people.count
    x, subject, values = data.embeddings[encoder], data.people.subject, data.columns[attribute]
    times = {"replicates": o.replicates, "permutations": o.permutations, "trees": o.trees}
    row = {"encoder": encoder, "attribute": attribute}
    rows: Table = []

    def add(where: str, work: Callable[[], Any]) -> None:
        try:
            rows.append({**row, "where": where, **asdict(work()), "left_out": left_out})
        except ValueError as error:
            rows.append({**row, "where": where, "no_evidence": str(error)})

    if count > MAX_VALUES:
        return [{**row, "no_evidence": f"{count} values; put them into bands, at most {MAX_VALUES}"}]
    add("within", partial(infer_within, x, subject, values, seed, **times))
    sets = np.array(data.columns.get("dataset", ()))
    for a in sorted(set(sets)):
        for b in sorted(set(sets) - {a}):
            one, two = sets == a, sets == b
            left = (x[one], subject[one], tuple(np.array(values)[one]))
            right = (x[two], subject[two], tuple(np.array(values)[two]))
            add(f"{a} to {b}", partial(infer_across, left, right, seed, **times))
    return rows
