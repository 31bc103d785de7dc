"""Does the promise of a calibration hold? Many calibrations of one card, each on people of its own (synthetic).

    make bench NAME=adjustable_calibration
    nice -n 10 python -m bench.adjustable_calibration --card chest-resynth-small-1 --folder DIR --people 400

Attackers are trained once at each level, on auxiliary people. A pool of other people is searched at each level; its
rank-1 is taken for the truth. Each draw calibrates on some of the pool and chooses the weakest level that keeps the
target, as a policy would; the promise is kept when the pool's own risk at that level keeps the target, or when no level
is chosen. The share that keeps it is compared with the confidence by an exact binomial test. Draws are without
repetition from the pool, which favours the calibration: the pool's size stands beside them. Levels that are done are
kept under --keep, so a run that was cut short goes on, and levels may be done by several runs.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from scipy.stats import binomtest

from gateway.embed import Embedder
from gateway.evidence import People, fixed_gallery
from gateway.learn.attacked import ATTACKS, embedded, falling, people_of
from gateway.learn.calibrating_risk import ATTACKERS, Wanted
from gateway.learn.opened import anonymiser_of, attacker_of
from gateway.learn.released import parted, released
from gateway.learn.training import read_cohort
from models.audit_encoders import ENCODERS
from models.cards import SHIPPED, CardFolder, people_hash
from models.train.attacker import fit_attacker
from models.train.trained import Options

RESULTS = Path(__file__).parent / "results"
GALLERY, POOL_DRAWS, DRAWS = 30, 400, 60  # people at a time; searches of the pool, and of each calibration
console = Console()
Rows = Any


def searched(probes: Rows, gallery: Rows, people: People, seed: int, draws: int) -> tuple[float, float]:
    """(rank-1, upper bound) of the worse attack; 95 % one-sided, as `calibrate` has it."""
    found = [
        fixed_gallery(
            probes,
            people,
            "cosine",
            np.random.default_rng(seed),
            gallery=gallery,
            size=GALLERY,
            draws=draws,
            same_scan=same,
            replicates=300,
        )
        for same in ATTACKS.values()
    ]
    return max(one.rank1 for one in found), max(one.upper for one in found)


def part_of(people: People, rows: Rows, chosen: Rows) -> tuple[Rows, People]:
    """Scans of these people."""
    at = np.flatnonzero(np.isin(people.subject, chosen))
    return rows[at], People.of(people.subject[at].tolist(), people.session[at].tolist())


def promises(
    pool: dict[float, tuple[Rows, Rows]], people: People, targets: Sequence[float], draws: int, size: int
) -> list[dict[str, Any]]:
    """Of each target. `pool`: at each level, the weakest first, embeddings (released, original) of everybody."""
    levels = list(pool)
    truth = {level: searched(*pool[level], people, 0, POOL_DRAWS)[0] for level in levels}
    generator, bounds = np.random.default_rng(7), []
    for draw in range(draws):
        some = generator.choice(people.count, size, replace=False)
        uppers = []
        for level in levels:
            after, own = part_of(people, pool[level][0], some)
            before, _ = part_of(people, pool[level][1], some)
            uppers.append(searched(after, before, own, draw, DRAWS)[1])
        bounds.append(falling(uppers))
    return [{**kept_of(truth, bounds, target), "people of a draw": size, "pool": people.count} for target in targets]


def kept_of(truth: dict[float, float], bounds: Sequence[Sequence[float]], target: float) -> dict[str, Any]:
    """`truth` of each level, `bounds` (draws, levels) that calibrations gave: what was chosen, and whether it kept."""
    kept, chosen_levels = 0, []
    for uppers in bounds:
        chosen = [level for level, upper in zip(truth, uppers, strict=True) if upper <= target]
        kept += not chosen or truth[chosen[0]] <= target
        chosen_levels.append(f"{chosen[0]:g}" if chosen else "none")
    return {
        "target_rank1": target,
        "draws": len(bounds),
        "rank-1 of the pool by level": {f"{level:g}": round(value, 4) for level, value in truth.items()},
        "chosen": {name: chosen_levels.count(name) for name in sorted(set(chosen_levels))},
        "kept": kept / len(bounds),
        "p that fewer than 95 % keep it": round(float(binomtest(kept, len(bounds), 0.95, "less").pvalue), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--card", default="chest-resynth-small-1")
    parser.add_argument("--folder", type=Path, help="of cards, beside those that ship")
    parser.add_argument("--attacker", default="")
    parser.add_argument("--cohort", default="synthetic-chest", help="name of a synthetic cohort")
    parser.add_argument("--people", type=int, default=400, help="half of them are the attackers'")
    parser.add_argument("--size", type=int, default=100, help="people of each calibration")
    parser.add_argument("--levels", default="0.4,0.1,0.04")
    parser.add_argument("--targets", default="0.1,0.2,0.3")
    parser.add_argument("--steps", type=int, default=100, help="of each attacker")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--keep", type=Path, default=Path("/tmp/adjustable-calibration"), help="levels that are done")
    parser.add_argument("--out", type=Path, default=RESULTS / "adjustable_calibration.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    folders = [SHIPPED, *([CardFolder.flat(given.folder)] if given.folder else [])]
    one = anonymiser_of(given.card, folders)
    start = attacker_of(given.attacker or ATTACKERS[one.card.modalities[0]], folders)
    cohort = read_cohort(f"{given.cohort}={given.people},2,902")
    auxiliary, judged, _ = parted([cohort], one.people | start.hashes)

    def tick(what: str, done: int, total: int) -> None:
        if done % max(total // 4, 1) == 0:
            console.print(f"{what}: {done} of {total}", highlight=False)

    untouched = [released(one.parts, one.domain, side, None, 0, tick).cohort for side in (auxiliary, judged)]
    hashes = frozenset(people_hash(cohort.name, subject) for subject in judged.subjects)
    pool: dict[float, tuple[Rows, Rows]] = {}
    weights = one.card.weights.sha256 if one.card.weights is not None else ""
    given.keep.mkdir(parents=True, exist_ok=True)
    for level in (float(text) for text in given.levels.split(",")):
        path = (
            given.keep / f"{weights[:12]}-{start.card.name}-{cohort.name}-{given.people}-{given.steps}-r{level:g}.npz"
        )
        if path.is_file():
            before = np.load(path)
            pool[level] = (before["released"], before["original"])
            continue
        made = [released(one.parts, one.domain, side, level, 0, tick).cohort for side in untouched]
        fresh = fit_attacker(
            f"calibration-r{level:g}", untouched[0], made[0], start, hashes, Options(steps=given.steps), tick
        )
        attacker = Embedder(fresh.card, ENCODERS[fresh.card.algorithm](fresh.card, dict(fresh.tensors)))
        pool[level] = (embedded(attacker, made[1], tick), embedded(attacker, untouched[1], tick))
        fresh_file = path.with_suffix(".part.npz")
        np.savez(fresh_file, released=pool[level][0], original=pool[level][1])
        os.replace(fresh_file, path)
    people = people_of(untouched[1])
    targets = [float(target) for target in given.targets.split(",")]
    parts = promises(pool, people, targets, given.draws, min(given.size, people.count))
    result = {
        "card": one.card.name,
        "weights sha256": weights,
        "cohort": f"{cohort.name} (synthetic)",
        "attacker": f"{start.card.name}, {given.steps} steps",
        "gallery": GALLERY,
        "confidence": Wanted().confidence,
        "promises": parts,
        "calibration_met": min(part["kept"] for part in parts),
        "calibration_p": min(part["p that fewer than 95 % keep it"] for part in parts),
    }
    given.out.write_text(json.dumps(result, indent=1) + "\n")
    console.print_json(data=result)


if __name__ == "__main__":
    main()
