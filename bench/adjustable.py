"""Adjustable de-identification of real chest films (NIH ChestX-ray14, 64 pixels): who is found, and what is still read.

    make bench NAME=adjustable
    nice -n 19 python -m bench.adjustable --data ../shared/data --steps 120 [--generate]

What is learnt (re-identification network, MAE, attackers, reader of findings, with --generate all of ours) is
learnt on the people of chest-audit-1's list; judged are the others, who are in no training. At every level of every
method the linear attacker is fitted anew on released films of auxiliary people; the network of chest-audit-1 is a
frozen one. Rank-1 among 30 people, chance 1/30; the worst attacker counts. AUROC is the mean over findings of a model
of originals that is not adapted. Parts that are in the file are not done again, unless --anew. A run of few steps shows
what few steps give: the budget stands beside the figures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

from bench.adjustable_baselines import BLURS, NOISES, RATIOS, blurred, filled, noised, trained_mae
from bench.adjustable_generated import generator_of, resynthesised
from bench.adjustable_measures import HOGS, Attackers, Frozen, Reader
from bench.adjustable_plot import curves, sheet
from bench.encoders import DATA, split
from models.cohorts import READERS
from models.id_blocking import LEVELS, Blocking
from models.reid_encoder import ReidEncoder, identity_map
from models.resynthesis.deidentify import left_over
from models.train.decoupling import codec_stage, semantics_stage
from models.train.reid import figures, reid_stage
from models.train.reid_material import Material, gathered
from models.train.reid_plan import AdjustablePlan, Line
from models.train.trained import Options, Tick

RESULTS = Path(__file__).parent / "results"
A_PERSON = 4  # auxiliary films of one person at most
Release = Callable[[Tensor], Tensor]
console = Console()


def plan_of(steps: int) -> AdjustablePlan:
    plain = AdjustablePlan().with_steps(steps)
    return replace(plain, people=12, batch=24, evaluate_every=max(steps // 4, 1), sampled=2, density=(0.0, 1.0))


def few_each(material: Material, most: int) -> Material:
    """The first films of everybody."""
    seen: dict[int, int] = {}
    rows = []
    for row, person in enumerate(material.who.tolist()):
        seen[person] = seen.get(person, 0) + 1
        if seen[person] <= most:
            rows.append(row)
    at = torch.tensor(rows)
    return replace(material, x=material.x[at], who=material.who[at], findings=material.findings[at])


@torch.no_grad()
def left(reid: ReidEncoder, x: Tensor, r: float) -> tuple[Tensor, Tensor]:
    """(X_noID, mask)."""
    pieces = [left_over(one, Blocking(r).mask(identity_map(reid, one)), x.shape[-1]) for one in torch.split(x, 64)]
    return torch.cat([noid for noid, _ in pieces]), torch.cat([mask for _, mask in pieces])


def methods(reid: ReidEncoder, fill: Release, generate: Any) -> Iterator[tuple[str, float, Release]]:
    """(method, level, films -> released films), by levels, so that a run that was cut short has all methods."""
    yield "original", 0.0, lambda x: x
    for r, pixels, ratio, spread in zip(LEVELS[::-1], BLURS[::-1], RATIOS[::-1], NOISES[::-1], strict=True):
        yield "ID-blocking alone", r, lambda x, r=r: left(reid, x, r)[0]
        if generate is not None:
            yield "ours", r, lambda x, r=r: resynthesised(generate, x, r, "ours")
            yield "ours, no semantics", r, lambda x, r=r: resynthesised(generate, x, r, "no semantics")
            yield "ours, no decoupling", r, lambda x, r=r: resynthesised(generate, x, r, "no decoupling")
        yield "Pixel-Blur", pixels, partial(blurred, pixels=pixels)
        yield "MAE", ratio, lambda x, ratio=ratio: fill(x, ratio)  # type: ignore[call-arg]
        yield "pixel noise", spread, partial(noised, spread=spread, seed=3)
        yield "mask alone", r, lambda x, r=r: left(reid, x, r)[1].float()


def shown(result: dict[str, Any]) -> None:
    table = Table("method", "level", "rank-1, other visit", "upper", "rank-1, same scan", "AUROC", "95 %")
    for one in result["points"]:
        other, same, read = one["attack"]["other visit"], one["attack"]["same scan"], one["utility"]
        row = (other["rank1"], other["upper"], same["rank1"], read["auroc"])
        table.add_row(one["method"], str(one["level"]), *map(str, row), f"{read['low']} to {read['high']}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--steps", type=int, default=2000, help="of every stage, and of the MAE")
    parser.add_argument("--generate", action="store_true", help="train re-synthesis as well, and judge it")
    parser.add_argument("--keep", type=Path, default=Path("/tmp/adjustable-bench"), help="checkpoints")
    parser.add_argument("--anew", action="store_true", help="do every part again")
    parser.add_argument("--smoke", action="store_true", help="write into --keep only")
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep = given.keep / str(given.steps)
    keep.mkdir(parents=True, exist_ok=True)
    target = keep if given.smoke else RESULTS
    path = target / "adjustable.json"
    budget = {"steps of every stage": given.steps, "cohort": "nih-chestxray14, 64 pixels"}
    result: dict[str, Any] = json.loads(path.read_text()) if path.is_file() and not given.anew else {}
    if result.get("budget") != budget:
        result = {"budget": budget, "points": []}

    def save() -> None:
        path.write_text(json.dumps(result, indent=1) + "\n")

    with Progress(console=console) as progress:
        task = progress.add_task("reading")

        def tick(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        run(result, given.data, given.steps, keep, tick, save, target if given.generate else None)
    shown(result)
    curves(result["points"], target / "adjustable.png")


def run(
    result: dict[str, Any],
    data: Path,
    steps: int,
    keep: Path,
    tick: Tick,
    save: Callable[[], None],
    generated: Path | None,
) -> None:
    """Every part that is not there yet."""
    ours, others = split("chest-audit-1", READERS["nih64"](data / "cxr"))
    line = Line.of(plan_of(steps), [ours], Options(checkpoint=keep / "bench.checkpoint"), tick)
    reid = reid_stage(line)
    mae = trained_mae(line.fitted, line.held, steps, line.plan.batch, keep / "mae.checkpoint", tick)
    result["re-identification network"] = figures(reid, line.held)
    known = gathered([ours], line.fitted.names, line.plan.picture.side, tick)
    auxiliary = few_each(known, A_PERSON)
    judged = gathered([others], line.fitted.names, line.plan.picture.side, tick)
    result["people"] = {
        "trained on, and the attackers' own": len(known.people),
        "judged": len(judged.people),
        "judged films": len(judged),
        "auxiliary films of the attackers": len(auxiliary),
    }
    attackers = Attackers.of(Frozen(), auxiliary, judged)
    generate = None
    if generated is not None:
        foundation = semantics_stage(line)
        generate = generator_of(line, reid, foundation, codec_stage(line, foundation))
        films = judged.x[:6].float()
        rows = [(r, resynthesised(generate, films, r, "ours"), *left(reid, films, r)) for r in LEVELS]
        sheet(films, rows, generated / "adjustable_sheet.png")
    reader = Reader.of_films(known)
    there = {(one["method"], one["level"]) for one in result["points"]}
    wanted = list(methods(reid, partial(filled, mae), generate))
    for number, (method, level, release) in enumerate(wanted):
        tick(f"{method} {level}", number, len(wanted))
        if (method, level) in there:
            continue
        before, after = (release(one.x.float()) for one in (auxiliary, judged))
        attack, seen = attackers.rank1(before, after)
        result["points"].append(
            {"method": method, "level": level, "attack": attack, "utility": reader.auroc(seen[:, -HOGS:], judged)}
        )
        save()


if __name__ == "__main__":
    main()
