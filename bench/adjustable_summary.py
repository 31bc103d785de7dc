"""From points to the figures of bench.adjustable: utility at a given rank-1, gains with bounds, ablations, transfer.

Utility at a rank-1 is read off a method's *own* swept curve, on the straight line between two neighbouring levels whose
rank-1 lie on both sides; where several such pairs do, the best. A curve that does not reach it gives None and the
reason: nothing is extrapolated. A gain is ours less the best other method's; its lower bound is one-sided, 95 %, by
resampling people, the same draws for both. Rank-1 itself is taken as it was measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
OURS, NO_SEMANTICS, NO_DECOUPLING = "ours", "ours, no semantics", "ours, no decoupling"
OTHERS = ("Pixel-Blur", "MAE", "Feat-Noise", "pixel noise", "ID-Adv", "Privacy-Net", "image to image")
FROM_NOTHING = ("Pixel-Blur", "MAE", "pixel noise")  # a knob at zero gives the original
TARGETS = (0.5, 0.2, 0.1, 0.05)
MEASURES = {"auroc": "auroc_gain_at_r1_10", "dice": "dice_gain_at_r1_10", "bleu": "bleu_gain_at_r1_10"}
HEADLINE = "synthetic-chest"
Points = Sequence[Mapping[str, Any]]
Draws = Mapping[str, Floats]


def key_of(point: Mapping[str, Any], measure: str) -> str:
    return f"{point['method']}|{point['level']}|{measure}"


def rank1_of(point: Mapping[str, Any]) -> float:
    return float(point["attack"]["other visit"]["rank1"])


@dataclass(frozen=True, slots=True)
class AtRisk:
    """`value` is None where the curve does not get there; then `why`. `draws` of people; empty when they are gone."""

    value: float | None
    draws: Floats
    why: str = ""


def at_risk(points: Points, draws: Draws, measure: str, target: float) -> AtRisk:
    """`points` of one method, in order of its knob."""
    usable = [one for one in points if measure in one]
    nothing = np.zeros(0)
    if not usable:
        return AtRisk(None, nothing, "not measured")
    found = []
    for a, b in pairwise(usable):
        low, high = rank1_of(a), rank1_of(b)
        if min(low, high) <= target <= max(low, high):
            share = 0.5 if low == high else (target - low) / (high - low)
            both = [draws.get(key_of(one, measure), nothing) for one in (a, b)]
            kept = all(len(one) for one in both)
            drawn = (1 - share) * both[0] + share * both[1] if kept else nothing
            found.append(AtRisk((1 - share) * a[measure][measure] + share * b[measure][measure], drawn))
    if found:
        return max(found, key=lambda one: one.value or 0.0)
    every = [rank1_of(one) for one in usable]
    side = "its lowest is" if min(every) > target else "its highest is"
    nearest = min(every) if min(every) > target else max(every)
    return AtRisk(None, nothing, f"no level has a rank-1 of {target:g}: {side} {nearest:.3f}")


def curve(points: Points, method: str) -> list[Mapping[str, Any]]:
    """Of one method in order of its knob; methods that begin at the original have it as their first point."""
    own = [one for one in points if one["method"] == method]
    first = [one for one in points if one["method"] == "original" and method in FROM_NOTHING]
    weakest_first = method.startswith("ours")  # the higher r, the weaker
    return first + sorted(own, key=lambda one: -one["level"] if weakest_first else one["level"])


def gain(points: Points, draws: Draws, measure: str, target: float) -> dict[str, Any]:
    """Of ours over the best of the others at that rank-1, in the measure's own units times 100 (BLEU: as it is)."""
    ours = at_risk(curve(points, OURS), draws, measure, target)
    others = {name: at_risk(curve(points, name), draws, measure, target) for name in OTHERS}
    reached = {name: one for name, one in others.items() if one.value is not None}
    table = {name: _rounded(one.value) for name, one in {OURS: ours, **others}.items()}
    why = {name: one.why for name, one in {OURS: ours, **others}.items() if one.why}
    if ours.value is None or not reached:
        reason = f"ours: {ours.why}" if ours.value is None else "none of the others gets there"
        return {"gain": None, "lower": None, "why": reason, "utility": table, "not reached": why}
    best = max(reached, key=lambda name: reached[name].value or 0.0)
    scale = 1 if measure == "bleu" else 100
    value = scale * (ours.value - float(reached[best].value or 0.0))
    paired = len(ours.draws) and len(ours.draws) == len(reached[best].draws)
    lower = float(np.quantile(scale * (ours.draws - reached[best].draws), 0.05)) if paired else None
    return {
        "gain": round(value, 4),
        "lower": _rounded(lower),
        "over": best,
        "utility": table,
        "not reached": why,
        **({} if paired else {"why": "the draws of people were not kept, so there is no lower bound"}),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def ablation(points: Points, draws: Draws, without: str) -> dict[str, Any]:
    """What leaving a part out costs: at equal r, and at a rank-1 of 10 % (positive: it costs AUROC)."""
    whole, less = ({one["level"]: one for one in curve(points, name)} for name in (OURS, without))
    levels = [level for level in whole if level in less]
    if not levels:
        return {"why": "not measured"}
    ours, bare = (at_risk(curve(points, name), draws, "auroc", 0.1) for name in (OURS, without))
    both = ours.value is not None and bare.value is not None
    return {
        "auroc points at rank-1 10 %": round(100 * (float(ours.value or 0) - float(bare.value or 0)), 2)
        if both
        else None,
        **({} if both else {"why": ours.why or bare.why}),
        "at equal r": {
            f"{level:g}": {
                "auroc points lost": round(100 * (whole[level]["auroc"]["auroc"] - less[level]["auroc"]["auroc"]), 2),
                "rank-1 points gained by the attacker": round(
                    100 * (rank1_of(less[level]) - rank1_of(whole[level])), 2
                ),
            }
            for level in levels
        },
    }


def transfer(seen: Points, unseen: Points) -> dict[str, Any]:
    """Ours on scanners that the card knows and on others. What a level promises is its upper bound on known ones."""
    known, new = ({one["level"]: one for one in curve(some, OURS)} for some in (seen, unseen))
    rows = {}
    for level in (one for one in known if one in new):
        a, b = known[level], new[level]
        promised = a["attack"]["other visit"]["upper"]
        rows[f"{level:g}"] = {
            "auroc": [a["auroc"]["auroc"], b["auroc"]["auroc"]],
            "dice": [a["dice"]["dice"], b["dice"]["dice"]] if "dice" in a and "dice" in b else None,
            "rank1": [rank1_of(a), rank1_of(b)],
            "promised": promised,
            "met": rank1_of(b) <= promised,
        }
    return {"pairs are": "known scanners, unseen scanners", "levels": rows} if rows else {"why": "not measured"}


def summary(points: Mapping[str, Points], kept: Path, results: Path, card: str) -> dict[str, Any]:
    """The result file but for budgets. `kept`: where resamplings are; `results`: of the benches beside this one.

    `card`: sha256 of the weights of ours on drawn people.
    """
    gains: dict[str, Any] = {}
    headline: dict[str, Any] = dict.fromkeys(MEASURES.values())
    lower: dict[str, Any] = dict.fromkeys(MEASURES.values())
    ablations = {}
    for cohort, some in points.items():
        file = draws_file(kept, cohort)
        draws = dict(np.load(file)) if file.is_file() else {}
        targets = {f"rank-1 {target:.0%}": target for target in TARGETS}
        reached = [rank1_of(one) for one in curve(some, OURS)]
        if reached:  # where ours gets to, when it does not get to what is asked for
            targets["lowest rank-1 of ours"] = min(reached)
        gains[cohort] = {
            measure: {name: {"rank1": at, **gain(some, draws, measure, at)} for name, at in targets.items()}
            for measure in MEASURES
        }
        ablations[cohort] = {
            "no semantics": ablation(some, draws, NO_SEMANTICS),
            "no decoupling": ablation(some, draws, NO_DECOUPLING),
        }
        if cohort == HEADLINE:
            for measure, name in MEASURES.items():
                headline[name] = gains[cohort][measure]["rank-1 10%"]["gain"]
                lower[name] = gains[cohort][measure]["rank-1 10%"]["lower"]
    latency = _told(results / "adjustable_latency.json").get("ratios", {})
    calibration = calibration_of(results / "adjustable_calibration.json", card)
    return {
        "headline is of": HEADLINE,
        **headline,
        "gain_lower_bounds": lower,
        "onestep_latency_ratio_to_mae": latency.get("one step over mae, equal"),
        **calibration,
        "cross_site": transfer(points.get(HEADLINE, ()), points.get(f"{HEADLINE}, unseen scanners", ())),
        "gains": gains,
        "ablations": ablations,
        "curves": {cohort: _by_method(some) for cohort, some in points.items()},
    }


def draws_file(kept: Path, cohort: str) -> Path:
    return kept / f"draws-{cohort.replace(', ', '-').replace(' ', '-')}.npz"


def calibration_of(path: Path, card: str) -> dict[str, Any]:
    """What bench.adjustable_calibration found, if it was of these weights."""
    told = _told(path)
    if told.get("weights sha256") != card:
        why = "bench.adjustable_calibration has not been run with these weights"
        return {"calibration_met": None, "calibration_p": None, "why there is no calibration": why}
    return {name: told[name] for name in ("calibration_met", "calibration_p")}


def _told(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def _by_method(points: Points) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in points:
        found.setdefault(one["method"], []).append({key: value for key, value in one.items() if key != "method"})
    return {method: sorted(some, key=lambda one: float(one["level"])) for method, some in found.items()}
