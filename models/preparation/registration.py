"""A template brain laid over a scan: seven numbers (turns, shifts, one scale) by normalised mutual information.

Mutual information needs no likeness of contrast, so T1, T2 and FLAIR all take the T1 template. The search is Powell's
on volumes of 4 mm, from the head's centre, and is the same on every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.optimize import minimize

Floats = NDArray[np.float32]
STEP_MM = 4.0
BINS = 32
MARGIN_MM = 8.0  # around the brain: the dark rim of the skull holds it in place
# Powell starts with unit steps; these make a unit 3 degrees, 6 mm and 5 %.
UNITS = np.array([0.05, 0.05, 0.05, 6.0, 6.0, 6.0, 0.05])
LIMITS = ((-8, 8),) * 3 + ((-8, 8),) * 3 + ((-4, 4),)


@dataclass(frozen=True, slots=True)
class Template:
    """`image_zyx` and `brain_zyx` at `STEP_MM`, centred: the middle of the array is the template's origin."""

    image_zyx: Floats
    brain_zyx: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where a template point p (mm, zyx, from its centre) lies in the scan: `matrix` p + `shift_mm` from its centre.

    `rotation` is the matrix without its scale. `score` is the normalised mutual information, 1 to 2.
    """

    rotation: NDArray[np.float64]
    scale: float
    shift_mm: NDArray[np.float64]
    score: float

    @property
    def matrix(self) -> NDArray[np.float64]:
        return self.scale * self.rotation


@lru_cache(maxsize=1)
def template() -> Template:
    """ICBM152: a T1-like image of its tissue maps, and the hull of its brain."""
    from models.cohorts.brains_anatomy import anatomy

    grey, white, hull_mm, _ = anatomy(STEP_MM).maps[0].numpy()
    brain = np.asarray(hull_mm < 0, np.bool_)
    return Template(np.asarray(0.25 * brain + 0.35 * grey + 0.75 * white, np.float32), brain)


def align(volume_zyx: Floats, spacing_mm: tuple[float, ...]) -> Alignment:
    """The template's place in a head or brain, 0 to 1. Raises ValueError for an empty volume."""
    if not float(volume_zyx.max()) > float(volume_zyx.min()):
        raise ValueError("the volume is empty: nothing can be aligned with it")
    made = template()
    near = ndimage.binary_dilation(made.brain_zyx, iterations=round(MARGIN_MM / STEP_MM))
    points = (np.argwhere(near) - (np.array(near.shape) - 1) / 2) * STEP_MM
    wanted = made.image_zyx[near]
    spacing = np.array(spacing_mm)
    smooth = ndimage.gaussian_filter(np.asarray(volume_zyx, np.float32), 0.5 * STEP_MM / spacing)
    middle = (np.array(volume_zyx.shape) - 1) / 2
    begin_mm = (_centre(smooth) - middle) * spacing

    def cost(numbers: NDArray[np.float64]) -> float:
        rotation, scale, shift = _parts(numbers, begin_mm)
        places = (points @ (scale * rotation).T + shift) / spacing + middle
        return -_information(wanted, ndimage.map_coordinates(smooth, places.T, order=1, cval=0.0))

    found = minimize(
        cost, np.zeros(7), method="Powell", bounds=LIMITS, options={"xtol": 0.02, "ftol": 1e-5, "maxiter": 4}
    )
    rotation, scale, shift = _parts(found.x, begin_mm)
    return Alignment(rotation, scale, shift, -float(found.fun))


def resampled(volume_zyx: Floats, spacing_mm: tuple[float, ...], found: Alignment, *, scaled: bool = False) -> Floats:
    """The scan in the template's pose, on a grid of its own spacing and size; `scaled` takes the head's size too."""
    spacing, middle = np.array(spacing_mm), (np.array(volume_zyx.shape) - 1) / 2
    matrix = found.matrix if scaled else found.rotation
    linear = (matrix * spacing[None, :]) / spacing[:, None]
    offset = middle + found.shift_mm / spacing - linear @ middle
    return np.asarray(ndimage.affine_transform(volume_zyx, linear, offset, order=1), np.float32)


def brain_of(volume_zyx: Floats, spacing_mm: tuple[float, ...], found: Alignment) -> NDArray[np.bool_]:
    """The template's hull of the brain where it lies in the scan: an estimate for scans that bring no mask."""
    brain = np.asarray(template().brain_zyx, np.float32)
    spacing, middle = np.array(spacing_mm), (np.array(volume_zyx.shape) - 1) / 2
    inverse = np.linalg.inv(found.matrix)
    linear = inverse * spacing[None, :] / STEP_MM
    centre = (np.array(brain.shape) - 1) / 2
    offset = centre - inverse @ found.shift_mm / STEP_MM - linear @ middle
    inside = ndimage.affine_transform(brain, linear, offset, output_shape=volume_zyx.shape, order=1)
    return np.asarray(inside > 0.5, np.bool_)


def _parts(
    numbers: NDArray[np.float64], begin_mm: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    values = numbers * UNITS
    rotation = np.eye(3)
    for axis, angle in enumerate(values[:3]):
        a, b = (i for i in range(3) if i != axis)
        turn = np.eye(3)
        turn[a, a] = turn[b, b] = np.cos(angle)
        turn[a, b], turn[b, a] = -np.sin(angle), np.sin(angle)
        rotation = rotation @ turn
    return rotation, float(np.exp(values[6])), begin_mm + values[3:6]


def _centre(volume: Floats) -> NDArray[np.float64]:
    """Of what is brighter than the mean, in the upper 150 mm or so: a neck below would pull it down."""
    bright = volume > volume.mean()
    return np.array(ndimage.center_of_mass(bright), np.float64)


def _information(a: Floats, b: Floats) -> float:
    """(H(a) + H(b)) / H(a, b), over BINS x BINS."""
    joint = np.bincount(_bins(a) * BINS + _bins(b), minlength=BINS * BINS).reshape(BINS, BINS) / len(a)

    def entropy(shares: NDArray[np.float64]) -> float:
        seen = shares[shares > 0]
        return float(-(seen * np.log(seen)).sum())

    return (entropy(joint.sum(0)) + entropy(joint.sum(1))) / max(entropy(joint.ravel()), 1e-9)


def _bins(values: Floats) -> NDArray[np.int64]:
    low, high = np.percentile(values, (1, 99))
    return np.asarray(np.clip((values - low) / max(high - low, 1e-9) * BINS, 0, BINS - 1), np.int64)
