"""Spots of diabetic retinopathy, each kind with its mask. Glaucoma is a large cup, drawn with the disc."""

from __future__ import annotations

import numpy as np

from models.cohorts.drawing import REACH, Canvas, Pixels, step
from models.cohorts.traits import Floats, Visit

PART_SPOTS = 5
DARK = (0.36, 0.08, 0.06)
BRIGHT = (1.0, 0.90, 0.55)
# Mean radius in units (0.01 is about 65 micrometres of retina), how many at full severity, and their colour.
KINDS = {
    "microaneurysms": (0.0075, 40, DARK, 0.85),
    "haemorrhages": (0.028, 16, DARK, 0.80),
    "exudates": (0.016, 46, BRIGHT, 0.90),
}


def spots(visit: Visit, canvas: Canvas, colour: Pixels, masks: dict[str, Pixels]) -> Pixels:
    """The retina with the visit's spots; their mask is added under the finding's name.

    Places belong to the person: a later visit shows more or fewer of the same spots.
    """
    if visit.finding not in KINDS:
        return colour
    radius, most, tint, strength = KINDS[visit.finding]
    generator = visit.person(PART_SPOTS)
    places = _places(visit.finding, generator, most)
    sizes = radius * np.exp(0.35 * generator.normal(size=most))
    shown = max(3, round(most * visit.severity))
    ragged = canvas.texture(generator, 0.03) * np.float32(0.0 if visit.finding == "microaneurysms" else 0.22)
    layer = np.zeros((canvas.side, canvas.side), np.float32)
    for (px, py), size in zip(places[:shown], sizes[:shown], strict=True):
        _stamp(layer, ragged, canvas, float(px), float(py), float(max(size, 0.75 / canvas.scale)))
    layer *= 1 - masks["disc"]
    masks[visit.finding] = np.asarray(layer > 0.4, np.float32)
    cover = layer * np.float32(strength)
    return np.asarray(colour * (1 - cover) + np.array(tint, np.float32)[:, None, None] * cover, np.float32)


def _places(finding: str, generator: np.random.Generator, count: int) -> Floats:
    """(count, 2). Exudates lie in rings and clusters near the fovea, the others about the posterior pole."""
    if finding == "exudates":
        centres = generator.normal(0, 0.28, size=(4, 2))
        own = centres[generator.integers(4, size=count)]
        return own + generator.normal(0, 0.055, size=(count, 2))
    angle, far = generator.uniform(0, 2 * np.pi, count), 0.10 + 0.62 * np.sqrt(generator.random(count))
    return np.stack([far * np.cos(angle), far * np.sin(angle)], 1)


def _stamp(layer: Pixels, ragged: Pixels, canvas: Canvas, x: float, y: float, radius: float) -> None:
    """A spot with a ragged edge, drawn only where it is."""
    reach = int(np.ceil(2.2 * radius * canvas.scale)) + 1
    column, row = (round((v + REACH) * canvas.scale - 0.5) for v in (x - canvas.centre_x, y))
    rows = slice(max(0, row - reach), max(0, row + reach + 1))
    columns = slice(max(0, column - reach), max(0, column + reach + 1))
    gx, gy = canvas.grid()
    off = np.hypot(gx[:, columns] - x, gy[rows] - y) / radius - 1 + ragged[rows, columns]
    if off.size:
        layer[rows, columns] = np.maximum(layer[rows, columns], step(off, 0.12))
