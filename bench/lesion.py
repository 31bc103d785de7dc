"""The lesion anonymiser on synthetic tumours: a card trained here, what it makes of other people, and who is found.

    make bench NAME=lesion
    python -m bench.lesion --people 8 --tested 4 --learners 4 --judged 3 --steps 40 --updates 9 --voxel 6 --side 40 \\
        --smoke
    python -m bench.lesion --card lesion-brain-small-1 --tested 300 --auxiliary 100 --learners 24 --judged 30 \\
        --updates 600 --voxel 3

Parts, each kept in the result file and not done again unless --anew: `card` (trained, or that of --card, with what it
remembers), `vae` (SSIM, PSNR, MSE; the paper's SSIM is 0.982), `released` (seam, coherence, lesion), `anonymity` (rate
at 3.68 dB, with the paper's baselines; the paper's rate is 0.86), `linkage` (rank-1 and D_sys of frozen and adaptive
attackers before and after: whole, background, lesion and head mask apart), `segmentation` and `classification` by what
they were trained on (`lesion_utility`), `seconds` (a volume at 1, 4, 20 steps). The figures by which the anonymiser is
judged, their targets and whether they are met stand beside the parts. Writes results/lesion.json and
results/lesion.png; with --smoke nothing there, because so little training means nothing.

Four groups of people, nobody in two: `tested` (two visits; who is found), `auxiliary` (adaptive attackers learn on two
visits and what was released of one), `learners` (segmentation and classification learn on them) and `judged` (real, on
whom these are judged). The last two are of --task-difficulty.
Not here: degraded masks (`lesion_masks`), several cards.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from safetensors.torch import load_file

from bench.lesion_linkage import VIEWS, attackers, linkage
from bench.lesion_measures import anonymity_rates, reconstructions, released_figures, seconds_by_steps
from bench.lesion_released import Released, release_all
from bench.lesion_sheet import contact_sheet
from bench.lesion_summary import summary
from bench.lesion_utility import ARMS, arm_of, classification, segmentation, slices_of
from gateway.learn.training import write_trained
from models.cards import SHIPPED, CardFolder, find_card, people_hash, read_people
from models.cohorts import Cohort, synthetic_brains
from models.lesion_anonymiser import Domain, LesionParts, Settings, domain_of, parts_of
from models.train.lesion import LesionPlan, train_lesion
from models.train.lesion_material import visits_of
from models.train.trained import Options

RESULTS = Path(__file__).parent / "results"
TRAIN_SEED, TEST_SEED, LEARN_SEED, JUDGE_SEED, AUXILIARY_SEED = 611, 612, 613, 614, 615  # other people
TUMOURS = {"HGG": 0.5, "LGG": 0.5}
console = Console()


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run is: results of another one are not mixed with it."""

    people: int
    tested: int
    steps: int
    voxel: float
    side: int
    mode: str
    difficulty: str
    sequences: str
    auxiliary: int
    learners: int
    judged: int
    updates: int  # of each network that is trained on what was released
    seeds: int
    task_difficulty: str  # of the people whom segmentation and classification learn and are judged on
    card: str = ""  # one that ships, in place of training here

    def cohort(self, people: int, sessions: int, seed: int) -> Cohort:
        return synthetic_brains(
            people,
            sessions,
            seed,
            self.task_difficulty if seed in (LEARN_SEED, JUDGE_SEED) else self.difficulty,
            sequences=tuple(self.sequences.split(",")),
            spacing_mm=self.voxel,
            diagnoses=TUMOURS,
        )

    def plan(self) -> LesionPlan:
        plain = LesionPlan()
        return replace(
            plain,
            vae=replace(plain.vae, side=self.side),
            voxel_mm=(self.voxel,) * 3,
            vae_steps=self.steps,
            diffusion_steps=self.steps,
            student_steps=self.steps // 2,
            pairs=min(plain.pairs, 4 * self.steps),
            rate=1e-4 if self.steps > 2000 else 2e-3,
            evaluate_every=max(self.steps // 20, 1),
        )


def trained(budget: Budget, keep: Path) -> dict[str, Any]:
    """Writes the card into `keep`; its metrics."""
    with Progress(console=console) as progress:
        task = progress.add_task("training")

        def tick(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        cohort = budget.cohort(budget.people, 1, TRAIN_SEED)
        made = train_lesion("lesion-bench", budget.plan(), [cohort], Options(checkpoint=keep / "checkpoint"), tick)
        run = write_trained(made, [], CardFolder.flat(keep), tick)
    return dict(run.card.metrics)


def shipped(budget: Budget) -> dict[str, Any]:
    """The metrics of the card of --card. Nobody whom it was trained on may be tested."""
    card, folder = find_card(budget.card)
    groups = {
        TEST_SEED: budget.tested,
        AUXILIARY_SEED: budget.auxiliary,
        LEARN_SEED: budget.learners,
        JUDGE_SEED: budget.judged,
    }
    for seed, count in groups.items():
        cohort = budget.cohort(count, 1, seed)
        if read_people(card, folder) & {people_hash(cohort.name, subject) for subject in cohort.subjects}:
            raise SystemExit(f"{budget.card} was trained on people that are tested here")
    return {"card": card.name, **card.metrics}


def opened(keep: Path, name: str) -> tuple[LesionParts, Domain, str]:
    """The card's networks, its domain, and the digest of its weights, which names what it releases."""
    card, folder = find_card(name or "lesion-bench", (SHIPPED,) if name else (CardFolder.flat(keep),))
    tensors = load_file(folder.weights / f"{card.name}.safetensors")
    digest = card.weights.sha256[:12] if card.weights is not None else ""
    return parts_of(card, tensors), domain_of(card, tensors), digest


def utility_parts(
    budget: Budget, learners: list[Released], sequences: tuple[str, ...]
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Segmentation and classification by what was learned on, each to be called when its figures are missing."""
    seen = visits_of([budget.cohort(budget.judged, 1, JUDGE_SEED)])
    console.print(f"rendering {len(seen)} people to judge on")
    judged = slices_of(
        [one.study(sequences) for one in seen], [one.scans[sequences[0]].masks["brain"]() for one in seen]
    )

    def of(task: Callable[..., dict[str, Any]], arm: str) -> dict[str, Any]:
        with Progress(console=console) as progress:
            bar = progress.add_task(arm, total=budget.updates * budget.seeds)
            return task(arm_of(arm, learners), judged, budget.updates, budget.seeds, lambda: progress.advance(bar))

    tasks = {"segmentation": segmentation, "classification": classification}
    return {f"{name}, {arm}": partial(of, task, arm) for name, task in tasks.items() for arm in ARMS}


def attacked(budget: Budget, released: list[Released], auxiliary: list[Released]) -> dict[str, Any]:
    """The linkage; adaptive attackers see another visit of each of the auxiliary people too."""
    with Progress(console=console) as progress:
        bar = progress.add_task("attackers", total=len(VIEWS) * len(attackers(budget.voxel)))
        return linkage(released, auxiliary, [one.earlier for one in auxiliary], lambda: progress.advance(bar))


def shown(result: dict[str, Any]) -> None:
    """Every part as a table of names and figures, and the figures beside the parts in one of their own."""
    parts = {name: one for name, one in result.items() if isinstance(one, dict) and name not in ("budget", "baselines")}
    beside = {name: one for name, one in result.items() if not isinstance(one, dict)}
    for part, figures in (parts | {"figures": beside}).items():
        table = Table("figure", "value", title=f"{part} (synthetic)")
        for name, value in figures.items():
            table.add_row(name, json.dumps(value) if isinstance(value, dict) else str(value))
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=300, help="to train on")
    parser.add_argument("--tested", type=int, default=100, help="other people, two visits each")
    parser.add_argument("--steps", type=int, default=6000, help="of the autoencoders, as many of diffusion")
    parser.add_argument("--voxel", type=float, default=2.5, help="mm")
    parser.add_argument("--side", type=int, default=96, help="pixels of a slice")
    parser.add_argument("--mode", default="exact", choices=("exact", "latent", "regularise", "style"))
    parser.add_argument("--difficulty", default="medium", choices=("easy", "medium", "hard"))
    parser.add_argument("--task-difficulty", default="medium", choices=("easy", "medium", "hard"))
    parser.add_argument("--sequences", default="T1,T1c,T2,FLAIR")
    parser.add_argument("--auxiliary", type=int, default=120, help="others, whom adaptive attackers learn on")
    parser.add_argument("--learners", type=int, default=60, help="others, whose releases tasks are learned on")
    parser.add_argument("--judged", type=int, default=60, help="others, real, on whom what was learned is judged")
    parser.add_argument("--updates", type=int, default=400, help="of each network that is trained on releases")
    parser.add_argument("--seeds", type=int, default=3, help="of each of these trainings")
    parser.add_argument("--card", default="", help="one that ships; nothing is trained then")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "lesion-bench")
    parser.add_argument("--anew", action="store_true", help="do every part again")
    parser.add_argument("--smoke", action="store_true", help="write into --keep only")
    given = vars(parser.parse_args())
    keep, anew, smoke = given.pop("keep"), given.pop("anew"), given.pop("smoke")
    budget = Budget(**given)
    made, keep = keep, keep / hashlib.sha256(repr(budget).encode()).hexdigest()[:12]  # another budget, another card
    keep.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    target = keep if smoke else RESULTS
    path = target / "lesion.json"
    result: dict[str, Any] = json.loads(path.read_text()) if path.is_file() and not anew else {}
    if result.get("budget") != given:
        result = {"budget": given}

    def part(name: str, make: Callable[[], dict[str, Any]]) -> None:
        if name not in result:
            began = time.perf_counter()
            result[name] = make()
            console.print(f"{name}: {time.perf_counter() - began:.0f} s")
            path.write_text(json.dumps(result, indent=1) + "\n")

    part("card", lambda: shipped(budget) if budget.card else trained(budget, keep))
    parts, domain, digest = opened(keep, budget.card)
    how = Settings(mode=given["mode"])
    folder, taught = (made / f"released-{digest}-{one}" for one in (budget.difficulty, budget.task_difficulty))
    tested = budget.cohort(budget.tested, 2, TEST_SEED)
    part("vae", lambda: reconstructions(parts, tested))
    released: list[Released] = release_all(parts, domain, tested, how, folder, console)
    if not released:
        raise SystemExit("the card refuses everybody: nothing to judge; train it longer or look at its domain")
    part("released", lambda: released_figures(released, budget.tested))
    part("anonymity", lambda: anonymity_rates(released))
    part("seconds", lambda: seconds_by_steps(parts, released[0].study))
    if "linkage" not in result:
        auxiliary = release_all(parts, domain, budget.cohort(budget.auxiliary, 2, AUXILIARY_SEED), how, folder, console)
        part("linkage", lambda: attacked(budget, released, auxiliary))
    learners = release_all(parts, domain, budget.cohort(budget.learners, 1, LEARN_SEED), how, taught, console)
    for name, make in utility_parts(budget, learners, parts.sequences).items():
        part(name, make)
    result |= summary(result, released)
    path.write_text(json.dumps(result, indent=1) + "\n")
    contact_sheet(released, target / "lesion.png")
    shown(result)


if __name__ == "__main__":
    main()
