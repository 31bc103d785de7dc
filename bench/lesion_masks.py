"""What a wrong mask does to a study: lesion erased, original background left, and what the release still teaches.

    make bench NAME=lesion_masks

Synthetic people with tumours go through `lesion_preserving`'s anonymiser (mode exact) with masks that are `true`, made
by the shipped segmentation `card`, or degraded to a Dice of 0.9, 0.7 and 0.5: `shifted` (a whole lesion in the wrong
place) and `shrunk` (its rim is missed). For each: the share of the true lesion's voxels that changed in any sequence
(erased), the share of the head outside it that is the original's in all sequences (left; the margin of 2 mm is among
it), and the mIoU on real people of a U-Net that learned from the releases and the masks used (bench.lesion_utility).
How many the segmentation card holds of people with tumours, of healthy ones, and of those with plaques, which it was
not trained on, stands beside. Arms are kept in results/lesion_masks.json and not done again unless --anew.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from safetensors.torch import load_file
from scipy import ndimage

from bench.lesion_released import Released
from bench.lesion_utility import segmentation, slices_of
from models.cards import SHIPPED, Card, find_card, people_hash, read_people
from models.cohorts import Cohort, synthetic_brains
from models.lesion_anonymiser import (
    Domain,
    LesionParts,
    LesionStudy,
    NotAnonymised,
    Settings,
    anonymise,
    domain_of,
    parts_of,
    seeded_noise,
)
from models.lesion_segmenter import SegmenterParts, dice, segment
from models.lesion_segmenter import parts_of as segmenter_of
from models.train.lesion_material import Visit, visits_of

RESULTS = Path(__file__).parent / "results" / "lesion_masks.json"
SEQUENCES = ("T1", "T1c", "T2", "FLAIR")
LEVELS = (0.9, 0.7, 0.5)
ARMS = ("true", "card", *(f"{kind}, Dice {level}" for kind in ("shifted", "shrunk") for level in LEVELS))
SEEDS = {"tumours": 621, "judged": 622, "healthy": 623, "plaques": 624}
DIAGNOSES = {"healthy": {"healthy": 1.0}, "plaques": {"MS": 1.0}}
Mask = NDArray[np.bool_]
console = Console()


@dataclass(frozen=True, slots=True)
class Cards:
    """The two cards at work, each with the domain that it refuses by."""

    anonymiser: LesionParts
    anonymiser_domain: Domain
    segmenter: SegmenterParts
    segmenter_domain: Domain


def shrunk(mask: Mask, spacing_mm: Sequence[float], level: float) -> Mask:
    """The deepest part of a mask whose Dice with all of it is `level`: |part| / |mask| = level / (2 - level)."""
    depth = ndimage.distance_transform_edt(mask, sampling=spacing_mm)[mask]
    count = round(int(mask.sum()) * level / (2 - level))
    out = np.zeros(mask.shape, np.bool_)
    inside = np.flatnonzero(mask)
    out.flat[inside[np.argsort(-depth, kind="stable")[:count]]] = True
    return out


def shifted(mask: Mask, spacing_mm: Sequence[float], level: float, seed: int) -> Mask:
    """The mask moved in a direction drawn from `seed`, as far as the Dice with where it was is nearest to `level`."""
    drawn = np.random.default_rng(seed).standard_normal(3)
    step = drawn / np.linalg.norm(drawn) / np.asarray(spacing_mm)
    best, found = mask, 0.0
    for millimetres in np.arange(0.1, 40, 0.1):
        moved = ndimage.shift(mask.astype(np.float32), step * millimetres, order=1) >= 0.5
        now = dice(moved, mask)
        if abs(now - level) < abs(found - level):
            best, found = moved, now
        if now < level:
            break
    return best


def mask_of(arm: str, study: LesionStudy, cards: Cards, seed: int) -> Mask:
    """Raises NotAnonymised where the segmentation card holds."""
    if arm == "true":
        return study.lesion
    if arm == "card":
        return segment(study, cards.segmenter, cards.segmenter_domain).mask
    kind, level = arm.split(", Dice ")
    if kind == "shrunk":
        return shrunk(study.lesion, study.spacing_mm, float(level))
    return shifted(study.lesion, study.spacing_mm, float(level), seed)


def lost_and_left(study: LesionStudy, made: Released) -> tuple[float, float]:
    """(share of the true lesion's voxels that changed, share of the head outside it that is the original's)."""
    same = np.all([made.volumes[name] == one for name, one in study.volumes.items()], axis=0)
    return float((~same)[study.lesion].mean()), float(same[made.head & ~study.lesion].mean())


def released(arm: str, visits: Sequence[Visit], cards: Cards) -> tuple[list[Released], int]:
    """Whoever leaves, `lesion` being the mask used and `head` that of the original; and how many are held."""
    out, held = [], 0
    for number, visit in enumerate(track(visits, arm, console=console)):
        study = visit.study(SEQUENCES)
        scan = visit.scans[SEQUENCES[0]]
        noise = seeded_noise(f"bench masks {visit.person}")  # the same in every arm: only the mask differs
        try:
            mask = mask_of(arm, study, cards, number)
            made = anonymise(
                replace(study, lesion=mask), cards.anonymiser, cards.anonymiser_domain, noise, Settings(mode="exact")
            )
        except NotAnonymised as error:
            held += 1
            console.print(f"{visit.subject}: {error}")
            continue
        brain, head = scan.masks["brain"](), scan.masks["head"]()
        volumes = dict(made.volumes)
        out.append(Released(visit.subject, study, study, brain, volumes, mask, head, dict(made.figures)))
    return out, held


def figures(made: Sequence[Released], held: int) -> dict[str, Any]:
    """Means over people, and the worst."""
    if not made:
        return {"people": 0, "held": held}
    shares = np.array([lost_and_left(one.study, one) for one in made])
    overlaps = [dice(one.lesion, one.study.lesion) for one in made]
    return {
        "people": len(made),
        "held": held,
        "Dice of the mask": round(float(np.mean(overlaps)), 3),
        "lesion erased": round(float(shares[:, 0].mean()), 4),
        "lesion erased, worst": round(float(shares[:, 0].max()), 4),
        "background left": round(float(shares[:, 1].mean()), 4),
        "seam": round(float(np.mean([one.figures["seam"] for one in made])), 3),
    }


def holds(visits: Sequence[Visit], cards: Cards) -> dict[str, int]:
    """What the segmentation card makes of people, by the kind of refusal."""
    found: dict[str, int] = {"people": len(visits), "accepted": 0}
    for visit in visits:
        try:
            segment(visit.study(SEQUENCES), cards.segmenter, cards.segmenter_domain)
            found["accepted"] += 1
        except NotAnonymised as error:
            found[type(error).__name__] = found.get(type(error).__name__, 0) + 1
    return found


def cohort(kind: str, people: int, voxel_mm: float) -> Cohort:
    shares = DIAGNOSES.get(kind, {"HGG": 0.5, "LGG": 0.5})
    return synthetic_brains(people, 1, SEEDS[kind], sequences=SEQUENCES, spacing_mm=voxel_mm, diagnoses=shares)


def opened(name: str, cohorts: Sequence[Cohort]) -> tuple[Card, dict[str, torch.Tensor]]:
    """A shipped card. Nobody whom it was trained on may be among the cohorts."""
    card, folder = find_card(name, (SHIPPED,))
    known = read_people(card, folder)
    if any(people_hash(one.name, subject) in known for one in cohorts for subject in one.subjects):
        raise SystemExit(f"{name} was trained on people that are judged here")
    return card, load_file(folder.weights / f"{card.name}.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=16, help="with tumours, through every arm")
    parser.add_argument("--judged", type=int, default=12, help="others, real, on whom what was learned is judged")
    parser.add_argument("--updates", type=int, default=200, help="of each network that learns")
    parser.add_argument("--seeds", type=int, default=1, help="of each of these trainings")
    parser.add_argument("--voxel", type=float, default=3.0, help="mm")
    parser.add_argument("--card", default="lesion-brain-small-1")
    parser.add_argument("--mask-card", default="lesion-segment-small-1")
    parser.add_argument("--anew", action="store_true", help="do every arm again")
    given = vars(parser.parse_args())
    anew = given.pop("anew")
    torch.set_num_threads(1)
    counts = {"tumours": given["people"], "judged": given["judged"], "healthy": given["people"]}
    cohorts = {kind: cohort(kind, counts.get(kind, given["people"]), given["voxel"]) for kind in SEEDS}
    (card, tensors), (mask_card, mask_tensors) = (
        opened(given[one], list(cohorts.values())) for one in ("card", "mask_card")
    )
    cards = Cards(
        parts_of(card, tensors),
        domain_of(card, tensors),
        segmenter_of(mask_card, mask_tensors),
        domain_of(mask_card, mask_tensors),
    )
    weights = [one.weights.sha256[:12] for one in (card, mask_card) if one.weights is not None]
    budget = {**given, "weights": weights, "cohort": "synthetic"}
    result: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.is_file() and not anew else {}
    if result.get("budget") != budget:
        result = {"budget": budget}
    visits = {kind: visits_of([one]) for kind, one in cohorts.items()}
    for kind in ("tumours", "healthy", "plaques"):
        part = f"card on {kind}"
        if part not in result:
            result[part] = holds(visits[kind], cards)
            RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    seen = [one.study(SEQUENCES) for one in visits["judged"]]
    judged = slices_of(seen, [one.scans[SEQUENCES[0]].masks["brain"]() for one in visits["judged"]])
    for arm in ARMS:
        if arm in result:
            continue
        made, held = released(arm, visits["tumours"], cards)
        learned = slices_of([one.study for one in made], [one.brain for one in made], made)
        taught = segmentation(learned, judged, given["updates"], given["seeds"], lambda: None)
        result[arm] = {**figures(made, held), "miou": taught["miou"]}
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    for name, some in result.items():
        table = Table("figure", "value", title=f"{name} (synthetic)")
        for key, value in some.items():
            table.add_row(key, str(value))
        console.print(table)


if __name__ == "__main__":
    main()
