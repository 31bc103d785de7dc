"""The audit's tables on people whom no encoder of ours was trained on: what `bench.audit` prints of each data set.

Synthetic brains (two cohorts, so that there is something to cross), NIH ChestX-ray14 at 64 pixels with Hannover, and
RIDB. Encoders without training (raw similarity, HOG; of volumes they see the planes that ours sees) beside our card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.encoders import encoders, loaded, split
from gateway.audit.inputs import AuditInput
from gateway.audit.measures import measure
from gateway.audit.options import Options
from gateway.audit.options import Table as Rows
from gateway.learn.judged import embedded
from models.cohorts import READERS, Cohort, synthetic_brains

# People and seed of synthetic brains: of 21 those whom brain-audit-1 was not trained on, of 990 everybody.
BRAINS = ((120, 21), (40, 990))
OPTIONS = Options(replicates=400, permutations=99, trees=200)
Tick = Callable[[str, int, int], None]
KEPT = ("linkage", "attributes", "capped")


@dataclass(frozen=True, slots=True)
class Set:
    """Cohorts that one card attacks, as one; two and more are crossed. `only` some tables: other sets have the rest."""

    card: str
    cohorts: Callable[[], Sequence[Cohort]]
    only: tuple[str, ...] = KEPT


def sets(data: Path) -> dict[str, Set]:
    def real(reader: str, folder: str) -> Callable[[], Sequence[Cohort]]:
        return lambda: [READERS[reader](data / folder)]

    def brains() -> Sequence[Cohort]:
        return [synthetic_brains(people, 2, seed, "medium", spacing_mm=3.0) for people, seed in BRAINS]

    return {
        "nih64": Set("chest-audit-1", real("nih64", "cxr")),
        "hannover": Set("chest-audit-1", real("hannover", "cxr")),
        "ridb": Set("fundus-audit-1", real("ridb", "fundus")),
        "nih64 and hannover": Set(
            "chest-audit-1", lambda: [READERS[name](data / "cxr") for name in ("nih64", "hannover")], ("attributes",)
        ),
        "synthetic brains": Set("brain-audit-1", brains),
    }


def tables_of(one: Set, tick: Tick) -> dict[str, Any]:
    """Every table of the audit, of people not trained on. Raises OSError where the data are absent."""
    parts = [loaded(split(one.card, cohort)[1]) for cohort in one.cohorts()]
    everybody = Cohort(
        "+".join(part.name for part in parts),
        tuple(
            replace(scan, subject=f"{part.name}/{scan.subject}", attributes={**scan.attributes, "dataset": part.name})
            for part in parts
            for scan in part
        ),
        synthetic=any(part.synthetic for part in parts),
    )
    arrays = {
        name if name != "own" else one.card: embedded(
            embed, everybody, lambda what, done, total, name=name: tick(f"{name}: {what}", done, total)
        )
        for name, embed in encoders(one.card).items()
    }
    columns = {
        "scan": tuple(str(number) for number in range(len(everybody))),
        "subject": tuple(scan.subject for scan in everybody),
        "session": tuple(f"{scan.attributes['dataset']}/{scan.session}" for scan in everybody),
    }
    if len(parts) > 1:
        columns["dataset"] = tuple(scan.attributes["dataset"] for scan in everybody)
    if all(scan.attributes.get("sex") for scan in everybody):
        columns["sex"] = tuple(scan.attributes["sex"] for scan in everybody)
    report = measure(AuditInput(arrays, columns), OPTIONS, tick, one.only)
    found = {name: _slim(report["tables"].get(name, [])) for name in KEPT}
    found["canberra_against_cosine"] = list(_versus(found["linkage"]))
    return {
        "synthetic": everybody.synthetic,
        "card": one.card,
        "people": report["people"],
        "scans": report["scans"],
        "tables": found,
    }


def _slim(rows: Rows) -> Rows:
    return [{key: value for key, value in row.items() if key != "densities"} for row in rows]


def _versus(linkage: Rows) -> Iterable[dict[str, Any]]:
    """Which of paper A's two distances links more, encoder by encoder."""
    by = {(row["encoder"], row["metric"]): row for row in linkage if "d_sys" in row}
    for encoder in dict.fromkeys(row["encoder"] for row in linkage):
        pair = [by.get((encoder, metric)) for metric in ("canberra", "cosine")]
        if None in pair:
            continue
        row: dict[str, Any] = {"encoder": encoder}
        for name, found in zip(("canberra", "cosine"), pair, strict=True):
            assert found is not None
            row[name] = {key: found["d_sys"][key] for key in ("value", "upper")} | {"rank1": found["rank1"]["rank1"]}
        yield row


def strongest(found: dict[str, Any]) -> tuple[dict[str, float], dict[str, float], dict[str, Any]]:
    """By data set: rank-1 and sex of the encoder that finds most, and which encoder it was, with its bounds."""
    rank1: dict[str, float] = {}
    sex: dict[str, float] = {}
    who: dict[str, Any] = {}
    for name, entry in found.items():
        if "tables" not in entry:
            continue
        linked = [row for row in entry["tables"]["linkage"] if "rank1" in row]
        who[name] = {}
        if linked:
            best = max(linked, key=lambda row: row["rank1"]["rank1"])
            rank1[name] = best["rank1"]["rank1"]
            keys = ("encoder", "metric")
            who[name]["rank1"] = {key: best[key] for key in keys} | {"upper": best["rank1"]["upper"]}
        inferred = [row for row in entry["tables"]["attributes"] if row.get("where") == "within"]
        inferred = [row for row in inferred if "balanced_accuracy" in row]
        if inferred:
            best = max(inferred, key=lambda row: row["balanced_accuracy"])
            sex[name] = best["balanced_accuracy"]
            who[name]["sex"] = {key: best[key] for key in ("encoder", "lower", "upper", "people")}
    return rank1, sex, who


def show(found: dict[str, Any], console: Console) -> None:
    """Every table, bounds in brackets."""
    for name, entry in found.items():
        if "tables" not in entry:
            console.print(f"{name}: {entry['absent']}")
            continue
        title = f"{name}{' (synthetic)' if entry['synthetic'] and 'synthetic' not in name else ''}: "
        title += f"{entry['people']} people not trained on, {entry['scans']} scans"
        for part, heads, cells in PRINTED:
            rows = entry["tables"].get(part, [])
            if not rows:
                continue
            table = Table(*heads, title=f"{title}; {part.replace('_', ' ')}")
            for row in rows:
                table.add_row(*(cells(row) if "no_evidence" not in row else _none(row, len(heads))))
            console.print(table)


def _none(row: dict[str, Any], width: int) -> tuple[str, ...]:
    named = [str(row[key]) for key in ("encoder", "metric", "where", "mates") if key in row]
    return (", ".join(named), f"no evidence: {row['no_evidence']}", *[""] * (width - 2))


def _linkage(row: dict[str, Any]) -> tuple[str, ...]:
    d, one, fixed = row["d_sys"], row["rank1"], row["fixed_gallery"]
    return (
        row["encoder"],
        row["metric"],
        f"{d['value']:.3f} (≤ {d['upper']:.3f}; shuffled {d['null_mean']:.3f})",
        f"{row['auc']:.3f}",
        f"{one['rank1']:.3f} of {one['queries']} (people ≤ {one['upper']:.3f})",
        f"{fixed['rank1']:.3f} (≤ {fixed['upper']:.3f}) of {fixed['gallery']}",
    )


def _attribute(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["encoder"],
        row["attribute"],
        row["where"],
        f"{row['balanced_accuracy']:.3f} ({row['lower']:.3f} to {row['upper']:.3f})",
        f"{row['precision']:.3f}",
        f"{row['p']:.3f}",
    )


def _both(row: dict[str, Any]) -> tuple[str, ...]:
    cells = [f"{row[m]['value']:.3f} (≤ {row[m]['upper']:.3f}), {row[m]['rank1']:.3f}" for m in ("canberra", "cosine")]
    return (row["encoder"], *cells, f"{row['canberra']['value'] - row['cosine']['value']:+.3f}")


def _capped(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["encoder"],
        f"{row['rank1_full']:.3f}",
        f"{row['rank1_capped_mean']:.3f} ± {row['rank1_capped_sd']:.3f} ({row['draws']} draws)",
        f"{row['rank1_capped_mean'] - row['rank1_full']:+.3f}",
    )


PRINTED: tuple[tuple[str, tuple[str, ...], Callable[[dict[str, Any]], tuple[str, ...]]], ...] = (
    ("linkage", ("encoder", "distance", "D_sys", "AUC", "rank-1, leave one out", "rank-1, one mate"), _linkage),
    ("canberra_against_cosine", ("encoder", "Canberra: D_sys, rank-1", "cosine", "difference of D_sys"), _both),
    ("attributes", ("encoder", "attribute", "where", "balanced accuracy", "precision", "p"), _attribute),
    ("capped", ("encoder", "rank-1, all scans", "2 to 5 scans each", "difference"), _capped),
)
