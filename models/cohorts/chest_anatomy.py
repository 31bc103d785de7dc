"""What the beam goes through, as an attenuation map on the canvas: soft tissue, air, bone, vessels, findings.

Attenuation is additive along the beam (Beer-Lambert), so organs are layers that are added; air is subtracted from the
soft tissue it displaces. Image left is the person's right. `side` is -1 for the right lung, +1 for the left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.cohorts.chest_findings import finding_density
from models.cohorts.chest_vessels import lung_vessels
from models.cohorts.drawing import Canvas, Pixels, Points, closed_curve, step
from models.cohorts.traits import Floats, Visit

RIBS = 10
# Half width of the rib cage at each rib, from the first.
RIB_REACH = np.array([0.36, 0.52, 0.64, 0.72, 0.775, 0.81, 0.835, 0.85, 0.855, 0.855])
RIB_JITTER, RIB_SIDE_JITTER = 0.008, 0.012  # deviation between people of one rib's level, and of its drop by side
PART_RIBS, PART_TEXTURE = 0, 1
LUNG = np.array(  # outline of the left lung at rest, from the apex outwards; x is lateral
    [
        (0.19, -0.68), (0.30, -0.85), (0.49, -0.77), (0.63, -0.52), (0.72, -0.20), (0.785, 0.15),
        (0.81, 0.46), (0.80, 0.60), (0.69, 0.47), (0.46, 0.37), (0.24, 0.40), (0.12, 0.44), (0.10, 0.10), (0.13, -0.35),
    ]
)  # fmt: skip
DOME = slice(8, 12)  # the points that follow the diaphragm
ANGLE = slice(6, 8)  # the costophrenic angle
AP_HEART, AP_DOME, AP_CLAVICLE, AP_SCAPULA = 1.13, -0.07, -0.07, -0.14  # lying, the tube in front


@dataclass(frozen=True, slots=True)
class Anatomy:
    """`attenuation` (side, side), about 0 (outside) to 1.6 (bone over abdomen); masks 0 to 1 by name."""

    attenuation: Pixels
    masks: dict[str, Pixels]


def anatomy(visit: Visit, canvas: Canvas) -> Anatomy:
    """Draws one visit."""
    t = visit.traits
    lying = visit.view == "AP"
    x, y = canvas.grid()
    lungs = {side: canvas.filled(lung_outline(t, side, lying=lying)) for side in (-1, 1)}
    lung = np.maximum(lungs[-1], lungs[1])
    heart = _heart(t, canvas, 1.28 if visit.finding == "cardiomegaly" else 1.0, lying=lying)
    vessels_dark = _mediastinum(t, x, y, visit.age_years)

    body = _body(t, x, y)
    edge = canvas.soft(lung, 0.012)
    depth = edge * (0.55 + 0.45 * np.clip(canvas.soft(lung, 0.12) * 1.35, 0, 1))
    behind = canvas.soft(np.clip(heart + vessels_dark, 0, 1), 0.010)  # soft tissue that stands where the lung would be
    air = depth * (1 - 0.80 * behind)
    bones = _bones(t, visit, canvas, x, y, lying=lying)
    mottle = canvas.texture(visit.person(PART_TEXTURE), 0.05) * np.float32(0.012 * visit.identity)
    below = canvas.soft(step(0.46 - y, 0.03) * (1 - lung), 0.02)
    masks = {"lungs": lung, "heart": heart}
    dense = finding_density(visit, canvas, masks, lungs)
    trees = lung_vessels(visit, canvas, x, y) * edge * (1 - 0.7 * behind) * (1 - np.clip(1.8 * dense, 0, 1))
    attenuation = (
        body * (1.0 + 0.35 * t["fat"])
        - 0.72 * air * (1 - 0.5 * t["fat"])
        + 0.05 * behind
        + bones * (1 - 0.55 * below) * (1 - 0.35 * behind)
        + _shoulder_blades(t, canvas, lying=lying)
        + 0.15 * trees
        + dense * (1 - 0.8 * behind)  # behind the heart there is little air to displace
        + mottle * edge
        + _abdomen(t, x, y, below)
        + _breasts(t, canvas, x, y) * (1 - 0.5 * below)
        - _airway(t, canvas)
    )
    return Anatomy(np.asarray(attenuation, np.float32), masks)


def lung_outline(t: Mapping[str, float], side: int, *, lying: bool) -> Points:
    """(n, 2), closed."""
    at = LUNG.copy()
    dome = t["dome_right" if side < 0 else "dome_left"] + (AP_DOME if lying else 0.0)
    at[DOME, 1] += dome - 0.36
    at[ANGLE, 1] += 0.45 * (dome - 0.36)
    at[:3, 1] += t["apex"]
    at[:, 1] = -0.7 + (at[:, 1] + 0.7) * t["length"]
    at[:, 0] *= t["width"]
    at[:, 0] = at[:, 0] * side + 0.02 * t["yaw"]
    return closed_curve(at)


def _body(t: Mapping[str, float], x: Pixels, y: Pixels) -> Pixels:
    neck, trunk = 0.30, 0.93 * t["width"]
    shoulders = 0.55 * np.exp(-(((y + 0.50) / 0.30) ** 2)) + 0.10 * np.clip(y, 0, 1)
    half = neck + (trunk + shoulders - neck) / (1 + np.exp(-(y + 0.86) / 0.035))
    inside = np.clip(1 - (x / half) ** 2, 0, 1)
    return np.asarray(inside**0.35 * (0.90 + 0.10 * y), np.float32)


def _heart(t: Mapping[str, float], canvas: Canvas, swollen: float, *, lying: bool) -> Pixels:
    large = swollen * (AP_HEART if lying else 1.0)
    floor = 0.5 * (t["dome_left"] + t["dome_right"]) + (AP_DOME if lying else 0.0)
    centre = np.array([t["heart_offset"] + 0.03 * t["yaw"], floor - 0.15])
    turn = t["heart_tilt"]
    angle = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    a, b = t["heart_width"] * large, t["heart_height"] * large
    ring = np.stack([a * np.cos(angle), b * np.sin(angle)], 1)
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    left = canvas.filled(ring @ rotation + centre)
    radius = t["atrium"] * large
    right = np.stack([radius * 0.62 * np.cos(angle), radius * 1.15 * np.sin(angle)], 1)
    return np.maximum(left, canvas.filled(right + np.array([-0.075 + 0.03 * t["yaw"], floor - 0.16])))


def _mediastinum(t: Mapping[str, float], x: Pixels, y: Pixels, age_years: float) -> Pixels:
    centre = 0.02 * t["yaw"] + t["spine_bend"] * np.sin(2 * y)
    half = t["pedicle"] * (1 + 0.35 * np.clip(y + 0.2, -0.3, 0.6))
    band = step(np.abs(x - centre) - half, 0.012)
    knob = t["knob"] * (1 + 0.004 * (age_years - 50))
    aorta = step(np.hypot(x - centre - half * 0.75, y - t["knob_level"]) - knob, 0.008)
    trunk = step(np.hypot((x - centre - half) / 0.7, y - t["knob_level"] - 0.21) - 0.085, 0.012)
    return np.asarray(np.clip(np.maximum(np.maximum(band, aorta), trunk * 0.9), 0, 1), np.float32)


def _bones(t: Mapping[str, float], visit: Visit, canvas: Canvas, x: Pixels, y: Pixels, *, lying: bool) -> Pixels:
    """Ribs, clavicles and spine; the hard rims of a bone attenuate more than its middle."""
    jitter = visit.person(PART_RIBS).normal(size=(2, 2, RIBS)) * visit.identity
    ribs = _ribs(t, jitter)  # (both sides times ribs, points, 2)
    middle = ribs.shape[1] * 5 // 9
    backs, fronts = list(ribs[:, : middle + 2]), list(ribs[:, middle:])
    widths = [t["rib_width"] * (0.8 if k % RIBS == 0 else 1.0) for k in range(2 * RIBS)]
    bone = _spine(t, x, y)
    for lines, strength, wide in ((backs, 0.21, 1.0), (fronts, 0.13, 1.15)):
        outer = canvas.strokes(lines, [w * wide for w in widths])
        inner = canvas.strokes(lines, [w * wide * 0.55 for w in widths])
        bone += canvas.soft(outer - 0.42 * inner, 0.008) * np.float32(strength * t["rib_density"])
    collars = [_clavicle(t, side, lying=lying) for side in (-1, 1)]
    outer, inner = canvas.strokes(collars, [0.075, 0.075]), canvas.strokes(collars, [0.036, 0.036])
    return bone + canvas.soft(outer - 0.35 * inner, 0.008) * np.float32(0.20)


def _spine(t: Mapping[str, float], x: Pixels, y: Pixels) -> Pixels:
    column = -0.01 * t["yaw"] + t["spine_bend"] * np.sin(2 * y)
    off = np.abs(x - column)
    body = 0.5 + 0.5 * np.cos(2 * np.pi * (y - t["rib_first"]) / t["vertebra"])  # 1 in a vertebra, 0 between two
    pedicles = np.exp(-(((off - 0.052) / 0.018) ** 2)) * body**3
    return np.asarray(step(off - 0.088, 0.010) * (0.07 + 0.06 * body) + 0.04 * pedicles, np.float32)


def _shoulder_blades(t: Mapping[str, float], canvas: Canvas, *, lying: bool) -> Pixels:
    """Their shade; lying, they are not turned out of the lungs."""
    out = t["scapula"] + (AP_SCAPULA if lying else 0.0)
    right = np.array([(out, -0.55), (out + 0.36, -0.68), (out + 0.30, -0.35), (out + 0.10, 0.14), (out + 0.03, 0.10)])
    both = np.maximum(canvas.filled(right), canvas.filled(right * [-1.0, 1.0]))
    return canvas.soft(both, 0.012) * np.float32(0.10)


def _ribs(t: Mapping[str, float], jitter: Floats) -> Points:
    """(2·RIBS, n, 2): from the spine round to the front. θ is the angle round the chest, 0 at the back.

    `jitter` is (side, level or drop, rib), standard normal times the identity gain.
    """
    theta = np.linspace(0.05, 0.80 * np.pi, 28)
    reach = ((RIB_REACH * t["width"] + 0.02) * (1 + 0.02 * (t["rib_roundness"] - 1)))[None, :, None]
    k = np.arange(RIBS)[None, :, None]
    fall = t["rib_drop"] + t["rib_drop_growth"] * k + RIB_SIDE_JITTER * jitter[:, 1, :, None]
    level = t["rib_first"] + t["rib_spacing"] * k + RIB_JITTER * jitter[:, 0, :, None]
    side = np.array([-1.0, 1.0])[:, None, None]
    x = side * (0.06 + (reach - 0.06) * np.sin(theta) ** (0.75 * t["rib_roundness"])) - 0.05 * t["yaw"] * np.cos(theta)
    y = level + fall * ((1 - np.cos(theta)) / 2) ** 1.05 - 0.06 * np.sin(2 * theta)
    return np.stack([x, np.broadcast_to(y, x.shape)], -1).reshape(2 * RIBS, len(theta), 2)


def _clavicle(t: Mapping[str, float], side: int, *, lying: bool) -> Points:
    s = np.linspace(0, 1, 16)
    x = 0.06 + 0.66 * s
    y = (
        t["clavicle_level"]
        + (AP_CLAVICLE if lying else 0.0)
        - t["clavicle_tilt"] * s
        + t["clavicle_bend"] * np.sin(2 * np.pi * s)
    )
    return np.stack([side * x + 0.06 * t["yaw"], y], 1)


def _abdomen(t: Mapping[str, float], x: Pixels, y: Pixels, below: Pixels) -> Pixels:
    liver = 0.16 - 0.05 * x
    centre = (0.40, t["dome_left"] + 0.20)
    bubble = np.exp(-((((x - centre[0]) / 0.15) ** 2 + ((y - centre[1]) / 0.09) ** 2) ** 2))
    return np.asarray(below * (liver - t["bubble"] * 1.6 * bubble), np.float32)


def _breasts(t: Mapping[str, float], canvas: Canvas, x: Pixels, y: Pixels) -> Pixels:
    """A fold that ends sharply below and fades upwards; in men what is left is muscle."""
    strength = max(0.0, t["breast"])
    out = np.zeros((canvas.side, canvas.side), np.float32)
    for side in (-1, 1):
        u, v = (x - side * t["breast_out"]) / 0.36, (y - t["breast_level"]) / 0.42
        off = np.hypot(u, v) - 1
        out += step(np.where(v > 0, off, off * 0.2), 0.035) * np.clip(0.75 + 0.35 * v, 0, 1)
    return out * np.float32(strength)


def _airway(t: Mapping[str, float], canvas: Canvas) -> Pixels:
    split = -0.24
    right = np.array([(0.0, split), (-0.10, split + 0.12), (-0.16, split + 0.20)])
    left = np.array([(0.0, split), (0.12, split + 0.10), (0.20, split + 0.15)])
    trachea = np.array([(0.0, -1.2), (0.0, -0.6), (0.012, -0.4), (0.0, split)])
    tubes = [line + np.array([0.03 * t["yaw"], t["knob_level"] + 0.33]) for line in (right, left, trachea)]
    return canvas.soft(canvas.strokes(tubes, [0.055, 0.05, 0.085]), 0.015) * np.float32(0.16)
