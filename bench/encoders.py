"""How strong our own encoders are on people they were not trained on, beside encoders without training.

    make bench NAME=encoders
    python -m bench.encoders --data ../shared/data

NIH ChestX-ray14 (64 px), Hannover, RIDB and Lesjak longitudinal where they are, and synthetic people. Who was trained
on is read off the cards; nobody of them is judged. `hog, whitened` and `hog, discriminant` are metrics fitted on people
that the card was trained on (gateway.evidence.metric_head). Of volumes, raw and HOG see the planes that ours sees.

Leave-one-out rank-1 over queries, D_sys with the 99th percentile of a bootstrap over people, the strongest of the
distances for every encoder alike; recorded sex by a random forest. Parts that are done are kept in
results/encoders.json unless --anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from gateway.embed import open_embedder
from gateway.evidence import METRICS, d_sys, leave_one_out, score_pairs
from gateway.evidence.metric_head import fit_head
from gateway.learn.judged import PROTOCOL, Embed, embedded, figures, people_of
from models.audit_encoders import BASELINES
from models.cards import SHIPPED, find_card, people_hash, read_people
from models.cohorts import READERS, Cohort, Scan, synthetic_brains, synthetic_chest, synthetic_fundus

RESULT = Path(__file__).parent / "results" / "encoders.json"
DATA = Path(__file__).parents[2] / "shared" / "data"
REPLICATES = 100
SEED = 990  # of synthetic people: none of the cards' training seeds
console = Console()


@dataclass(frozen=True, slots=True)
class Trial:
    """One cohort and the card that attacks it."""

    card: str
    cohort: Callable[[], Cohort]


def trials(data: Path) -> dict[str, Trial]:
    def real(reader: str, folder: str) -> Callable[[], Cohort]:
        return lambda: READERS[reader](data / folder)

    return {
        "nih64": Trial("chest-audit-1", real("nih64", "cxr")),
        "hannover": Trial("chest-audit-1", real("hannover", "cxr")),
        "synthetic chest": Trial("chest-audit-1", lambda: synthetic_chest(50, 2, SEED)),
        "ridb": Trial("fundus-audit-1", real("ridb", "fundus")),
        "synthetic fundus": Trial("fundus-audit-1", lambda: synthetic_fundus(50, 2, SEED, size=96)),
        "lesjak longitudinal": Trial("brain-audit-1", real("lesjak-longitudinal", "brain_mri")),
        "synthetic brains": Trial("brain-audit-1", lambda: synthetic_brains(40, 2, SEED, "medium", spacing_mm=3.0)),
    }


def split(card: str, cohort: Cohort) -> tuple[Cohort, Cohort]:
    """(people that the card was trained on, the others)."""
    seen = read_people(find_card(card)[0], SHIPPED)
    ours = [subject for subject in cohort.subjects if people_hash(cohort.name, subject) in seen]
    return cohort.of(ours), cohort.of([subject for subject in cohort.subjects if subject not in set(ours)])


def planes_of(baseline: str) -> Embed:
    """A baseline on the three middle planes of a volume."""
    from models.audit_encoders.own_brains import planes

    def embed(pixels: Any, spacing_mm: Any) -> Any:
        return np.concatenate([BASELINES[baseline](one) for one in planes(pixels, spacing_mm, 96)[:, 1].numpy()])

    return embed


def encoders(card: str) -> dict[str, Embed]:
    volumes = "MR" in find_card(card)[0].modalities
    baselines = {name: planes_of(name) if volumes else BASELINES[name] for name in BASELINES}
    return {**baselines, "own": open_embedder(card).embed}


def loaded(cohort: Cohort) -> Cohort:
    """The same, each scan loaded once and kept: drawing synthetic brains takes longer than embedding them."""

    def keep(scan: Scan) -> Scan:
        return replace(scan, load=cache(scan.load))

    return replace(cohort, scans=tuple(map(keep, cohort)))


def judge(trial: Trial, tick: Callable[[str, int, int], None]) -> dict[str, Any]:
    seen, others = map(loaded, split(trial.card, trial.cohort()))
    rows: list[dict[str, Any]] = []
    for name, embed in encoders(trial.card).items():
        held = embedded(embed, others, lambda what, done, total, name=name: tick(f"{name}: {what}", done, total))
        forms = {name: held}
        if name == "hog" and len(seen):
            known = embedded(embed, seen, tick)
            whose = people_of(seen).subject
            forms |= {f"hog, {kind}": fit_head(known, whose, kind)(held) for kind in ("whitened", "discriminant")}
        for form, embeddings in forms.items():
            tick(f"{form}: figures", 0, 1)
            rows.append({"encoder": form, **strongest(embeddings, others)})
    return {"card": trial.card, "synthetic": others.synthetic, "people_trained_on": len(seen.subjects), "rows": rows}


def strongest(embeddings: Any, cohort: Cohort) -> dict[str, Any]:
    """Figures by the distance with the largest D_sys, and rank-1 by each."""
    people = people_of(cohort)
    pairs = {metric: score_pairs(embeddings, people, metric) for metric in METRICS}
    best = max(METRICS, key=lambda metric: d_sys(pairs[metric].mated, pairs[metric].non_mated))
    rank1 = {metric: leave_one_out(embeddings, people, metric).rank1 for metric in METRICS}
    return {**asdict(figures(embeddings, cohort, best, replicates=REPLICATES)), "rank1_by_metric": rank1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", nargs="*", help="these sets, anew")
    parser.add_argument("--anew", action="store_true", help="do every part again")
    arguments = parser.parse_args()
    result: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() and not arguments.anew else {}
    sets = result.setdefault("sets", {})
    for name, trial in trials(arguments.data).items():
        if name in sets and name not in (arguments.only or []):
            continue
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(name)
            try:
                sets[name] = judge(
                    trial,
                    lambda what, done, total, name=name, task=task, bar=bar: bar.update(
                        task, description=f"{name}, {what}", completed=done, total=total
                    ),
                )
            except OSError:
                sets[name] = {"absent": "not in the data folder"}
        result |= {
            "protocol": PROTOCOL,
            "distance": f"the strongest of {', '.join(METRICS)} by D_sys on the people judged, for every encoder",
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "command": "python -m bench.encoders",
        }
        RESULT.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    show(sets)


def show(sets: dict[str, Any]) -> None:
    table = Table(
        "set", "people (mates)", "encoder", "rank-1", "D_sys", "bound", "AUC", "sex", title="People not trained on"
    )
    for name, found in sets.items():
        for row in found.get("rows", []):
            sex = "" if row["sex"] is None else f"{row['sex']:.2f} ({row['sex_lower']:.2f}–{row['sex_upper']:.2f})"
            table.add_row(
                name + (" (synthetic)" if found["synthetic"] and "synthetic" not in name else ""),
                f"{row['people']} ({row['people_with_mates']})",
                row["encoder"],
                f"{row['rank1']:.3f}",
                f"{row['d_sys']:.3f}",
                f"{row['d_sys_upper']:.3f}",
                f"{row['auc']:.3f}",
                sex,
            )
    console.print(table)


if __name__ == "__main__":
    main()
