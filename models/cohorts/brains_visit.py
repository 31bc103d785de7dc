"""One visit of a synthetic person: pose, day, contrast, shading, noise, slices. What makes two scans of one differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from torch import Tensor

from models.cohorts.brains_fields import VISIT, smooth_noise, stream
from models.cohorts.brains_scanner import SHADING

TISSUES = ("fluid", "grey", "white", "bone", "scalp", "muscle", "oedema", "core", "enhancing", "necrosis", "plaque")
# Mean intensity of each tissue, 0 to 1, and slice thickness in mm, by sequence.
SEQUENCES: dict[str, tuple[float, ...]] = {
    "T1": (0.17, 0.50, 0.76, 0.09, 0.84, 0.42, 0.42, 0.36, 0.45, 0.22, 0.46),
    "T1c": (0.17, 0.52, 0.76, 0.09, 0.84, 0.46, 0.42, 0.38, 0.96, 0.22, 0.48),
    "T2": (0.92, 0.56, 0.38, 0.06, 0.58, 0.25, 0.78, 0.72, 0.66, 0.86, 0.80),
    "FLAIR": (0.12, 0.54, 0.42, 0.06, 0.56, 0.28, 0.88, 0.76, 0.74, 0.42, 0.90),
}
SLICE_MM = {"T1": 1.0, "T1c": 1.0, "T2": 3.0, "FLAIR": 3.0}


@dataclass(frozen=True, slots=True)
class Visit:
    """`rotation` (3, 3) and `shift_mm` (3,) of the pose; `site` counts from 0; `day` from the first visit."""

    number: int
    day: float
    site: int
    rotation: NDArray[np.float32]
    shift_mm: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Exposure:
    """One image of a visit: intensity of each of TISSUES, `shading` as in `Scanner`, blur along the slices."""

    intensities: NDArray[np.float32]
    shading: Tensor
    blur_mm: float
    gain: float


def draw_visit(seed: int, person: int, number: int, strength: float, sites: int, moves: float) -> Visit:
    """Everybody has a home site; of each visit the share `moves` is at another one. Days: about yearly visits."""
    home = int(stream(seed, VISIT, person).integers(sites))
    gaps = stream(seed, VISIT, person, 0).gamma(4.0, 90.0, size=number + 1)
    gaps[0] = 0.0
    generator = stream(seed, VISIT, person, number + 1)
    away = int(generator.integers(1, sites)) if sites > 1 and generator.random() < moves else 0
    turned = generator.standard_normal(3) * (5.5, 3.5, 3.5) * strength  # nodding most
    return Visit(
        number=number,
        day=float(np.round(gaps.sum())),
        site=(home + away) % sites,
        rotation=Rotation.from_euler("xyz", np.clip(turned, -18, 18), degrees=True).as_matrix().astype(np.float32),
        shift_mm=np.clip(generator.standard_normal(3) * 4.0 * strength, -9, 9).astype(np.float32),
    )


def draw_exposure(seed: int, person: int, visit: int, sequence: str, strength: float) -> Exposure:
    """Raises KeyError for a sequence that is not in SEQUENCES."""
    mean = np.array(SEQUENCES[sequence], np.float32)
    generator = stream(seed, VISIT, person, visit + 1, list(SEQUENCES).index(sequence) + 1)
    factors = np.exp(np.clip(generator.standard_normal(len(TISSUES)) * 0.07 * strength, -0.3, 0.3))
    return Exposure(
        intensities=(mean * factors).clip(0.02, 1.0).astype(np.float32),
        shading=0.10 * strength * smooth_noise(generator, SHADING, 50.0),
        blur_mm=SLICE_MM[sequence] / 2.355,  # full width at half maximum
        gain=float(np.exp(np.clip(generator.standard_normal() * 0.10 * strength, -0.3, 0.3))),
    )


def posed(points_zyx3: Tensor, visit: Visit) -> Tensor:
    """From the scanner's mm to the head's: the head lies turned and shifted in the scanner."""
    from models.cohorts.brains_anatomy import CENTRE_MM

    centre = points_zyx3.new_tensor(CENTRE_MM)
    turn = torch.from_numpy(visit.rotation).to(points_zyx3)
    return (points_zyx3 - centre - torch.from_numpy(visit.shift_mm).to(points_zyx3)) @ turn + centre
