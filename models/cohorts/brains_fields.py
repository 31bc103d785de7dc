"""Smooth random fields and diffeomorphisms on lattices, in torch, with a leading batch of people.

Points are LPS mm in the order (x, y, z), as DICOM has them; arrays are [slice, row, column] = [z, y, x]. Maps pull
back: a map gives, for each point of the result, the point of the source whose value it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

SQUARINGS = 5  # a velocity of 10 mm is divided by 32 before the first step

# What each stream of random numbers is for: the second entry of its seed.
PERSON, VISIT, SCANNER, NOISE, LESION, SEX = range(1, 7)


def stream(seed: int, purpose: int, *key: int) -> np.random.Generator:
    """The generator of one purpose. numpy's, as it gives the same numbers on every machine. `key`: at most three."""
    padded = (*(one + 1 for one in key), 0, 0, 0)[:3]  # of one length, or (1,) and (1, 0) would be one stream
    return np.random.default_rng((seed, purpose, *padded))


@dataclass(frozen=True, slots=True)
class Lattice:
    """A regular grid. `shape` and `spacing_mm` are (z, y, x); `origin_mm` is the first point, (x, y, z)."""

    shape: tuple[int, int, int]
    spacing_mm: tuple[float, float, float]
    origin_mm: tuple[float, float, float]

    @classmethod
    def over(cls, low_mm: Sequence[float], high_mm: Sequence[float], step_mm: float) -> Lattice:
        """From corner to corner (x, y, z), the far one rounded outward."""
        counts = [int(np.ceil((high - low) / step_mm - 1e-6)) + 1 for low, high in zip(low_mm, high_mm, strict=True)]
        return cls((counts[2], counts[1], counts[0]), (step_mm,) * 3, (low_mm[0], low_mm[1], low_mm[2]))

    def points(self, device: torch.device | None = None) -> Tensor:
        """(z, y, x, 3) in mm."""
        axes = [
            torch.arange(self.shape[2 - axis], dtype=torch.float32, device=device) * self.spacing_mm[2 - axis]
            + self.origin_mm[axis]
            for axis in range(3)
        ]
        z, y, x = torch.meshgrid(axes[2], axes[1], axes[0], indexing="ij")
        return torch.stack((x, y, z), -1)

    def inside(self, points_bzyx3: Tensor) -> Tensor:
        """Points as `grid_sample` counts them: -1 at the first point of the lattice, 1 at the last."""
        lengths = [max(self.shape[2 - axis] - 1, 1) * self.spacing_mm[2 - axis] for axis in range(3)]
        span, origin = points_bzyx3.new_tensor(lengths), points_bzyx3.new_tensor(self.origin_mm)
        return (points_bzyx3 - origin) * (2 / span) - 1

    def sample(self, field_bczyx: Tensor, points_bzyx3: Tensor) -> Tensor:
        """Values at points in mm, linear between, constant outside -> (b, c, z, y, x)."""
        return looked_up(field_bczyx, self.inside(points_bzyx3))

    def thinned(self, step_mm: float) -> Lattice:
        """A lattice with the same corners and steps of about `step_mm`, never finer than this one."""
        z, y, x = (
            max(2, min(n, round((n - 1) * d / step_mm) + 1)) for n, d in zip(self.shape, self.spacing_mm, strict=True)
        )
        steps = [(n - 1) * d / (m - 1) for n, d, m in zip(self.shape, self.spacing_mm, (z, y, x), strict=True)]
        return Lattice((z, y, x), (steps[0], steps[1], steps[2]), self.origin_mm)


def looked_up(field_bczyx: Tensor, inside_bzyx3: Tensor) -> Tensor:
    """Values at points that count from -1 to 1."""
    return functional.grid_sample(field_bczyx, inside_bzyx3, mode="bilinear", padding_mode="border", align_corners=True)


def widened(field_bczyx: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Linear interpolation to another number of points between the same corners; three matrix products are fastest."""
    for wanted in shape:
        weights = _interpolation(field_bczyx.shape[2], wanted).to(field_bczyx.device)
        field_bczyx = torch.tensordot(field_bczyx, weights, dims=([2], [1]))  # the axis done goes to the end
    return field_bczyx


@lru_cache(maxsize=32)
def _interpolation(given: int, wanted: int) -> Tensor:
    """(wanted, given)."""
    at = torch.linspace(0, given - 1, wanted)[:, None]
    return (1 - (at - torch.arange(given)).abs()).clamp_min(0)


def smooth_noise(generator: np.random.Generator, lattice: Lattice, scale_mm: float, channels: int = 1) -> Tensor:
    """Gaussian random fields (channels, z, y, x), mean 0 and variance 1, blurred by a Gaussian of sigma `scale_mm`."""
    white = torch.from_numpy(generator.standard_normal((channels, *lattice.shape), np.float32))
    spectrum = torch.fft.rfftn(white, dim=(1, 2, 3)) * _low_pass(lattice, scale_mm)
    field: Tensor = torch.fft.irfftn(spectrum, s=lattice.shape, dim=(1, 2, 3))
    field = field - field.mean((1, 2, 3), keepdim=True)
    return field / field.std((1, 2, 3), keepdim=True).clamp_min(1e-12)


@lru_cache(maxsize=16)
def _low_pass(lattice: Lattice, scale_mm: float) -> Tensor:
    """exp(-2 (pi f sigma)^2) at the frequencies of `rfftn`."""
    z, y = (torch.fft.fftfreq(n, d) for n, d in zip(lattice.shape[:2], lattice.spacing_mm[:2], strict=True))
    x = torch.fft.rfftfreq(lattice.shape[2], lattice.spacing_mm[2])
    squares = z[:, None, None] ** 2 + y[:, None] ** 2 + x**2
    return torch.exp(-2 * (np.pi * scale_mm) ** 2 * squares)


def exponential(velocity_b3zyx: Tensor, lattice: Lattice) -> Tensor:
    """Displacement in mm (b, 3, z, y, x) of a stationary velocity field in mm: scaling and squaring (Arsigny 2006)."""
    points = lattice.points(velocity_b3zyx.device)
    moved: Tensor = velocity_b3zyx / 2**SQUARINGS
    for _ in range(SQUARINGS):
        moved = moved + lattice.sample(moved, points + moved.permute(0, 2, 3, 4, 1))
    return moved


def jacobian(displacement_b3zyx: Tensor, lattice: Lattice) -> Tensor:
    """Determinant of the map point -> point + displacement, (b, z, y, x): above 0 where nothing folds."""
    gradients = [
        torch.gradient(displacement_b3zyx[:, axis], spacing=list(lattice.spacing_mm), dim=(1, 2, 3))
        for axis in range(3)
    ]
    rows = [torch.stack((by_z_y_x[2], by_z_y_x[1], by_z_y_x[0]), -1) for by_z_y_x in gradients]
    matrix = torch.stack(rows, -2) + torch.eye(3, device=displacement_b3zyx.device)
    determinant: Tensor = torch.linalg.det(matrix)
    return determinant


def blurred(image_b1zyx: Tensor, sigma_voxels: tuple[float, float, float]) -> Tensor:
    """Gaussian blur along (z, y, x); a sigma below a fifth of a voxel does nothing."""
    for axis, sigma in enumerate(sigma_voxels):
        if sigma < 0.2:
            continue
        reach = int(np.ceil(2.5 * sigma))
        at = torch.arange(-reach, reach + 1, dtype=torch.float32, device=image_b1zyx.device)
        kernel = torch.exp(-0.5 * (at / sigma) ** 2)
        shape = [1, 1, 1, 1, 1]
        shape[2 + axis] = len(at)
        padding = [0, 0, 0]
        padding[axis] = reach
        image_b1zyx = functional.conv3d(image_b1zyx, (kernel / kernel.sum()).reshape(shape), padding=padding)
    return image_b1zyx
