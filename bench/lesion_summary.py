"""The figures by which the lesion anonymiser is judged, in one place, with their targets and whether they are met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.lesion_measures import VIEWS, attackers
from bench.lesion_released import Released
from gateway.evidence import distances

SUCCESS = 0.8  # rank-1 on originals that an attacker must reach
PERMUTATIONS = 999
TARGETS = {  # name: (sense, limit)
    "anonymity_rate": (">=", 0.95),
    "attacker_rank1_before": (">=", SUCCESS),
    "attacker_rank1_upper_background": ("<=", 0.06),
    "lesion_voxels_changed": ("<=", 0),
    "vae_ssim": (">=", 0.982),
}
NOT_MEASURED = ("miou_real", "miou_half_real", "miou_mixed", "miou_anonymised", "accuracy_real", "accuracy_anonymised")


def summary(result: dict[str, Any], released: Sequence[Released]) -> dict[str, Any]:
    """`result` holds the other parts. The worst attacker of the background is the one with the highest upper bound, of
    those that succeed on the originals; when none does the figure is void, and said to be.
    """
    background = {
        name.removeprefix("background, "): one
        for name, one in result["linkage"].items()
        if name.startswith("background, ")
    }
    able = {name: one for name, one in background.items() if one["before"]["rank1"] >= SUCCESS}
    considered = able or background
    worst = max(considered, key=lambda name: considered[name]["after"]["upper"])
    figures: dict[str, Any] = {
        "anonymity_rate": result["anonymity"]["ours"]["rate"],
        "attacker": worst,
        "attacker_rank1_before": considered[worst]["before"]["rank1"],
        "attacker_rank1_after": considered[worst]["after"]["rank1"],
        "attacker_rank1_upper_background": considered[worst]["after"]["upper"],
        "same_scan_rank1_after": considered[worst]["after, same scan"]["rank1"],
        "attacker_succeeds_on_originals": bool(able),
        "people": result["linkage"]["people"],
        "gallery": result["linkage"]["people"],
        "chance": result["linkage"]["chance"],
        "permutation_p": permutation_p(released, worst),
        "lesion_voxels_changed": result["released"]["lesion_voxels_changed"],
        "seam": result["released"]["seam"],
        "coherence": result["released"]["coherence"],
        "vae_ssim": result["vae"]["ssim"],
        "seconds_per_volume": result["seconds"],
        "baselines": {
            name: one for name, one in result["anonymity"].items() if isinstance(one, dict) and name != "ours"
        },
        **dict.fromkeys(NOT_MEASURED, "not measured"),
    }
    figures["targets"] = {name: _judged(figures[name], *limit) for name, limit in TARGETS.items()}
    return figures


def permutation_p(released: Sequence[Released], attacker: str) -> float:
    """Chance of as many right first places when released backgrounds are given to people at random."""
    name, cut = next(iter(released[0].volumes)), VIEWS["background"]
    encode = attackers(released[0].study.spacing_mm[0])[attacker]
    gallery = np.stack([encode(cut(one.earlier.volumes[name], one.earlier.lesion)) for one in released])
    made = np.stack([encode(cut(one.volumes[name], one.lesion)) for one in released])
    nearest = distances(made, gallery, "cosine").argmin(1)
    hits = int((nearest == np.arange(len(nearest))).sum())
    random = np.random.default_rng(0)
    as_many = sum(int((nearest == random.permutation(len(nearest))).sum()) >= hits for _ in range(PERMUTATIONS))
    return round((1 + as_many) / (1 + PERMUTATIONS), 3)


def _judged(value: float, sense: str, limit: float) -> str:
    met = value >= limit if sense == ">=" else value <= limit
    return f"{value} {'meets' if met else 'DOES NOT MEET'} {sense} {limit}"
