"""How a film is taken: pose, scatter, exposure, noise, sharpness, collimation, tubes, and the scanner's signature."""

from __future__ import annotations

import cv2
import numpy as np

from models.cohorts.drawing import Pixels, Pose, blurred
from models.cohorts.traits import Visit

PART_NOISE, PART_TUBES, PART_BEND, PART_EDGES = 0, 1, 2, 3
SITE_KEY = 7919  # seeds scanners; a scanner is the same in every cohort
MOTTLE = 0.012  # noise of a film of 256 pixels behind the lung, of full scale
TUBE_SHARE = 0.5  # of films taken lying
SMALL = 256  # pixels at which noise and blur are stated


def pose_of(visit: Visit) -> Pose:
    """Turn, shift, zoom and bend of this visit."""
    t = visit.traits
    return Pose(
        turn=t["turn"],
        shift=(t["shift_x"], t["shift_y"]),
        zoom=t["zoom"],
        bend=abs(t["bend"]),
        bend_key=(*visit.session_key, PART_BEND),
    )


def exposed(visit: Visit, attenuation: Pixels, size: int) -> Pixels:
    """(size, size), 0 to 1, from the attenuation as the pose shows it."""
    t = visit.traits
    scanner = np.random.default_rng([SITE_KEY, visit.site])
    gamma, sharpen, scatter, grain, vignette = scanner.uniform(
        (0.85, 0.0, 0.10, 0.6, -0.06), (1.2, 0.9, 0.28, 1.4, 0.06)
    )
    generator = visit.moment(PART_NOISE)
    scene = attenuation + _tubes(visit, size)
    scene = (1 - scatter) * scene + scatter * blurred(scene, 0.10 * size)
    scene = blurred(scene, 0.9 * size / SMALL * float(np.exp(t["blur"])))
    # Fewer photons pass where more is in the way: noise grows with attenuation. A pixel of a small picture is the mean
    # of many.
    sigma = MOTTLE * np.exp(t["noise"]) * size / SMALL * (0.6 + scene)
    noise = generator.normal(size=(size, size)).astype(np.float32)
    correlated = 0.6 * noise + 0.4 * grain * blurred(noise, 1.0) * 3
    scene = scene + np.asarray(sigma * correlated, np.float32)
    if sharpen > 0:
        scene = scene + np.float32(sharpen) * (scene - blurred(scene, 0.02 * size))
    at = (np.arange(size, dtype=np.float32) + 0.5) / size * 2 - 1
    scene = scene + np.float32(vignette) * (at[None, :] ** 2 + at[:, None] ** 2)
    window = 0.27 * np.exp(t["window"])
    film = 1 / (1 + np.exp(-(scene - 0.62 - t["level"]) / window))
    return _collimated(np.asarray(film**gamma, np.float32), t["collimation"], visit.moment(PART_EDGES))


def _collimated(film: Pixels, opening: float, generator: np.random.Generator) -> Pixels:
    """Black outside the opened field. Most films are cropped to it, so the border shows on some sides only."""
    size = len(film)
    edges = np.maximum(0, np.round((opening + 0.02 * generator.normal(size=4)) * size).astype(int))
    top, bottom, left, right = np.minimum(edges, size // 8)
    dark = np.float32(0.02)
    film[:top], film[size - bottom :], film[:, :left], film[:, size - right :] = dark, dark, dark, dark
    return np.clip(film, 0, 1)


def _tubes(visit: Visit, size: int) -> Pixels:
    """Lines, tubes and electrodes of people filmed lying, as attenuation (size, size)."""
    layer = np.zeros((size, size), np.uint8)
    generator = visit.moment(PART_TUBES)
    if visit.view == "PA" or generator.random() > TUBE_SHARE:
        return layer.astype(np.float32)
    s = np.linspace(0, 1, 40)
    lines = [
        np.stack([0.02 * np.sin(3 * s) + generator.normal(0, 0.01), -1.1 + 0.75 * s], 1),  # tracheal tube
        np.stack([-0.55 + 0.50 * s**0.7, -0.62 - 0.10 * np.sin(np.pi * s) + 0.62 * s**3], 1),  # central line
    ]
    if generator.random() < 0.6:  # a wire across the chest
        lines.append(
            np.stack([generator.choice([-1, 1]) * (1 - 1.6 * s), 0.5 * np.sin(4 * s + generator.normal()) * s], 1)
        )
    for line in lines:
        points = np.round((line + 1) / 2 * size * 16).astype(np.int32)
        cv2.polylines(layer, [points], False, 160, max(1, size // 160), cv2.LINE_AA, 4)
    for _ in range(int(generator.integers(0, 4))):
        at = np.round((generator.uniform(-0.6, 0.6, 2) + 1) / 2 * size * 16).astype(int)
        cv2.circle(layer, (int(at[0]), int(at[1])), max(16, size * 16 // 64), 130, -1, cv2.LINE_AA, 4)
    return layer.astype(np.float32) * np.float32(0.45 / 255)
