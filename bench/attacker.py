"""Does an attacker who has seen an anonymiser at work link what a frozen encoder does not? People new to both.

    make bench NAME=attacker                a quarter of an hour on one core
    python -m bench.attacker --data ../shared/data --steps 200

Films of NIH ChestX-ray14 through three toys, no anonymisers to use: `blur` (2 of 64 pixels), `blur and warp` (each film
by its own smooth warp as well), and `keyed shuffle` (every pixel to another place by a key, and inverted). Synthetic
films through the card that ships, `chest-resynth-small-1`, made anew at r 0.95. Auxiliary people are, of NIH, those
of the card chest-audit-1, of synthetic people one half; judged are the others.

`frozen` is chest-audit-1 as it is, `fresh` was fitted on what the anonymiser made of the auxiliary people. Rank-1 in a
gallery of 30 people with one original each, 200 draws; probes are released. Both attacks: the original of this very
scan, and of another visit. Anonymisers that are done are kept in results/attacker.json unless --anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.encoders import DATA, loaded, split
from gateway.learn.attacked import Attack
from gateway.learn.opened import anonymiser_of, attacker_of
from gateway.learn.released import mated, parted, released
from models.cards import SHIPPED, people_hash
from models.cohorts import READERS, Cohort, Scan, synthetic_chest
from models.train.trained import Options, Tick

RESULT = Path(__file__).parent / "results" / "attacker.json"
ATTACKER, ANONYMISER, GALLERY, SIDE = "chest-audit-1", "chest-resynth-small-1", 30, 64
PEOPLE, SEED = 160, 903  # synthetic; a seed that no card was trained on
LEVEL = 0.95  # r: how much of what identifies is blocked
Pixels = NDArray[np.float32]
KEY = np.random.default_rng(2026).permutation(SIDE * SIDE)
console = Console()


def blur(image: Pixels, name: str) -> Pixels:  # noqa: ARG001 - the same for every film
    return np.asarray(cv2.GaussianBlur(image, (0, 0), 2.0), np.float32)


def blur_and_warp(image: Pixels, name: str) -> Pixels:
    """Displaced by 3 pixels (standard deviation, smooth over a third of the side), then blurred."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    coarse = generator.normal(0, 3, (2, 4, 4)).astype(np.float32)
    dy, dx = (cv2.resize(one, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC) for one in coarse)
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    return blur(cv2.remap(image, x + dx, y + dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), name)


def keyed_shuffle(image: Pixels, name: str) -> Pixels:  # noqa: ARG001 - one key for every film
    return np.asarray(1 - image.ravel()[KEY].reshape(image.shape), np.float32)


TOYS: dict[str, Callable[[Pixels, str], Pixels]] = {
    "blur": blur,
    "blur and warp": blur_and_warp,
    "keyed shuffle": keyed_shuffle,
}


@dataclass(frozen=True)
class Trial:
    """`people()`: (auxiliary, judged), untouched; `through` makes of a cohort what would be released."""

    people: Callable[[], tuple[Cohort, Cohort]]
    through: Callable[[Cohort, Tick], Cohort]


def trials(data: Path) -> dict[str, Trial]:
    one = anonymiser_of(ANONYMISER, [SHIPPED])

    def films() -> tuple[Cohort, Cohort]:
        seen, others = split(ATTACKER, READERS["nih64"](data / "cxr"))
        return seen, mated(others)

    def drawn() -> tuple[Cohort, Cohort]:
        auxiliary, judged, _ = parted([synthetic_chest(PEOPLE, 2, SEED)], one.people)
        kept = [released(one.parts, one.domain, side, None, 0, _silent).cohort for side in (auxiliary, judged)]
        return kept[0], kept[1]

    def anew(cohort: Cohort, tick: Tick) -> Cohort:
        return released(one.parts, one.domain, cohort, LEVEL, 0, tick).cohort

    toys = {name: Trial(films, partial(_by_toy, toy)) for name, toy in TOYS.items()}
    return toys | {f"{ANONYMISER}, r {LEVEL:g}": Trial(drawn, anew)}


def _by_toy(toy: Callable[[Pixels, str], Pixels], cohort: Cohort, tick: Tick) -> Cohort:  # noqa: ARG001 - as `anew`
    def changed(scan: Scan) -> Callable[[], Pixels]:
        return lambda: toy(cv2.resize(scan.load(), (SIDE, SIDE), interpolation=cv2.INTER_AREA), scan.name)

    return replace(cohort, scans=tuple(replace(scan, load=changed(scan)) for scan in cohort))


def _silent(what: str, done: int, total: int) -> None:
    pass


def judge(trial: Trial, steps: int, tick: Tick) -> dict[str, Any]:
    start = attacker_of(ATTACKER, [SHIPPED])
    auxiliary, judged = map(loaded, trial.people())
    hashes = frozenset(people_hash(judged.name, subject) for subject in judged.subjects)
    began = time.process_time()
    attack = Attack.of(
        start, auxiliary, judged, gallery=GALLERY, confidence=0.95, options=Options(steps=steps), tick=tick
    )
    made = [loaded(trial.through(side, tick)) for side in (auxiliary, judged)]
    found = attack.at("bench-attacker", made[0], made[1], hashes, tick)
    return {
        "synthetic": judged.synthetic,
        "auxiliary_people": len(auxiliary.subjects),
        "judged_people": len(judged.subjects),
        "chance": 1 / GALLERY,
        "fresh_on_originals_other_visit": found.originals,
        "cpu_s": round(time.process_time() - began),
        "steps": steps,
        "rank1": {
            f"{who}, {attack}": {"rank1": value, "upper": upper}
            for (who, attack), (value, upper) in found.figures.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--steps", type=int, default=200, help="of fitting each attacker")
    parser.add_argument("--anew", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    result: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() and not arguments.anew else {}
    done = result.setdefault("anonymisers", {})
    for name, trial in trials(arguments.data).items():
        if name in done:
            continue
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(name)

            def tick(what: str, at: int, total: int, name: str = name, task: Any = task, bar: Any = bar) -> None:
                bar.update(task, description=f"{name}, {what}", completed=at, total=total)

            done[name] = judge(trial, arguments.steps, tick)
        result |= {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "command": "python -m bench.attacker"}
        RESULT.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    title = f"Rank-1 among {GALLERY} people not trained on; chance {1 / GALLERY:.3f}"
    table = Table("anonymiser", "people", "frozen, same scan", "fresh", "frozen, other visit", "fresh", title=title)
    for name, found in done.items():
        cells = (found["rank1"][f"{who}, {attack}"] for attack in ("same scan", "other visit") for who in WHO)
        who = f"{found['judged_people']}{', synthetic' if found['synthetic'] else ''}"
        table.add_row(name, who, *(f"{one['rank1']:.2f} (≤ {one['upper']:.2f})" for one in cells))
    console.print(table)


WHO = ("frozen", "fresh")

if __name__ == "__main__":
    main()
