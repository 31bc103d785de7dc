"""Lesions of one person, as depths in mm (above 0 inside) on a lattice: gliomas of two grades, and MS-like plaques.

A high-grade glioma (HGG) has a necrotic middle, an enhancing rim, wide oedema, pushes the brain aside and grows fast; a
low-grade one (LGG) is a dim mass with a narrow halo. Plaques lie near the ventricles, and new ones come. Shape and
place belong to the person; size follows the day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.cohorts.brains_anatomy import COARSE, FINE, LESION, Anatomy
from models.cohorts.brains_fields import LESION as LESION_STREAM
from models.cohorts.brains_fields import Lattice, smooth_noise, stream
from models.cohorts.brains_person import Person

OUTSIDE_MM = -30.0
LARGEST_MM = 27.0  # radius of a tumour's core
GROWTH_A_YEAR = {"HGG": 0.45, "LGG": 0.07}
HALO = {"HGG": 1.65, "LGG": 1.15}  # radius of the oedema in radii of the core
PUSH = {"HGG": 0.26, "LGG": 0.12}  # mass effect, in radii
RIM, NECROSIS = 0.06, 0.34  # depths in radii at which the rim and the necrosis begin
PLAQUES_A_YEAR = 2.0


@dataclass(frozen=True, slots=True)
class Lesions:
    """`depths` (3, z, y, x) on LESION: core, oedema, plaques. `radius_mm` of the core, `push` (3, …) on COARSE."""

    depths: Tensor
    radius_mm: float
    push: Tensor | None
    enhances: bool = False


def draw_lesions(person: Person, anatomy: Anatomy, day: float) -> Lesions | None:
    """What this person has on that day; None for the healthy."""
    if person.diagnosis in HALO:
        return _tumour(person, anatomy, day)
    return _plaques(person, anatomy, day) if person.diagnosis == "MS" else None


def _tumour(person: Person, anatomy: Anatomy, day: float) -> Lesions:
    generator = stream(person.seed, LESION_STREAM, person.number)
    grade = person.diagnosis
    centre = anatomy.places_mm[generator.integers(len(anatomy.places_mm))] * person.scale_array
    first_mm = generator.uniform(9, 19)
    radius = min(first_mm * (1 + GROWTH_A_YEAR[grade] * day / 365.25), LARGEST_MM)
    axes = np.exp(0.16 * generator.standard_normal(3)).astype(np.float32)
    rough = smooth_noise(generator, FINE, 8.0, 2)
    depths = torch.full((3, *LESION.shape), OUTSIDE_MM)
    window, points = _window(centre, radius * HALO[grade] * 1.9)
    distance = torch.linalg.norm((points - torch.from_numpy(centre)) * torch.from_numpy(axes), dim=-1)
    uneven = FINE.sample(rough[None], points[None])[0]
    depths[0][window] = radius - distance * (1 + 0.20 * uneven[0])
    depths[1][window] = radius * HALO[grade] - distance * (1 + 0.26 * uneven[1])
    from_centre = COARSE.points() - torch.from_numpy(centre)
    fall = torch.exp(0.5 - from_centre.square().sum(-1, keepdim=True) / (2 * radius**2))
    push = (-PUSH[grade] * from_centre * fall).permute(3, 0, 1, 2)
    return Lesions(depths, radius, push, enhances=grade == "HGG")


def _plaques(person: Person, anatomy: Anatomy, day: float) -> Lesions:
    generator = stream(person.seed, LESION_STREAM, person.number)
    at_first = int(generator.integers(6, 22))
    near = np.exp(-anatomy.near_ventricle_mm / 6)
    everything = generator.choice(len(near), size=80, replace=False, p=near / near.sum())
    radii = np.exp(generator.normal(1.35, 0.4, size=80)).clip(2.0, 8.0)
    axes = np.exp(0.25 * generator.standard_normal((80, 3))).astype(np.float32)
    seen = min(at_first + int(PLAQUES_A_YEAR * person.ageing * day / 365.25), 80)
    depths = torch.full((3, *LESION.shape), OUTSIDE_MM)
    for place, radius, stretch in zip(everything[:seen], radii[:seen], axes[:seen], strict=True):
        centre = anatomy.places_mm[place] * person.scale_array
        window, points = _window(centre, float(radius) * 2 + 3)
        distance = torch.linalg.norm((points - torch.from_numpy(centre)) * torch.from_numpy(stretch), dim=-1)
        depths[2][window] = torch.maximum(depths[2][window], float(radius) - distance)
    return Lesions(depths, 0.0, None)


def _window(centre_mm: NDArray[np.float32], reach_mm: float) -> tuple[tuple[slice, slice, slice], Tensor]:
    """The part of LESION within reach, and its points (z, y, x, 3)."""
    parts, origin = [], [0.0, 0.0, 0.0]
    for axis in (2, 1, 0):  # z, y, x of the array
        step, first = LESION.spacing_mm[2 - axis], LESION.origin_mm[axis]
        low = int(np.floor((centre_mm[axis] - reach_mm - first) / step))
        high = int(np.ceil((centre_mm[axis] + reach_mm - first) / step)) + 1
        parts.append(slice(max(low, 0), min(high, LESION.shape[2 - axis])))
        origin[axis] = first + parts[-1].start * step
    z, y, x = parts
    shape = (z.stop - z.start, y.stop - y.start, x.stop - x.start)
    return (z, y, x), Lattice(shape, LESION.spacing_mm, (origin[0], origin[1], origin[2])).points()
