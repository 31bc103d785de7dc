"""Adjustable de-identification of chest films: who is still found, and what is still read, for every method and level.

    make bench NAME=adjustable
    nice -n 19 python -m bench.adjustable --steps 300 --cohort synthetic-chest

Cohorts: `bench.adjustable_films`. On drawn people ours is the shipped card, and what it is compared with takes --steps;
on real films (64 pixels, --data) all is trained here, ours only with --generate. At every level of every method the
linear attacker is fitted anew on released films of auxiliary people; the network of chest-audit-1 is a frozen one.
Rank-1 among 30 people by another visit, chance 1/30; the worst attacker counts. AUROC of findings, Dice of their
outlines and BLEU of reports are of models of originals that are not adapted. Points that are in the file are not done
again, unless --anew, another card, other people or other steps. No figure of drawn people is a figure of patients, and
a run of few steps shows what few steps give: the budget stands beside the figures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.adjustable_films import REAL, SEEDS, Setting, drawn, real
from bench.adjustable_generated import resynthesised, shown_at
from bench.adjustable_measures import Attackers, Frozen
from bench.adjustable_methods import FEW, LEVELS, Method, methods, networks_of
from bench.adjustable_plot import curves, sheet
from bench.adjustable_readers import Readers
from bench.adjustable_summary import draws_file, key_of, rank1_of, summary
from bench.encoders import DATA
from models.cards import find_card
from models.train.trained import Tick

RESULTS = Path(__file__).parent / "results"
SIDE = 64
console = Console()


def setting_of(name: str, given: argparse.Namespace, keep: Path, tick: Tick) -> Setting:
    return real(given.data, SIDE, tick) if name == REAL else drawn(name, given.card, SIDE, keep, tick)


def run(
    setting: Setting,
    wanted: Sequence[Method],
    readers: Readers,
    points: list[dict[str, Any]],
    draws: Path,
    save: Callable[[], None],
    tick: Tick,
) -> None:
    """Every point that is not there yet, into `points`; its resamplings of people into the file `draws`."""
    attackers = Attackers.of(Frozen(), setting.auxiliary.material, setting.judged.material)
    drawn_before = dict(np.load(draws)) if draws.is_file() else {}
    for number, method in enumerate(wanted):
        tick(f"{setting.name}: {method.name} {method.level:g}", number, len(wanted))
        there = {(point["method"], point["level"]): point for point in points}.get((method.name, method.level))
        if there is not None and there["of"] == method.of:
            continue
        before, after = (method.release(x) for x in (setting.auxiliary.x, setting.judged.x))
        attack, seen = attackers.rank1(before, after)
        point = {"method": method.name, "level": method.level, "of": method.of, "attack": attack}
        for measure, read in readers.read(after, seen, setting.judged).items():
            point[measure] = read.told(measure)
            drawn_before[key_of(point, measure)] = read.draws
        if there is not None:
            points.remove(there)
        points.append(point)
        np.savez_compressed(draws, **drawn_before)
        save()


def shown(points: list[dict[str, Any]], name: str) -> None:
    table = Table(
        "method", "level", "rank-1, other visit", "upper", "rank-1, same scan", "AUROC", "Dice", "BLEU", title=name
    )
    for one in points:
        read = [f"{one[measure][measure]:.3f}" if measure in one else "" for measure in ("auroc", "dice", "bleu")]
        same = one["attack"]["same scan"]["rank1"]
        upper = one["attack"]["other visit"]["upper"]
        table.add_row(one["method"], f"{one['level']:g}", str(rank1_of(one)), str(upper), str(same), *read)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohort", action="append", choices=(REAL, *SEEDS), help="one or several; all unless said")
    parser.add_argument("--method", action="append", help="one or several, by name; all unless said")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--card", default="chest-resynth-small-1", help="ours on drawn people")
    parser.add_argument("--steps", type=int, default=2000, help="of every network that is trained here")
    parser.add_argument(
        "--generate", action="store_true", help="on real films: train re-synthesis as well, and judge it"
    )
    parser.add_argument("--keep", type=Path, default=Path("/tmp/adjustable-bench"), help="films, networks, resamplings")
    parser.add_argument("--anew", action="store_true", help="do every point again")
    parser.add_argument("--smoke", action="store_true", help="write into --keep only")
    given = parser.parse_args()
    torch.set_num_threads(1)
    target = given.keep if given.smoke else RESULTS
    given.keep.mkdir(parents=True, exist_ok=True)
    path = target / "adjustable.json"
    result: dict[str, Any] = json.loads(path.read_text()) if path.is_file() and not given.anew else {}
    points: dict[str, list[dict[str, Any]]] = {
        cohort: [{"method": method, **one} for method, some in of.items() for one in some]
        for cohort, of in result.get("curves", {}).items()
    }

    card, _ = find_card(given.card)
    weights = card.weights.sha256 if card.weights is not None else ""

    def save() -> None:
        found = summary(points, given.keep, RESULTS, weights)
        path.write_text(json.dumps({**found, "cohorts": result.get("cohorts", {})}, indent=1) + "\n")

    with Progress(console=console) as progress:
        task = progress.add_task("reading")

        def tick(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        for name in given.cohort or (*SEEDS, REAL):
            keep = given.keep / f"{'real' if name == REAL else 'drawn'}-{given.steps}"  # scanners share what is learnt
            keep.mkdir(exist_ok=True)
            setting = setting_of(name, given, given.keep, tick)
            if result.get("cohorts", {}).get(name, {}).get("people", setting.people()) != setting.people():
                points.pop(name, None)  # of other people: nothing of them stands beside these
            names = given.method or ()
            one = networks_of(setting, given.card, given.steps, keep, tick, generate=given.generate, names=names)
            budget: dict[str, Any] = {"steps of what is trained here": given.steps, "ours": one.of}
            if name != REAL:
                budget["steps of ours"] = card.source
            budget |= {"numbers of the networks": one.numbers(), "people": setting.people()}
            result.setdefault("cohorts", {})[name] = budget
            readers = Readers.of(setting.known, given.steps, keep, tick)
            wanted = [method for method in methods(one) if not names or method.name in names]
            run(setting, wanted, readers, points.setdefault(name, []), draws_file(given.keep, name), save, tick)
            if one.ours is not None and "unseen" not in name:
                films, ours = setting.judged.x[:6], one.ours
                rows = [(r, resynthesised(ours, films, r, "ours"), *shown_at(ours, films, r)) for r in (*LEVELS, *FEW)]
                sheet(films, rows, target / f"adjustable_sheet_{name}.png")
    save()
    for name, some in points.items():
        shown(some, name)
    curves(points, target / "adjustable.png")


if __name__ == "__main__":
    main()
