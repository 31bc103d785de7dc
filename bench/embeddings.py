"""Embeddings as a release: what linkage, recorded sex and a diagnosis read at each level of sanitising.

    make bench NAME=embeddings
    python -m bench.embeddings --data ../shared/data --replicates 200

Embeddings of chest-audit-1. (1) Synthetic films: the method is fitted on 200 people, 120 others are released; finding
against none is the diagnosis. (2) NIH 64 px: people that the encoder was not trained on are released, the others are
auxiliary. Limits are set where nothing passes, so that every level is measured; the table says what would.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from gateway.audit import AuditInput, Options
from gateway.audit.embedding_release import release
from gateway.embed import open_embedder
from gateway.policy.embedding_release import EmbeddingRelease, Level, Limits, LinkabilityLimit, Rank1Limit
from models.cards import find_card, people_hash, read_people
from models.cohorts import Cohort, read_manifest, synthetic_chest

RESULT = Path(__file__).parent / "results" / "embeddings.json"
CARD = "chest-audit-1"
LEVELS = [(0, 0.0), (16, 0.0), (64, 0.0), (64, 0.5), (64, 1.0), (64, 2.0), (64, 4.0), (64, 8.0)]
NEVER = 1e-6
console = Console()


def embedded(cohort: Cohort, attributes: tuple[str, ...]) -> AuditInput:
    """Every scan by the card; attributes that a person has more than one value of are made the person's first."""
    embedder = open_embedder(CARD)
    with Progress(console=console) as bar:
        rows = [embedder.embed(scan.load()) for scan in bar.track(list(cohort), description=cohort.name)]
    scans = list(cohort)
    first: dict[tuple[str, str], str] = {}
    columns: dict[str, tuple[str, ...]] = {
        "scan": tuple(f"{i:05d}" for i in range(len(scans))),
        "subject": tuple(scan.subject for scan in scans),
        "session": tuple(f"{scan.subject}/{scan.session}" for scan in scans),
    }
    for name in attributes:
        for scan in scans:
            first.setdefault((name, scan.subject), scan.attributes.get(name, ""))
        columns[name] = tuple(first[name, scan.subject] for scan in scans)
    return AuditInput({CARD: np.stack(rows)}, columns)


def cohorts(data: Path) -> dict[str, tuple[AuditInput, AuditInput, int]]:
    """(released, auxiliary, gallery) by name."""
    found = {}
    films = synthetic_chest(320, 3, 77, difficulty=0.25)
    people = films.subjects
    whole = embedded(films, ("sex", "finding"))
    healthy = tuple("none" if one == "none" else "finding" for one in whole.columns["finding"])
    whole = AuditInput(whole.embeddings, {**whole.columns, "finding": healthy})
    chosen = np.isin(np.array(whole.columns["subject"]), people[:120])
    found["synthetic chest"] = (whole.chosen(chosen), whole.chosen(~chosen), 50)
    if (data / "cxr" / "manifest.csv").exists():
        nih = read_manifest(data / "cxr", "nih-chestxray14")
        card, folder = find_card(CARD)
        trained = read_people(card, folder)
        whole = embedded(nih, ("sex",))
        seen = np.array([people_hash(nih.name, one) in trained for one in whole.columns["subject"]])
        found["nih64"] = (whole.chosen(~seen), whole.chosen(seen), 30)
    return found


def measured(released: AuditInput, auxiliary: AuditInput, gallery: int, options: Options, bar: Progress) -> list[Any]:
    """One row a level: the worst attack of each kind, attributes before and after."""
    policy = EmbeddingRelease(
        name="bench",
        erase=("sex",),
        levels=tuple(Level(identity_directions=k, noise=noise) for k, noise in LEVELS),
        limits=Limits(
            linkability=LinkabilityLimit(max_excess_upper=NEVER),
            rank1=Rank1Limit(max_upper=NEVER, gallery=gallery),
            attribute_inference={"sex": 0.5},
        ),
    )
    task = bar.add_task("attacks")
    found = release(
        released,
        auxiliary,
        policy,
        bytes(range(32)),
        options,
        lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
    )
    rows = []
    for level, (directions, noise) in enumerate(LEVELS):
        attacks = [row for row in found.report["tables"]["attacks"] if row["level"] == level and "d_sys" in row]
        probes = [row for row in found.report["tables"]["probes"] if row["level"] == level]
        linked = max(attacks, key=lambda row: row["d_sys"]["excess_upper"])
        first = max(attacks, key=lambda row: row["fixed_gallery"]["upper"])
        rows.append(
            {
                "identity_directions": directions,
                "noise": noise,
                "d_sys": linked["d_sys"]["value"],
                "excess_upper": linked["d_sys"]["excess_upper"],
                "attacker": f"{linked['view']}, {linked['metric']}, {linked['attack']}",
                "rank1": first["fixed_gallery"]["rank1"],
                "rank1_upper": first["fixed_gallery"]["upper"],
                "chance": first["fixed_gallery"]["chance"],
                "attributes": {
                    row["attribute"]: {
                        when: [row[when]["balanced_accuracy"], row[when]["upper"]] for when in ("before", "after")
                    }
                    for row in probes
                    if "before" in row
                },
            }
        )
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments.add_argument("--replicates", type=int, default=200)
    given = arguments.parse_args()
    options = Options(replicates=given.replicates, permutations=given.replicates - 1, trees=100, draws=100)
    result: dict[str, Any] = {"command": f"python -m bench.embeddings --replicates {given.replicates}", "card": CARD}
    result |= {"machine": platform.machine(), "cohorts": {}}
    for name, (released, auxiliary, gallery) in cohorts(given.data).items():
        began = time.perf_counter()
        with Progress(console=console) as bar:
            rows = measured(released, auxiliary, gallery, options, bar)
        result["cohorts"][name] = {
            "people": released.people.count,
            "auxiliary_people": auxiliary.people.count,
            "gallery": gallery,
            "synthetic": name.startswith("synthetic"),
            "levels": rows,
            "seconds": round(time.perf_counter() - began, 1),
        }
        show(name, result["cohorts"][name])
        RESULT.write_text(json.dumps(result, indent=1) + "\n")


def show(name: str, found: dict[str, Any]) -> None:
    table = Table(title=f"{name}: {found['people']} people, the worst attack at each level")
    names = sorted({key for row in found["levels"] for key in row["attributes"]})
    for column in ("directions", "noise", "D_sys", "excess ≤", "rank-1", "≤", "chance", *(f"{n} ≤" for n in names)):
        table.add_column(column)
    for row in found["levels"]:
        cells = [row["identity_directions"], row["noise"]]
        cells += [f"{row[key]:.3f}" for key in ("d_sys", "excess_upper", "rank1", "rank1_upper", "chance")]
        for one in names:
            before, after = (row["attributes"].get(one, {}).get(when, [0, 0]) for when in ("before", "after"))
            cells.append(f"{before[0]:.2f} → {after[0]:.2f} ({after[1]:.2f})")
        table.add_row(*map(str, cells))
    console.print(table)


if __name__ == "__main__":
    main()
