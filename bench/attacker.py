"""Does an attacker who has seen an anonymiser at work link what a frozen encoder does not? People new to both.

    make bench NAME=attacker
    python -m bench.attacker --data ../shared/data --steps 100

Two toys, no anonymisers to use: `blur and warp` (each film by its own smooth warp, then blurred), and `keyed shuffle`
(every pixel to another place by a key, and inverted). Auxiliary people are those of the card chest-audit-1; judged are
the others of NIH ChestX-ray14. Rank-1 in a gallery of 30 people with one original each, 200 draws; probes are
released. Both attacks: the original of this very scan, and of another visit. Kept in
results/attacker.json unless --anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from safetensors.torch import load_file

from bench.encoders import DATA, split
from gateway.evidence import fixed_gallery
from gateway.learn.judged import people_of
from models.audit_encoders import BASELINES, ENCODERS
from models.cards import SHIPPED, find_card, people_hash, weights_of
from models.cohorts import READERS, Cohort
from models.train.attacker import Start, fit_attacker
from models.train.trained import Options

RESULT = Path(__file__).parent / "results" / "attacker.json"
CARD, GALLERY, SIDE = "chest-audit-1", 30, 64
Pixels = NDArray[np.float32]
KEY = np.random.default_rng(2026).permutation(SIDE * SIDE)
console = Console()


def blur_and_warp(image: Pixels, name: str) -> Pixels:
    """Displaced by 3 pixels (standard deviation, smooth over a third of the side), then blurred by 2 pixels."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    coarse = generator.normal(0, 3, (2, 4, 4)).astype(np.float32)
    dy, dx = (cv2.resize(one, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC) for one in coarse)
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    moved = cv2.remap(image, x + dx, y + dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(np.clip(cv2.GaussianBlur(moved, (0, 0), 2.0), 0, 1), np.float32)


def keyed_shuffle(image: Pixels, name: str) -> Pixels:  # noqa: ARG001 - one key for every film
    return np.asarray(1 - image.ravel()[KEY].reshape(image.shape), np.float32)


TOYS: dict[str, Callable[[Pixels, str], Pixels]] = {"blur and warp": blur_and_warp, "keyed shuffle": keyed_shuffle}


def through(cohort: Cohort, toy: Callable[[Pixels, str], Pixels]) -> Cohort:
    def load(scan: Any) -> Callable[[], Pixels]:
        return lambda: toy(cv2.resize(scan.load(), (SIDE, SIDE), interpolation=cv2.INTER_AREA), scan.name)

    return replace(cohort, scans=tuple(replace(scan, load=load(scan)) for scan in cohort))


def rank1(embed: Callable[..., Any], originals: Cohort, released: Cohort) -> dict[str, float]:
    """By attack; `upper` is the bound over people."""
    before, after = (np.stack([embed(scan.load(), None) for scan in cohort]) for cohort in (originals, released))
    out = {}
    for attack in ("same_scan", "other_visit"):
        found = fixed_gallery(
            after,
            people_of(originals),
            "cosine",
            np.random.default_rng(0),
            gallery=before,
            size=GALLERY,
            same_scan=attack == "same_scan",
        )
        out |= {attack: found.rank1, f"{attack}_upper": found.upper}
    return out


def judge(toy: str, data: Path, steps: int, bar: Progress) -> dict[str, Any]:
    card, _ = find_card(CARD)
    path = weights_of(card, SHIPPED)
    assert path is not None
    auxiliary, others = split(CARD, READERS["nih64"](data / "cxr"))
    tensors = load_file(path)
    lists = {one.people_file: (SHIPPED.people / one.people_file).read_bytes() for one in card.trained_on}
    judged = {people_hash(others.name, subject) for subject in others.subjects}
    task, began = bar.add_task(toy), time.process_time()
    adaptive = fit_attacker(
        "toy-attacker-1",
        auxiliary,
        through(auxiliary, TOYS[toy]),
        Start(card, tensors, lists),
        judged,
        Options(steps=steps),
        lambda what, done, total: bar.update(task, description=f"{toy}, {what}", completed=done, total=total),
    )
    seconds = time.process_time() - began
    released = through(others, TOYS[toy])
    encoders = {
        "hog": BASELINES["hog"],
        "frozen": ENCODERS[card.algorithm](card, tensors),
        "adaptive": ENCODERS[adaptive.card.algorithm](adaptive.card, adaptive.tensors),
    }
    rows = {name: rank1(encoder, others, released) for name, encoder in encoders.items()}
    untouched = rank1(encoders["frozen"], others, others)["other_visit"]
    return {
        "auxiliary_people": len(auxiliary.subjects),
        "judged_people": len(others.subjects),
        "chance": 1 / GALLERY,
        "frozen_on_originals_other_visit": untouched,
        "fitting_cpu_s": seconds,
        "steps": steps,
        "rank1": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--anew", action="store_true")
    arguments = parser.parse_args()
    result: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() and not arguments.anew else {}
    toys = result.setdefault("toys", {})
    for toy in TOYS:
        if toy not in toys:
            with Progress(console=console, transient=True) as bar:
                toys[toy] = judge(toy, arguments.data, arguments.steps, bar)
            result |= {
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                "command": "python -m bench.attacker",
            }
            RESULT.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    table = Table("toy", "attacker", "same scan", "other visit", title=f"Rank-1 of {GALLERY}, people not trained on")
    for toy, found in toys.items():
        for name, row in found["rank1"].items():
            table.add_row(toy, name, f"{row['same_scan']:.3f}", f"{row['other_visit']:.3f}")
    console.print(table)


if __name__ == "__main__":
    main()
