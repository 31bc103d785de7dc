"""The vessel tree of a retina: four arcades of an artery and a vein each, branching by Murray's law.

Grown in the frame of a right eye: fovea at (0, 0), disc to the right. Trunks follow the arcades round the macula;
branches are directed random walks, all of one generation grown together. r0³ = r1³ + r2³ (Murray 1926).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.cohorts.drawing import Canvas, Pixels
from models.cohorts.traits import Floats, Visit

PART_TREE = 0
ARTERY, VEIN = 0.0088, 0.0125  # radii of a trunk at the disc, units: arteries are about two thirds of veins
BRANCHES = (8, 3, 2)  # children of a trunk, of its branches, of theirs
STEPS = (44, 16, 10, 7)  # points of a line of each generation
LENGTHS = (0.0, 0.42, 0.22, 0.12)  # units, mean
SMALLER = 0.62  # a side branch's radius to the parent's
FREE_ZONE = 0.085  # radius without vessels about the fovea
OUT_SPREAD, ANGLE_SPREAD, BEND_SPREAD, LENGTH_SPREAD, TRUNK_WOBBLE = 0.35, 0.30, 0.9, 0.30, 0.035  # between people


@dataclass(frozen=True, slots=True)
class Vessels:
    """Layers (side, side), 0 to 1."""

    arteries: Pixels
    veins: Pixels


def vessels(visit: Visit, canvas: Canvas) -> Vessels:
    """The person's tree on the canvas."""
    generator = visit.person(PART_TREE)
    layers = []
    for radius, shift in ((ARTERY, -1.0), (VEIN, 1.0)):
        generations = _tree(generator, visit.traits, visit.identity, radius * visit.traits["calibre"], shift)
        lines: list[Floats] = []
        widths: list[float] = []
        for points, radii in reversed(generations):  # thick ones cover thin ones
            pieces = 5 if points is generations[0][0] else 1  # a trunk narrows on its way
            cuts = np.linspace(0, points.shape[1] - 1, pieces + 1).round().astype(int)
            for piece in reversed(range(pieces)):
                lines += list(points[:, cuts[piece] : cuts[piece + 1] + 1])
                widths += list(2 * radii * (1 - 0.12 * piece))
        layers.append(canvas.strokes(lines, widths))
    x, y = canvas.grid()
    near = 1 - np.exp(-((np.hypot(x, y) / FREE_ZONE) ** 4))
    return Vessels(layers[0] * near, layers[1] * near)


def _tree(
    generator: np.random.Generator, t: Mapping[str, float], identity: float, radius: float, shift: float
) -> list[tuple[Floats, Floats]]:
    """[(lines, points, 2), (lines,) radii] of each generation."""
    points = _trunks(generator, t, identity, shift)
    radii = radius * np.array([1.0, 1.0, 0.72, 0.72])
    out = [(points, radii)]
    for level, count in enumerate(BRANCHES, start=1):
        points, radii = _branches(generator, identity, points, radii, count, level)
        out.append((points, radii))
    return out


def _trunks(generator: np.random.Generator, t: Mapping[str, float], identity: float, shift: float) -> Floats:
    """(4, n, 2): temporal above and below, nasal above and below. `shift` keeps artery and vein beside each other."""
    n = STEPS[0]
    s = np.linspace(0, 1, n)
    disc = np.array([t["disc_x"], t["disc_y"]])
    lines = []
    for temporal in (True, False):
        for up in (-1.0, 1.0):
            if temporal:  # half an ellipse round the macula, from the disc to the other side
                height = t["arcade_height"] + (t["arcade_top"] if up < 0 else t["arcade_bottom"]) + 0.028 * shift
                angle = np.pi * 0.80 * s**0.9
                x = disc[0] - t["arcade_width"] * (1 + 0.03 * shift) * (1 - np.cos(angle)) * 0.86
                y = disc[1] + up * (height * np.sin(angle) ** 0.8 + 0.03 * shift * s)
            else:
                spread = 0.75 + 0.05 * shift
                x = disc[0] + 0.75 * s
                y = disc[1] + up * (spread * s**0.8 * 0.95 + 0.02 * shift * np.sin(3 * s))
            wobble = generator.normal(size=(2, 6)) * TRUNK_WOBBLE * (0.15 + identity)
            waves = np.array([np.interp(s * 5, np.arange(6), w) for w in wobble]) * np.minimum(1, 4 * s)
            smooth = np.stack([np.convolve(np.pad(w, 4, mode="edge"), np.ones(9) / 9, "valid") for w in waves], 1)
            lines.append(np.stack([x, y], 1) + smooth)
    return np.stack(lines)


def _branches(
    generator: np.random.Generator, identity: float, parents: Floats, radii: Floats, count: int, level: int
) -> tuple[Floats, Floats]:
    """Children of every parent, on alternate sides, at about even distances along it."""
    lines, points = parents.shape[:2]
    at = (np.arange(count) + 0.7) / (count + 0.4) + identity * OUT_SPREAD / count * generator.normal(
        size=(lines, count)
    )
    index = np.clip(np.round(at * (points - 1)).astype(int), 1, points - 2)
    rows = np.arange(lines)[:, None]
    start = parents[rows, index]
    along = parents[rows, index + 1] - parents[rows, index - 1]
    heading = np.arctan2(along[..., 1], along[..., 0])
    side = np.where((np.arange(count) + level) % 2 == 0, 1.0, -1.0)[None]
    heading = heading + side * 0.85 + identity * ANGLE_SPREAD * generator.normal(size=heading.shape)
    n = STEPS[level]
    length = LENGTHS[level] * np.exp(identity * LENGTH_SPREAD * generator.normal(size=heading.shape))
    # Branches turn back along the parent, and wander.
    bend = -side[..., None] * np.linspace(0, 0.75, n)
    bend = bend + identity * BEND_SPREAD * np.cumsum(generator.normal(size=(*heading.shape, n)), -1) / n**0.5 * 0.55
    course = heading[..., None] + bend
    pace = (length / (n - 1))[..., None]
    run = np.cumsum(np.stack([pace * np.cos(course), pace * np.sin(course)], -1), axis=2)
    line = np.concatenate([start[:, :, None], start[:, :, None] + run], axis=2)
    taper = 1 - 0.45 * index / points  # the parent has narrowed by here
    return line.reshape(lines * count, n + 1, 2), (radii[:, None] * SMALLER * taper).reshape(-1)
