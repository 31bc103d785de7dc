"""The retina on the canvas, in colour: background, macula, disc and cup, vessels, findings with masks.

In the frame of a right eye: fovea at (0, 0), disc to the right; a left eye is mirrored when photographed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.cohorts.drawing import Canvas, Pixels, step
from models.cohorts.fundus_findings import spots
from models.cohorts.fundus_vessels import vessels
from models.cohorts.traits import Visit

PART_CHOROID, PART_STRIPES = 1, 11
GROUND = (0.78, 0.36, 0.16)  # red, green, blue of a fundus of medium pigment
DISC = (0.97, 0.80, 0.52)
CUP = (1.0, 0.93, 0.76)
BLOOD = (0.30, 0.62, 0.50)  # share of each colour that a thick vein takes away
GLAUCOMA_CUP = (0.65, 0.25)  # ratio at least, and how much more at full severity


@dataclass(frozen=True, slots=True)
class Retina:
    """`colour` (3, side, side), 0 to about 1.1; masks 0 to 1 by name."""

    colour: Pixels
    masks: dict[str, Pixels]


def retina(visit: Visit, canvas: Canvas) -> Retina:
    """Draws one visit."""
    t = visit.traits
    x, y = canvas.grid()
    away = np.hypot(x, y)
    choroid = canvas.texture(visit.person(PART_CHOROID), 0.10) * np.float32(0.035 * visit.identity)
    stripes = canvas.texture(visit.person(PART_STRIPES), 0.035) * np.float32(0.03 * abs(t["tessellation"]))
    shade = np.exp(-t["pigment"]) * (1 + choroid + canvas.soft(stripes, 0.006))
    macula = t["macula"] * np.exp(-((away / t["macula_width"]) ** 2)) + 0.16 * np.exp(-((away / 0.045) ** 2))
    reflex = 0.10 * np.exp(-((away / 0.012) ** 2))
    tree = vessels(visit, canvas)
    disc, cup = _disc_and_cup(t, visit, canvas)
    soft_disc, soft_cup = canvas.soft(disc, 0.010), canvas.soft(cup, 0.016)
    crescent = _crescent(t, canvas) * (1 - soft_disc) * np.float32(0.35)
    arteries, veins = canvas.soft(tree.arteries, 0.0025), canvas.soft(tree.veins, 0.0025)
    wall = np.clip(canvas.soft(tree.arteries, 0.0012) - 0.75 * arteries, 0, 1)  # the light on an artery
    layers = []
    for c in range(3):
        ground = GROUND[c] * shade * (1 + t["redness"] * (1 - c)) * (1 - macula * (0.55, 1.0, 0.9)[c]) + reflex
        ground = ground * (1 - crescent) + DISC[c] * 0.9 * crescent
        pale = DISC[c] * (1 + 0.25 * t["disc_pallor"] * (c > 0))
        head = pale * (1 - soft_cup) + CUP[c] * soft_cup
        ground = ground * (1 - soft_disc) + head * soft_disc
        dark = np.clip(1 - BLOOD[c] * (0.66 * arteries + 0.95 * veins), 0.2, 1)
        layers.append(ground * dark + 0.10 * wall)
    found = np.stack(layers).astype(np.float32)
    masks = {"disc": disc, "cup": cup, "vessels": np.asarray(np.maximum(tree.arteries, tree.veins) > 0.3, np.float32)}
    return Retina(spots(visit, canvas, found, masks), masks)


def cup_ratio(visit: Visit) -> float:
    """Diameter of the cup to that of the disc: at least 0.65 in glaucoma, at most 0.6 without."""
    ratio = visit.traits["cup_ratio"]
    if visit.finding == "glaucoma":
        return float(min(0.92, GLAUCOMA_CUP[0] + GLAUCOMA_CUP[1] * visit.severity + 0.2 * max(0.0, ratio - 0.4)))
    return float(np.clip(ratio, 0.15, 0.6))


def _disc_and_cup(t: Mapping[str, float], visit: Visit, canvas: Canvas) -> tuple[Pixels, Pixels]:
    x, y = canvas.grid()
    u, v = x - t["disc_x"], y - t["disc_y"]
    cos, sin = float(np.cos(t["disc_tilt"])), float(np.sin(t["disc_tilt"]))
    u, v = u * cos + v * sin, (v * cos - u * sin) / t["disc_oval"]
    radius = t["disc_radius"]
    ratio = cup_ratio(visit)
    off = min(abs(t["cup_offset"]), 0.9 * (1 - ratio)) * radius  # the cup stays inside the disc
    width = 0.6 / canvas.scale
    disc = step(np.hypot(u, v) - radius, width)
    cup = step(np.hypot(u + off, v) - ratio * radius, width)
    return disc, np.minimum(cup, disc)


def _crescent(t: Mapping[str, float], canvas: Canvas) -> Pixels:
    """Bare sclera at the temporal rim of some discs."""
    x, y = canvas.grid()
    strength = min(1.0, max(0.0, t["crescent"] - 0.2))
    return step(np.hypot(x - t["disc_x"] + 0.035, y - t["disc_y"]) - t["disc_radius"] * 1.08, 0.01) * np.float32(
        strength
    )
