"""A scanner's signature: what it leaves on every image, whoever lies in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.cohorts.brains_anatomy import HIGH_MM, LOW_MM
from models.cohorts.brains_fields import SCANNER, Lattice, smooth_noise, stream

SHADING = Lattice.over(LOW_MM, HIGH_MM, 24.0)  # of bias fields
BORE_MM = 120.0  # distance from the isocentre at which the gradients err by `warp_mm`
MANUFACTURERS = ("SYNTHETIC Alpha", "SYNTHETIC Beta", "SYNTHETIC Gamma", "SYNTHETIC Delta")


@dataclass(frozen=True, slots=True)
class Scanner:
    """`warp_mm` (3,) along x, y, z at BORE_MM; `calibration` (3,) factors of length; `gamma` of the gain curve."""

    name: str
    manufacturer: str
    warp_mm: NDArray[np.float32]
    calibration: NDArray[np.float32]
    gamma: float
    noise: float
    blur_mm: float
    shading: Tensor  # (1, z, y, x) on SHADING, natural logarithm


@lru_cache(maxsize=64)
def draw_scanner(seed: int, number: int, strength: float, noise: float) -> Scanner:
    """From (seed, number) alone. `strength` scales all that tells scanners apart, `noise` the noise of all."""
    generator = stream(seed, SCANNER, number)
    normal = generator.standard_normal(9)
    return Scanner(
        name=f"site-{number + 1}",
        manufacturer=MANUFACTURERS[number % len(MANUFACTURERS)],
        warp_mm=(strength * 1.6 * normal[:3]).astype(np.float32),
        calibration=(1 + strength * 0.004 * normal[3:6]).astype(np.float32),
        gamma=float(np.exp(np.clip(strength * 0.10 * normal[6], -0.4, 0.4))),
        noise=float(noise * 0.022 * np.exp(np.clip(strength * 0.30 * normal[7], -0.7, 0.7))),
        blur_mm=float(0.9 * np.exp(np.clip(strength * 0.25 * normal[8], -0.6, 0.6))),
        shading=strength * 0.09 * smooth_noise(generator, SHADING, 45.0),
    )


def distorted(points_zyx3: Tensor, scanner: Scanner) -> Tensor:
    """Where a point of the image really lies: calibration, and gradients that err with the cube of the distance."""
    from models.cohorts.brains_anatomy import CENTRE_MM

    centre = points_zyx3.new_tensor(CENTRE_MM)
    from_centre = points_zyx3 - centre
    share = (from_centre.square().sum(-1, keepdim=True) / BORE_MM**2).clamp_max(2.0)
    factors = (
        torch.from_numpy(scanner.calibration).to(points_zyx3)
        + share * torch.from_numpy(scanner.warp_mm).to(points_zyx3) / BORE_MM
    )
    return centre + from_centre * factors
