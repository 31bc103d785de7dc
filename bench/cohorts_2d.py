"""How hard synthetic chest films and fundus pictures are to link, by baselines that nobody trained.

    make bench NAME=cohorts_2d
    python -m bench.cohorts_2d --freeze      # also writes the calibration into models/cohorts/*_difficulty.yaml

1. Leave-one-out rank-1 and D_sys (cosine; bounds by person) of raw similarity and HOG at nine difficulties.
2. Recorded sex by HOG, with and without a difference between the sexes.
3. Time to draw one picture on one core.
4. Pictures to look at: linkage against difficulty, and contact sheets (rows: people, columns: sessions).

Everything measured here is synthetic. Parts that are done are kept in results/cohorts_2d.json unless --anew.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml
from rich.console import Console
from rich.progress import track
from rich.table import Table

from gateway.evidence import People, infer_within, leave_one_out, linkability, score_pairs
from models.audit_encoders import BASELINES, embed
from models.cohorts import Cohort, chest, fundus
from models.cohorts.traits import Spread, Trait

RESULTS = Path(__file__).parent / "results"
FROZEN = Path(chest.__file__).parent
KINDS: dict[str, Callable[..., Cohort]] = {"chest": chest.synthetic_chest, "fundus": fundus.synthetic_fundus}
PARAMETERS: dict[str, tuple[dict[str, Trait], Spread]] = {
    "chest": (chest.TRAITS, chest.SPREAD),
    "fundus": (fundus.TRAITS, fundus.SPREAD),
}
DIFFICULTIES = [round(k / 8, 3) for k in range(9)]
PEOPLE, SESSIONS, SEED, SIZE = 120, 3, 2026, 64
SEX_PEOPLE = 200
REFERENCE = {"people": 3, "sessions": 2, "seed": 7, "difficulty": 0.5, "size": 64}
CELLS = 8  # of the coarse digest of a reference picture
console = Console()


def linkage(name: str) -> list[dict[str, Any]]:
    """A row for each difficulty."""
    rows = []
    for difficulty in track(DIFFICULTIES, f"{name}: linkage", console=console):
        cohort = KINDS[name](PEOPLE, SESSIONS, SEED, difficulty=difficulty, size=SIZE)
        images = [scan.load() for scan in cohort]
        people = People.of([scan.subject for scan in cohort], [scan.session for scan in cohort])
        row: dict[str, Any] = {"difficulty": difficulty}
        for encoder, embedder in BASELINES.items():
            x = embed(images, embedder)
            match = leave_one_out(x, people, "cosine")
            link = linkability(
                score_pairs(x, people, "cosine"), np.random.default_rng(SEED), replicates=300, permutations=99
            )
            row[encoder] = {
                "rank1": round(match.rank1, 3),
                "rank1_upper": round(match.upper, 3),
                "d_sys": round(link.value, 3),
                "d_sys_upper": round(link.upper, 3),
                "null_mean": round(link.null_mean, 3),
            }
            row["chance"] = round(match.chance, 4)
        rows.append(row)
    return rows


def sex(name: str) -> dict[str, float]:
    """Balanced accuracy of HOG, one picture a person, when sex shows and when it does not."""
    found = {}
    for strength in (0.0, 1.0):
        cohort = KINDS[name](SEX_PEOPLE, 1, SEED, size=SIZE, sex_strength=strength)
        x = embed((scan.load() for scan in cohort), BASELINES["hog"])
        people = People.of([scan.subject for scan in cohort])
        labels = [scan.attributes["sex"] for scan in cohort]
        inferred = infer_within(x, people.subject, labels, SEED, replicates=200, permutations=19)
        found[f"strength {strength:g}"] = round(inferred.balanced_accuracy, 3)
    return found


def speed(name: str) -> dict[str, float]:
    """Milliseconds of processor time for each picture, by side in pixels."""
    cv2.setNumThreads(1)
    out = {}
    for size in (64, 256, 512):
        scans = list(KINDS[name](8, 2, SEED, size=size))
        scans[0].load()
        began = time.process_time()
        for scan in scans:
            scan.load()
        out[f"{size}"] = round((time.process_time() - began) / len(scans) * 1e3, 1)
    return out


def digest(cohort: Cohort) -> dict[str, list[list[float]]]:
    """Means over a grid of cells, by name of the scan: the same under another OpenCV, not for another picture."""
    return {
        scan.name: np.round(
            cv2.resize(scan.load(), (CELLS, CELLS), interpolation=cv2.INTER_AREA).astype(float), 3
        ).tolist()
        for scan in cohort
    }


def _alike(kept: dict[str, Any], now: dict[str, Any]) -> bool:
    return set(kept) == set(now) and all(np.allclose(kept[scan], now[scan], atol=0.002) for scan in now)


def freeze(name: str, found: dict[str, Any]) -> None:
    """Parameters, figures and reference pictures of this very code, for a test to compare."""
    traits, spread = PARAMETERS[name]
    body = {
        "cohort": f"synthetic {name}",
        "frozen": dt.datetime.now(dt.UTC).date().isoformat(),
        "spread": {"identity": list(spread.identity), "session": list(spread.session)},
        "traits": {k: [t.mean, t.people, t.sessions, t.sex] for k, t in traits.items()},
        "measured": {"people": PEOPLE, "sessions": SESSIONS, "seed": SEED, "size": SIZE, "metric": "cosine"},
        "figures": found["linkage"],
        "sex_balanced_accuracy": found["sex"],
        "reference": REFERENCE,
        "digest": {k: [" ".join(f"{v:.3f}" for v in row) for row in rows] for k, rows in found["digest"].items()},
    }
    note = (
        f"# How hard synthetic {name} pictures are to link, frozen before anything is trained on them.\n"
        "# Written by `python -m bench.cohorts_2d --freeze`; tests compare it with the code.\n"
        "# traits: mean, deviation between people, deviation between sessions, shift by sex.\n"
    )
    text = yaml.safe_dump(body, sort_keys=False, default_flow_style=None, width=118)
    (FROZEN / f"{name}_difficulty.yaml").write_text(note + text, encoding="utf-8")


def plot(found: dict[str, Any]) -> None:
    """Rank-1 and D_sys against difficulty."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for axis, name in zip(axes, KINDS, strict=True):
        rows = found[name]["linkage"]
        at = [row["difficulty"] for row in rows]
        for encoder, tint in zip(BASELINES, ("tab:blue", "tab:red"), strict=True):
            for measure, style in (("rank1", "-"), ("d_sys", "--")):
                low = [row[encoder][measure] for row in rows]
                high = [row[encoder][f"{measure}_upper"] for row in rows]
                axis.plot(at, low, style, color=tint, label=f"{encoder}, {measure}")
                axis.fill_between(at, low, high, color=tint, alpha=0.12, linewidth=0)
        axis.set(title=f"synthetic {name}", xlabel="difficulty", ylim=(0, 1))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("linkage, shaded to its upper bound")
    axes[1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "cohorts_2d_linkage.png", dpi=90)


def contact_sheet(name: str) -> None:
    """Five people, one a row; two sessions at each of three difficulties."""
    columns = []
    for difficulty in (0.0, 0.5, 1.0):
        scans = list(KINDS[name](5, 2, 11, difficulty=difficulty, size=160, finding_share=0.8))
        shown = [np.round(_colour(name, scan) * 255).astype(np.uint8) for scan in scans]
        columns += [np.vstack(shown[k::2]) for k in range(2)]
    # Grain makes a PNG of a megabyte: a smaller sheet, and greys in steps of six.
    sheet = cv2.cvtColor(np.hstack(columns), cv2.COLOR_RGB2BGR)
    for width in (960, 800, 640, 480):
        small = cv2.resize(sheet, (width, width * sheet.shape[0] // sheet.shape[1]), interpolation=cv2.INTER_AREA)
        small = small // 6 * 6 if name == "fundus" else cv2.cvtColor(small, cv2.COLOR_BGR2GRAY) // 6 * 6
        path = RESULTS / f"cohorts_2d_{name}.png"
        cv2.imwrite(str(path), small, [cv2.IMWRITE_PNG_COMPRESSION, 9])
        if path.stat().st_size <= 300_000:
            return


def _colour(name: str, scan: Any) -> Any:
    return fundus.colour(scan) if name == "fundus" else np.repeat(scan.load()[..., None], 3, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--anew", action="store_true", help="do every part again")
    parser.add_argument("--freeze", action="store_true", help="write the calibration files")
    arguments = parser.parse_args()
    path = RESULTS / "cohorts_2d.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() and not arguments.anew else {}
    for name, make in KINDS.items():
        now = digest(make(**REFERENCE))
        if not _alike(found.get(name, {}).get("digest", {}), now):  # other code, other figures
            found[name] = {"digest": now, "synthetic": True}
        parts: dict[str, Callable[[], Any]] = {
            "linkage": lambda name=name: linkage(name),
            "sex": lambda name=name: sex(name),
            "milliseconds": lambda name=name: speed(name),
        }
        for part, work in parts.items():
            if part not in found[name]:
                found[name][part] = work()
                path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        contact_sheet(name)
        if arguments.freeze:
            freeze(name, found[name])
    plot(found)
    _show(found)


def _show(found: dict[str, Any]) -> None:
    table = Table("cohort", "difficulty", "rank-1 raw", "rank-1 HOG", "D_sys raw", "D_sys HOG", title="Synthetic")
    for name in KINDS:
        for row in found[name]["linkage"]:
            cells = [f"{row[e][m]:.2f} (<{row[e][m + '_upper']:.2f})" for m in ("rank1", "d_sys") for e in BASELINES]
            table.add_row(name, f"{row['difficulty']:g}", *cells)
    console.print(table)
    for name in KINDS:
        console.print(name, "sex", found[name]["sex"], "ms", found[name]["milliseconds"])


if __name__ == "__main__":
    main()
