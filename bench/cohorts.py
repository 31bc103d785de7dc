"""How linkable synthetic brains are at each difficulty, by attackers without training; freezes the calibration.

    make bench NAME=cohorts
    python -m bench.cohorts --people 60 --freeze

For each difficulty: leave-one-out rank-1 and D_sys of other visits, with their bounds over people, by the baselines of
`models.audit_encoders` on nine slices (three of each orientation) and by the whole volume at 12 mm; recorded sex by
head size and HOG at the named levels. Writes results/cohorts.json, results/cohorts.png and results/cohorts_brains.png;
`--freeze` writes what was measured, and figures of reference scans, to models/cohorts/brains_difficulty.yaml.

Difficulties that are done are kept in the result file and not done again unless --anew.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.cohorts_sheet import curves, sheet
from gateway.evidence import People, infer_within, leave_one_out, linkability, score_pairs, separation
from models.audit_encoders import BASELINES, Encoder
from models.cohorts import synthetic_brains
from models.cohorts.brains_reference import reference_figures
from models.cohorts.cohort import Pixels
from models.cohorts.difficulty import FROZEN, frozen

RESULTS = Path(__file__).parent / "results"
DIFFICULTIES = (0.0, 0.15, 0.3, 0.5, 0.625, 0.75, 1.0)
SEED, SPACING_MM = 505, 3.0
WHERE = (0.35, 0.5, 0.65)  # of each axis
VOLUME_MM = 12.0
console = Console()


def on_slices(volume: Pixels, encoder: Encoder) -> Pixels:
    """(slices, rows, columns) -> (9 x dimensions,): the encoder on three slices of each orientation, joined."""
    cuts = [np.take(volume, int(n * share), axis) for axis, n in enumerate(volume.shape) for share in WHERE]
    return np.concatenate([encoder(np.ascontiguousarray(cut)) for cut in cuts])


def whole(volume: Pixels, spacing_mm: float) -> Pixels:
    """The volume averaged to about 12 mm, mean 0 and variance 1."""
    by = max(1, round(VOLUME_MM / spacing_mm))
    z, y, x = (n // by for n in volume.shape)
    small = volume[: z * by, : y * by, : x * by].reshape(z, by, y, by, x, by).mean((1, 3, 5)).ravel()
    return np.asarray((small - small.mean()) / max(float(small.std()), 1e-6), np.float32)


def measured(difficulty: float, people: int) -> dict[str, Any]:
    """The rows of one difficulty."""
    cohort = synthetic_brains(people, 2, SEED, difficulty, spacing_mm=SPACING_MM)
    labels = People.of([scan.subject for scan in cohort], [scan.session for scan in cohort])
    vectors: dict[str, list[Pixels]] = {name: [] for name in (*BASELINES, "volume")}
    began = time.process_time()
    for scan in track(cohort.scans, f"difficulty {difficulty}", console=console):
        volume = scan.load()
        vectors["volume"].append(whole(volume, SPACING_MM))
        for name, encoder in BASELINES.items():
            vectors[name].append(on_slices(volume, encoder))
    seconds = (time.process_time() - began) / len(cohort)
    rows = [_row(difficulty, name, np.stack(found), labels) for name, found in vectors.items()]
    sex = [scan.attributes["sex"] for scan in cohort]
    size = np.array([[scan.masks["head"]().sum(), scan.masks["brain"]().sum()] for scan in cohort], np.float32)
    inferred = {}
    for name, features in {"head and brain volume": size, "hog": np.stack(vectors["hog"])}.items():
        found = infer_within(features, labels.subject, sex, 0, replicates=400, permutations=199, trees=100)
        inferred[name] = {"balanced_accuracy": found.balanced_accuracy, "upper": found.upper, "p": found.p}
    return {"rows": rows, "sex": inferred, "cpu_seconds_a_scan": seconds}


def _row(difficulty: float, name: str, vectors: Pixels, labels: People) -> dict[str, Any]:
    rank = leave_one_out(vectors, labels, "cosine")
    pairs = score_pairs(vectors, labels, "cosine")
    found = linkability(pairs, np.random.default_rng(0), replicates=400, permutations=199)
    return {
        "difficulty": difficulty,
        "encoder": name,
        "people": labels.count,
        "rank1": rank.rank1,
        "rank1_upper": rank.upper,
        "chance": rank.chance,
        "d_sys": found.value,
        "d_sys_upper": found.upper,
        "d_sys_null": found.null_mean,
        "auc": separation(pairs.mated, pairs.non_mated)[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--anew", action="store_true", help="measure every difficulty again")
    parser.add_argument("--freeze", action="store_true", help=f"write {FROZEN.name}")
    arguments = parser.parse_args()
    path = RESULTS / "cohorts.json"
    result: dict[str, Any] = json.loads(path.read_text()) if path.is_file() and not arguments.anew else {}
    if result.get("strengths") != frozen()["strengths"] or result.get("people") != arguments.people:
        result = {"strengths": frozen()["strengths"], "people": arguments.people, "difficulties": {}}
    for difficulty in DIFFICULTIES:
        if str(difficulty) not in result["difficulties"]:
            result["difficulties"][str(difficulty)] = measured(difficulty, arguments.people)
            path.write_text(json.dumps(result, indent=1) + "\n")
    rows = list(_rows(result))
    result |= {
        "synthetic": True,
        "levels": frozen()["levels"],
        "monotone": {name: _monotone(rows, name) for name in dict.fromkeys(row["encoder"] for row in rows)},
        "machine": platform.machine(),
        "command": f"python -m bench.cohorts --people {arguments.people}",
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
    curves(rows, frozen()["levels"], RESULTS / "cohorts.png")
    with console.status("drawing brains"):
        sheet(RESULTS / "cohorts_brains.png")
    if arguments.freeze:
        _freeze(rows)
    _show(rows)


def _rows(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for difficulty in DIFFICULTIES:
        yield from result["difficulties"][str(difficulty)]["rows"]


def _monotone(rows: list[dict[str, Any]], encoder: str, slack: float = 0.05) -> bool:
    """Both figures fall from easy to hard, but for `slack`: the cohort is a sample."""
    mine = [row for row in rows if row["encoder"] == encoder]
    return all(np.diff([row[name] for row in mine]).max() <= slack for name in ("rank1", "d_sys"))


def _freeze(rows: list[dict[str, Any]]) -> None:
    kept = ("difficulty", "encoder", "rank1", "rank1_upper", "d_sys", "d_sys_upper", "auc")
    document = {
        "levels": frozen()["levels"],
        "strengths": frozen()["strengths"],
        "measured": [{k: row[k] if isinstance(row[k], str) else round(row[k], 3) for k in kept} for row in rows],
        "reference": reference_figures(),
    }
    head = (
        "# How hard synthetic brains are to link; frozen before any anonymiser was trained (bench.cohorts --freeze).\n"
        "# `strengths`: factors, linear between rows. `measured`: other-visit linkage by attackers without training,\n"
        f"# {rows[0]['people']} people x 2 visits, T1, 3 mm. `reference`: figures of fixed scans; a test compares.\n"
    )
    FROZEN.write_text(head + yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=118))


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table("difficulty", "attacker", "rank-1", "at most", "D_sys", "at most", "AUC", title="Synthetic brains")
    for row in rows:
        figures = (row["rank1"], row["rank1_upper"], row["d_sys"], row["d_sys_upper"], row["auc"])
        table.add_row(f"{row['difficulty']}", row["encoder"], *(f"{one:.3f}" for one in figures))
    console.print(table)


if __name__ == "__main__":
    cv2.setNumThreads(1)
    main()
