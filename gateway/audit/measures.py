"""Every figure of an audit, for each encoder: linkage, rank-1, time gaps, strata, capped, attributes, cross-dataset.

Threat models are named and never mixed: `other-visit` (another session's embedding of the person) here; `same-scan` and
`other-visit` against originals in `comparison`. A figure that cannot be had says why; it is never left out silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.audit.inputs import AuditInput
from gateway.evidence import (
    METRICS,
    TREES,
    Linkability,
    People,
    ScoredPairs,
    fixed_gallery,
    infer_across,
    infer_within,
    leave_one_out,
    linkability,
    score_pairs,
    separation,
)

Table = list[dict[str, Any]]
GAPS_DAYS = ((0, 183), (183, 366), (366, 731), (731, 100_000))
CAPS, CAP_DRAWS = (2, 5), 10
MAX_VALUES = 12  # of an attribute
MIN_PEOPLE = 50  # below it a release is "no evidence"


@dataclass(frozen=True, slots=True)
class Options:
    """`seed` decides every draw. `replicates` and `permutations` of each bound and null."""

    seed: int = 0
    replicates: int = 1000
    permutations: int = 999
    omega: float = 1.0
    gallery: int = 50
    draws: int = 200
    trees: int = TREES
    synthetic: bool = False


def measure(data: AuditInput, options: Options, tick: Callable[[str, int, int], None]) -> dict[str, Any]:
    """The whole report as JSON data. `tick(what, done, total)` is called before each piece of work."""
    people = data.people
    pieces = list(_pieces(data, options))
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
        yield "capped", f"{encoder}: capped", partial(_capped, data, encoder, o)
        for attribute in data.attributes:
            yield "strata", f"{encoder}: by {attribute}", partial(_strata, data, encoder, attribute, o)
            yield "attributes", f"{encoder}: {attribute}", partial(_attribute, data, encoder, attribute, o)


def _linkage(data: AuditInput, encoder: str, metric: str, o: Options) -> Table:
    x, people = data.embeddings[encoder], data.people
    row: dict[str, Any] = {"encoder": encoder, "metric": metric}
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


def densities(pairs: ScoredPairs, bins: int = 60) -> dict[str, list[float]]:
    """Histograms of both kinds of scores over one axis, each of area 1, and the local D of each bin, for the figure."""
    both = np.concatenate([pairs.mated, pairs.non_mated])
    edges = np.histogram_bin_edges(both, bins)
    mated, _ = np.histogram(pairs.mated, edges, density=True)
    others, _ = np.histogram(pairs.non_mated, edges, density=True)
    under = mated + others
    local = np.divide(mated - others, under, out=np.zeros_like(under), where=under > 0)
    return {
        "edges": edges.tolist(),
        "mated": mated.tolist(),
        "non_mated": others.tolist(),
        "local": np.maximum(local, 0).tolist(),
    }


def _best_metric(data: AuditInput, encoder: str) -> str:
    """The metric that links best by rank-1: strata and gaps follow the stronger attacker."""
    return max(METRICS, key=lambda metric: leave_one_out(data.embeddings[encoder], data.people, metric).rank1)


def _worst(data: AuditInput, encoder: str) -> Table:
    """How unequal the risk is: an attack that is harmless on average may find single people each time."""
    try:
        metric = _best_metric(data, encoder)
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
        metric = _best_metric(data, encoder)
    except ValueError as error:
        return [{"encoder": encoder, "no_evidence": str(error)}]
    pairs = score_pairs(data.embeddings[encoder], data.people, metric)
    apart = np.abs(days[pairs.mated_at[:, 0]] - days[pairs.mated_at[:, 1]])
    rows = []
    for low, high in GAPS_DAYS:
        chosen = pairs.mated_at[(apart >= low) & (apart < high)]
        part = ScoredPairs(pairs.scores, chosen, pairs.non_mated_at, pairs.subject, False, pairs.count)
        name = f"{low} to {high} days" if high < 100_000 else f"over {low} days"
        rows.append({"encoder": encoder, "metric": metric, "gap": name, **_reading(part, o, encoder, name)})
    return rows


def _strata(data: AuditInput, encoder: str, attribute: str, o: Options) -> Table:
    """Linkage among people who share a value; bounds are not corrected for the number of strata that were looked at."""
    values = np.array(data.columns[attribute])
    rows: Table = []
    if len(set(values)) > MAX_VALUES:
        return [{"encoder": encoder, "attribute": attribute, "no_evidence": f"more than {MAX_VALUES} values"}]
    for value in sorted(set(values)):
        part = data.chosen(values == value)
        row = {"encoder": encoder, "attribute": attribute, "value": str(value), "people": part.people.count}
        try:
            metric = _best_metric(part, encoder)
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


def measured(pairs: ScoredPairs, o: Options, *purpose: str) -> Linkability:
    """Linkability under these options, with a stream of random numbers of its own."""
    return linkability(pairs, stream(o, *purpose), omega=o.omega, replicates=o.replicates, permutations=o.permutations)


def _capped(data: AuditInput, encoder: str, o: Options) -> Table:
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


def _attribute(data: AuditInput, encoder: str, attribute: str, o: Options) -> Table:
    """Within the whole cohort, and across data sets both ways when there are two and more."""
    seed = int(stream(o, encoder, attribute, "forest").integers(1 << 31))
    x, subject, values = data.embeddings[encoder], data.people.subject, data.columns[attribute]
    times = {"replicates": o.replicates, "permutations": o.permutations, "trees": o.trees}
    row = {"encoder": encoder, "attribute": attribute}
    rows: Table = []

    def add(where: str, work: Callable[[], Any]) -> None:
        try:
            rows.append({**row, "where": where, **asdict(work())})
        except ValueError as error:
            rows.append({**row, "where": where, "no_evidence": str(error)})

    if len(set(values)) > MAX_VALUES:
        return [{**row, "no_evidence": f"{len(set(values))} values; put them into bands, at most {MAX_VALUES}"}]
    add("within", partial(infer_within, x, subject, values, seed, **times))
    sets = np.array(data.columns.get("dataset", ()))
    for a in sorted(set(sets)):
        for b in sorted(set(sets) - {a}):
            one, two = sets == a, sets == b
            left = (x[one], subject[one], tuple(np.array(values)[one]))
            right = (x[two], subject[two], tuple(np.array(values)[two]))
            add(f"{a} to {b}", partial(infer_across, left, right, seed, **times))
    return rows


def stream(o: Options, *purpose: str) -> np.random.Generator:
    """One stream for each piece of work: adding one does not change the figures of another."""
    return np.random.default_rng([o.seed, *(byte for part in purpose for byte in f"{part}\0".encode())])
