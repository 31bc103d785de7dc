"""The vessel trees of the lungs: branching by Murray's law, the same tree in every film of a person.

r0³ = r1³ + r2³ (Murray 1926). All segments of one generation are grown together.
"""

from __future__ import annotations

import numpy as np

from models.cohorts.drawing import Canvas, Pixels
from models.cohorts.traits import Floats, Visit

PART_TREES = 2
GENERATIONS = 5
# Directions of the trunks, radians from lateral, positive downwards.
TRUNKS = np.array([-1.25, -0.85, -0.35, 0.15, 0.60, 0.95, 1.25])
TRUNK_RADIUS, TRUNK_LENGTH = 0.015, 0.21  # units
SHORTER = 0.76  # length of a child to its parent's
FORK = 0.38  # radians to either side
ANGLE_SPREAD, LENGTH_SPREAD, SHARE_SPREAD = 0.22, 0.20, 0.12  # between people


def lung_vessels(visit: Visit, canvas: Canvas, x: Pixels, y: Pixels) -> Pixels:
    """(side, side), 0 to 1: both trees and their roots."""
    generator = visit.person(PART_TREES)
    t = visit.traits
    layer = np.zeros((canvas.side, canvas.side), np.float32)
    segments: list[list[Floats]] = [[] for _ in range(GENERATIONS)]
    for side in (-1, 1):
        root = np.array([side * 0.16 + 0.02 * t["yaw"], t["hilum_level"] + (0.0 if side < 0 else -0.04)])
        for level, ends in enumerate(_tree(generator, visit.identity, t["vessel_spread"])):
            segments[level].append(root + ends * [side, 1.0])
        hilum = np.hypot((x - root[0]) / 0.075, (y - root[1] - 0.02) / 0.14)
        layer += np.float32(0.85) * np.exp(-(hilum**2) * 1.2)
    radius = TRUNK_RADIUS
    trees = np.zeros_like(layer)
    for level, both in enumerate(segments):  # smaller vessels are thinner along the beam too
        trees = np.maximum(trees, canvas.segments(np.concatenate(both), 2 * radius) * np.float32(0.88**level))
        radius *= 0.5 ** (1 / 3)
    return np.asarray(np.clip(layer + canvas.soft(trees, 0.006), 0, 1), np.float32)


def _tree(generator: np.random.Generator, identity: float, spread: float) -> list[Floats]:
    """Generations of one lung, each (segments, 2, 2) as from the root, x lateral. Stays inside by its lengths."""
    direction = TRUNKS * spread + identity * ANGLE_SPREAD * generator.normal(size=len(TRUNKS))
    start = np.zeros((len(TRUNKS), 2))
    length = TRUNK_LENGTH * np.exp(identity * LENGTH_SPREAD * generator.normal(size=len(TRUNKS)))
    out = []
    for _ in range(GENERATIONS):
        end = start + length[:, None] * np.stack([np.cos(direction), np.sin(direction)], 1)
        out.append(np.stack([start, end], 1))
        n = 2 * len(end)
        fork = FORK * np.tile([1.0, -1.0], len(end)) + identity * SHARE_SPREAD * generator.normal(size=n)
        direction = np.repeat(direction, 2) + fork
        length = np.repeat(length, 2) * SHORTER * np.exp(identity * LENGTH_SPREAD * generator.normal(size=n))
        start = np.repeat(end, 2, axis=0)
    return out
