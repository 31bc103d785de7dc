"""Small heads with a lesion: ellipsoids with a skull, a brain that differs from person to person, and a bright ball."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from models.cohorts import Cohort, Scan
from models.lesion_anonymiser import LesionStudy
from models.lesion_diffusion import SMALL as UNET
from models.lesion_vae import SMALL as VAE
from models.train.lesion import LesionPlan

SHAPE, MM = (16, 26, 24), (10.0, 8.0, 8.0)
LOOK = {"T1": (0.75, 0.35), "FLAIR": (0.5, 0.95)}  # brain, lesion
PLAN = LesionPlan(
    vae=replace(VAE, side=24, widths=(8, 8, 8, 8), latent=4, patch=1),
    unet=replace(UNET, widths=(16, 16, 16, 16), embedded=16),
    voxel_mm=(10.0, 10.0, 10.0),
    vae_steps=40,
    diffusion_steps=12,
    student_steps=6,
    pairs=16,
    teacher_steps=3,
    teacher_sampled=3,
    sampled=2,
    batch=6,
    rate=4e-3,
    evaluate_every=6,
)


def head(person: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """(brain's texture, head) of a person on SHAPE."""
    random = np.random.default_rng([7, person])
    half = np.array([62.0, 86.0, 72.0]) * np.exp(0.06 * random.standard_normal(3))
    middle = [(n - 1) / 2 for n in SHAPE]
    middle[0] -= 3  # the neck is cut off below
    grids = np.meshgrid(
        *((np.arange(n) - one) * mm for n, one, mm in zip(SHAPE, middle, MM, strict=True)), indexing="ij"
    )
    radius = np.sqrt(sum((one / axis) ** 2 for one, axis in zip(grids, half, strict=True)))
    texture = ndimage.gaussian_filter(random.standard_normal(SHAPE), 1.5)
    return (1 + 0.35 * texture / texture.std() * (radius < 0.85)).astype(np.float32).clip(0.4, 1.3), radius < 1


def lesion_of(person: int) -> NDArray[np.bool_]:
    """A ball in the brain."""
    random = np.random.default_rng([8, person])
    centre = np.array([6, 13, 12]) + random.uniform(-3, 3, 3) * (0.7, 1.3, 1.3)
    places = np.stack(np.meshgrid(*(np.arange(n) for n in SHAPE), indexing="ij"), -1)
    near: NDArray[np.bool_] = (((places - centre) * MM) ** 2).sum(-1) < 20.0**2
    return near


def volume(person: int, sequence: str) -> NDArray[np.float32]:
    texture, inside = head(person)
    brain, lesion = LOOK[sequence]
    out = np.where(lesion_of(person), lesion * (0.9 + 0.1 * texture), brain * texture * 0.7)
    return np.where(inside, out, 0).astype(np.float32)


def study(person: int, sequences: Sequence[str] = tuple(LOOK), scale: float = 1.0) -> LesionStudy:
    volumes = {name: volume(person, name) * np.float32(scale) for name in sequences}
    return LesionStudy(volumes, lesion_of(person), MM, ("HGG", "LGG")[person % 2])


def cohort(people: int) -> Cohort:
    scans = tuple(
        Scan(
            name=f"P{person:02d}-{sequence}",
            subject=f"P{person:02d}",
            session="V0",
            load=partial(volume, person, sequence),
            spacing_mm=MM,
            attributes={"sequence": sequence, "diagnosis": "glioma", "grade": ("HGG", "LGG")[person % 2]},
            masks={"lesion": partial(lesion_of, person)},
        )
        for person in range(people)
        for sequence in LOOK
    )
    return Cohort("small-heads", scans, synthetic=True)
