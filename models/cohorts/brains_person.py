"""One synthetic person: what stays the same at every visit. Sex, age, size and shape of head and brain, folding.

Everything is drawn from (seed, person) alone, so that a person looks the same in whatever order scans are made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from models.cohorts.brains_fields import PERSON, SEX, Lattice, smooth_noise, stream

# (sigma of the field in mm, displacement in mm, step of the lattice that it is drawn on): global, lobes, gyri.
SHAPE = ((55.0, 2.6, 12.0), (24.0, 1.5, 8.0), (11.0, 1.4, 5.0))
SULCUS_MM, THICKNESS_MM = 6.0, 22.0  # sigma of the fields that place sulci and vary the cortex
SIZE_SD, ASPECT_SD = 0.030, 0.022
SEX_SIZE = 0.022  # brains of men are longer by about twice this, along each axis (about 12 % in volume)
SEX_SHAPE_MM = 1.1  # of the regional difference
DIAGNOSES = ("healthy", "HGG", "LGG", "MS")


@dataclass(frozen=True, slots=True)
class Person:
    """`age_years` at the first visit. `scale` (x, y, z) of the brain. Widths of what surrounds it in mm.

    `ventricle_mm`: how much wider the ventricles are than average. `thickness`: log-odds of grey against white.
    """

    seed: int
    number: int
    sex: str
    age_years: float
    diagnosis: str
    scale: tuple[float, float, float]
    ventricle_mm: float
    thickness: float
    fluid_mm: float
    skull_mm: float
    scalp_mm: float
    ageing: float

    @property
    def scale_array(self) -> NDArray[np.float32]:
        """(3,), x y z."""
        return np.array(self.scale, np.float32)

    @property
    def older(self) -> float:
        """Than 50 years, in thirty years."""
        return (self.age_years - 50) / 30


def draw_person(seed: int, number: int, strength: float, sex_effect: float, shares: tuple[float, ...]) -> Person:
    """`shares` of DIAGNOSES. Sex and diagnosis do not depend on the strengths, nor on each other."""
    generator = stream(seed, PERSON, number)
    sex = "M" if generator.random() < 0.5 else "F"
    age = float(generator.uniform(20, 85))
    diagnosis = DIAGNOSES[int(np.searchsorted(np.cumsum(shares) / sum(shares), generator.random(), "right"))]
    sign = 1.0 if sex == "M" else -1.0
    size = 1 + strength * SIZE_SD * generator.standard_normal() + sign * SEX_SIZE * sex_effect
    aspect = 1 + strength * ASPECT_SD * generator.standard_normal(3)
    aspect /= np.cbrt(aspect.prod())
    normal = generator.standard_normal(6)
    older = (age - 50) / 30  # as `Person.older`
    person = Person(
        seed=seed,
        number=number,
        sex=sex,
        age_years=age,
        diagnosis=diagnosis,
        scale=(1.0, 1.0, 1.0),
        ventricle_mm=float(np.clip(0.9 * older + strength * 1.1 * normal[0], -1.2, 4.0)),
        thickness=float(-0.25 * older + strength * 0.25 * normal[1]),
        fluid_mm=float(np.clip(2.6 + 0.8 * older + 0.5 * normal[2] * strength, 1.2, 5.0)),
        skull_mm=float(np.clip(6.2 + 0.9 * normal[3] * strength, 4.0, 9.0)),
        scalp_mm=float(np.clip(5.5 + 0.3 * sign * sex_effect + 1.0 * normal[4] * strength, 3.0, 9.0)),
        ageing=float(np.exp(0.3 * normal[5])),
    )
    x, y, z = np.clip(size * aspect, 0.86, 1.12).tolist()
    return replace(person, scale=(x, y, z))


@lru_cache(maxsize=64)
def own_velocity(seed: int, number: int, strength: float) -> Tensor:
    """(3, z, y, x) on COARSE, mm: how this brain differs from the average in shape."""
    import torch

    from models.cohorts.brains_anatomy import COARSE, HIGH_MM, LOW_MM

    generator = stream(seed, PERSON, number, 1)
    points = COARSE.points()[None]
    total = torch.zeros(3, *COARSE.shape)
    for sigma_mm, amount_mm, step_mm in SHAPE:
        drawn_on = Lattice.over(LOW_MM, HIGH_MM, step_mm)
        total += strength * amount_mm * drawn_on.sample(smooth_noise(generator, drawn_on, sigma_mm, 3)[None], points)[0]
    return total


@lru_cache(maxsize=64)
def folding(seed: int, number: int) -> Tensor:
    """(2, z, y, x) on FINE, variance 1: sulci lie where the first is 0, cortex is thick where the second is large."""
    import torch

    from models.cohorts.brains_anatomy import FINE

    generator = stream(seed, PERSON, number, 2)
    scales = (SULCUS_MM, THICKNESS_MM)
    return torch.cat([smooth_noise(generator, FINE, sigma_mm) for sigma_mm in scales])


@lru_cache(maxsize=1)
def sex_velocity() -> Tensor:
    """(3, z, y, x) on COARSE, mm: half the regional difference of men and women, the same for everybody everywhere."""
    from models.cohorts.brains_anatomy import COARSE

    return SEX_SHAPE_MM * smooth_noise(stream(0, SEX), COARSE, 28.0, 3)
