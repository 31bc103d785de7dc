"""The figures by which the lesion anonymiser is judged, in one place, with their targets and whether they are met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.lesion_linkage import attackers, embedded, permutation_p
from bench.lesion_released import Released
from bench.lesion_utility import ARMS, PAPER_ACCURACY, PAPER_MIOU

SUCCESS = 0.8  # rank-1 on originals that an attacker must reach
LEARNED = 0.7  # accuracy that the classifier must reach when it learns on real people; else its figures are void
PERMUTATIONS = 999
TARGETS = {  # name: (sense, limit)
    "anonymity_rate": (">=", 0.95),
    "attacker_rank1_before": (">=", SUCCESS),
    "attacker_rank1_upper_background": ("<=", 0.06),
    "lesion_voxels_changed": ("<=", 0),
    "vae_ssim": (">=", 0.982),
    "miou_real_over_half_real": (">=", 0.08),  # else the task leaves no room to gain
    "miou_gain_of_mixed": (">=", 0.046),
    "miou_anonymised_over_real": (">=", 0.85),
    "accuracy_anonymised_over_real": (">=", 0.965),
    "accuracy_gain_of_mixed": (">=", 0.0875),
}


def summary(result: dict[str, Any], released: Sequence[Released]) -> dict[str, Any]:
    """`result` holds the other parts. The worst attacker of the background is the one with the highest upper bound, of
    those that succeed on the originals; when none does the figure is void, and said to be.
    """
    by_attacker = {
        view: {
            name.removeprefix(f"{view}, "): one
            for name, one in result["linkage"].items()
            if name.startswith(f"{view}, ")
        }
        for view in ("background", "lesion", "head mask")
    }
    background = by_attacker["background"]
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
        "attacker_rank1_upper_lesion": max(one["after"]["upper"] for one in by_attacker["lesion"].values()),
        "attacker_rank1_upper_head_mask": max(one["after"]["upper"] for one in by_attacker["head mask"].values()),
        "attacker_succeeds_on_originals": bool(able),
        "people": result["linkage"]["people"],
        "gallery": result["linkage"]["gallery"],
        "chance": result["linkage"]["chance"],
        "permutation_p": _permuted(released, worst.removesuffix(", adaptive")),
        "lesion_voxels_changed": result["released"]["lesion_voxels_changed"],
        "seam": result["released"]["seam"],
        "coherence": result["released"]["coherence"],
        "vae_ssim": result["vae"]["ssim"],
        "seconds_per_volume": result["seconds"],
        "baselines": {
            name: one for name, one in result["anonymity"].items() if isinstance(one, dict) and name != "ours"
        },
        **utility(result),
    }
    figures["targets"] = {name: _judged(figures[name], *limit) for name, limit in TARGETS.items()}
    if not figures["classifier_succeeds_on_real"]:
        void = "void: the classifier does not learn on real people either"
        figures["targets"] |= {name: f"{figures[name]} {void}" for name in TARGETS if name.startswith("accuracy_")}
    return figures


def utility(result: dict[str, Any]) -> dict[str, Any]:
    """What each training reached on real people, and what the paper says of its own."""
    miou = {arm: result[f"segmentation, {arm}"]["miou"] for arm in ARMS}
    accuracy = {arm: result[f"classification, {arm}"]["accuracy"] for arm in ARMS}
    return {
        **{f"miou_{arm}": one for arm, one in miou.items()},
        **{f"accuracy_{arm}": one for arm, one in accuracy.items()},
        "miou_real_over_half_real": round(miou["real"] - miou["half_real"], 4),
        "miou_gain_of_mixed": round(miou["mixed"] - miou["half_real"], 4),
        "miou_anonymised_over_real": round(miou["anonymised"] / miou["real"], 4),
        "accuracy_anonymised_over_real": round(accuracy["anonymised"] / accuracy["real"], 4),
        "accuracy_gain_of_mixed": round(accuracy["mixed"] - accuracy["half_real"], 4),
        "classifier_succeeds_on_real": accuracy["real"] >= LEARNED,
        "of the paper": {"miou": PAPER_MIOU, "accuracy": PAPER_ACCURACY},
    }


def _permuted(released: Sequence[Released], attacker: str) -> float:
    """Of the background, by the attacker without what it learned of releases."""
    first, _, after = embedded(released, "background", attackers(released[0].study.spacing_mm[0])[attacker])
    return permutation_p(first, after, PERMUTATIONS)


def _judged(value: float, sense: str, limit: float) -> str:
    met = value >= limit if sense == ">=" else value <= limit
    return f"{value} {'meets' if met else 'DOES NOT MEET'} {sense} {limit}"
