"""How the picture is taken: pose, focus, flash, colour, noise, the round field, and the camera's signature."""

from __future__ import annotations

import numpy as np

from models.cohorts.drawing import Pixels, Pose, blurred, step
from models.cohorts.traits import Visit

PART_NOISE, PART_BEND = 0, 2
SITE_KEY = 7927  # seeds cameras; a camera is the same in every cohort
LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R 601
MOTTLE = 0.012  # noise of a picture of 256 pixels, of full scale
SMALL = 256
CENTRE = 0.22  # of the canvas: between both views
MACULA_VIEW, DISC_VIEW = 0.10, 0.34  # where the picture is centred, units from the fovea towards the disc


def pose_of(visit: Visit, eye: str) -> Pose:
    """In the frame of a right eye; a left eye is mirrored afterwards, so its turn and shift are mirrored first."""
    t = visit.traits
    flip = -1.0 if eye == "L" else 1.0
    centre = MACULA_VIEW if visit.view == "macula" else DISC_VIEW
    return Pose(
        turn=flip * t["turn"],
        shift=(flip * t["shift_x"] - centre, t["shift_y"]),
        zoom=t["zoom"],
        bend=abs(t["bend"]),
        bend_key=(*visit.session_key, PART_BEND),
    )


def photographed(visit: Visit, flat: Pixels, size: int, *, mirrored: bool) -> Pixels:
    """(size, size, 3), 0 to 1, from the retina as the pose shows it, in the frame of a right eye."""
    t = visit.traits
    camera = np.random.default_rng([SITE_KEY, visit.site])
    field, gamma, sharpen, red, blue = camera.uniform((0.97, 0.90, 0.0, 0.93, 0.8), (1.02, 1.15, 0.8, 1.08, 1.25))
    generator = visit.moment(PART_NOISE)
    scene = flat[:, ::-1] if mirrored else flat
    at = (np.arange(size, dtype=np.float32) + 0.5) / size * 2 - 1
    x, y = at[None, :], at[:, None]
    light = np.exp(t["flash"] - abs(t["vignette"]) * ((x - t["light_x"]) ** 2 + (y - t["light_y"]) ** 2))
    tint = np.array([red * np.exp(t["tint_red"]), 1.0, blue * np.exp(t["tint_blue"])], np.float32)
    sigma = 0.55 * size / SMALL * float(np.exp(t["blur"]))
    scene = np.stack([blurred(np.ascontiguousarray(scene[..., c]), sigma) for c in range(3)], -1)
    scene = scene * np.asarray(light, np.float32)[..., None] * tint
    haze = abs(t["haze"])
    scene = (1 - haze) * scene + haze * np.array([0.55, 0.50, 0.45], np.float32)
    if sharpen > 0:
        luma = scene @ LUMA
        scene = scene + np.float32(sharpen) * (luma - blurred(luma, 0.012 * size))[..., None]
    noise = generator.normal(size=(size, size, 3)).astype(np.float32)
    scene = scene + noise * np.float32(MOTTLE * np.exp(t["noise"]) * size / SMALL)
    inside = step(np.hypot(x, y) - np.float32(field), 1.0 / size)
    return np.asarray(np.clip(scene, 0, 1) ** np.float32(gamma) * inside[..., None], np.float32)
