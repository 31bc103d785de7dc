"""Findings on synthetic films, each with the mask of what was changed: consolidation, effusion, nodule, cardiomegaly.

Where a finding sits belongs to the person; how much of it there is belongs to the visit.
"""

from __future__ import annotations

import numpy as np

from models.cohorts.drawing import Canvas, Pixels
from models.cohorts.traits import Visit

PART_FINDING = 3


def finding_density(visit: Visit, canvas: Canvas, masks: dict[str, Pixels], lungs: dict[int, Pixels]) -> Pixels:
    """(side, side): what the finding adds to the attenuation. Its mask is added to `masks` under its name."""
    if not visit.finding:
        return np.zeros_like(masks["lungs"])
    generator = visit.person(PART_FINDING)
    side = -1 if generator.random() < 0.5 else 1
    if visit.finding == "cardiomegaly":  # drawn with the heart
        masks["cardiomegaly"] = masks["heart"]
        return np.zeros_like(masks["lungs"])
    draw = {"consolidation": _consolidation, "effusion": _effusion, "nodule": _nodule}[visit.finding]
    masks[visit.finding], density = draw(visit, canvas, lungs, side, generator)
    return density


def _consolidation(
    visit: Visit, canvas: Canvas, lungs: dict[int, Pixels], side: int, generator: np.random.Generator
) -> tuple[Pixels, Pixels]:
    """Patchy clouding that fades at its border and keeps to the lung."""
    lung = lungs[side]
    x, y = canvas.grid()
    at = (side * generator.uniform(0.30, 0.52), generator.uniform(-0.35, 0.25))
    radius = 0.15 + 0.13 * visit.severity
    ragged = canvas.texture(generator, 0.16) * np.float32(0.22) + canvas.texture(generator, 0.06) * np.float32(0.10)
    inside = 1 - np.hypot((x - at[0]) / radius, (y - at[1]) / (radius * 0.9)) + ragged
    cloud = canvas.soft(np.asarray(np.clip(inside * 2.2, 0, 1), np.float32), 0.015) * lung
    return np.asarray(cloud > 0.35, np.float32), cloud * np.float32(0.30 + 0.16 * visit.severity)


def _effusion(
    visit: Visit, canvas: Canvas, lungs: dict[int, Pixels], side: int, generator: np.random.Generator
) -> tuple[Pixels, Pixels]:
    """Fluid at the base: a meniscus that climbs the side wall. Lying, it spreads as a veil."""
    lung = lungs[side]
    x, y = canvas.grid()
    lateral = np.clip(side * x / 0.72, 0, 1)
    level = 0.34 - 0.40 * visit.severity
    surface = level - 0.28 * (lateral**4) + 0.02 * generator.normal()
    fade = 0.10 if visit.view == "AP" else 0.02
    fluid = np.asarray(1 / (1 + np.exp(-(y - surface) / fade)), np.float32) * lung
    return np.asarray(fluid > 0.5, np.float32), canvas.soft(fluid, 0.01) * np.float32(0.55)


def _nodule(
    visit: Visit, canvas: Canvas, lungs: dict[int, Pixels], side: int, generator: np.random.Generator
) -> tuple[Pixels, Pixels]:
    """A round shadow of 10 to 28 mm on a film of 350 mm, somewhere the lung is seen for certain."""
    lung = lungs[side]
    x, y = canvas.grid()
    core = canvas.soft(lung, 0.05) > 0.9
    rows, columns = np.nonzero(core) if core.any() else np.nonzero(lung > 0.5)
    pick = int(generator.random() * len(rows))
    at_x, at_y = float(x[0, columns[pick]]), float(y[rows[pick], 0])
    radius = 0.028 + 0.052 * visit.severity
    off = np.hypot(x - at_x, y - at_y) / radius + 0.08 * canvas.texture(generator, 0.05)
    ball = np.sqrt(np.clip(1 - off**2, 0, 1)).astype(np.float32)
    return np.asarray(off < 1, np.float32) * (lung > 0.5), canvas.soft(ball, 0.006) * np.float32(0.48)
