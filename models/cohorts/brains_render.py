"""From people and visits to images: mix tissues, expose, blur, shade, add noise.

SynthSeg's idea (Billot et al. 2023): anatomy comes from maps, contrast from random intensities of tissues. Everything
is torch with a leading batch, so that people are made together on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from models.cohorts.brains_anatomy import COARSE, Anatomy, anatomy
from models.cohorts.brains_fields import NOISE, Lattice, blurred, exponential, stream, widened
from models.cohorts.brains_lesions import Lesions, draw_lesions
from models.cohorts.brains_mixture import Mixture, Sitters, mixture
from models.cohorts.brains_person import Person, draw_person, own_velocity, sex_velocity
from models.cohorts.brains_scanner import SHADING, Scanner, draw_scanner
from models.cohorts.brains_visit import SEQUENCES, TISSUES, Exposure, Visit, draw_exposure, draw_visit
from models.cohorts.difficulty import Strengths

FIELD_MM = (180.0, 228.0, 192.0)  # z, y, x that an image covers
MIDDLE_MM = (0.0, 18.0, 22.0)  # x, y, z of its middle
WIDENING_MM_A_YEAR = 0.14  # of the ventricles
WHITEST = 1.2  # intensity that becomes 1
KEPT_VOXELS = 1_500_000  # of an image whose mixture stays in memory, about 80 bytes a voxel
MASKS = ("lesion", "core", "brain", "head")
Order = tuple[int, int]  # person, visit


@dataclass(frozen=True, slots=True)
class Setting:
    """All that one cohort's scans share. `spacing_mm` is (z, y, x); `shares` are of DIAGNOSES."""

    seed: int
    strengths: Strengths
    spacing_mm: tuple[float, float, float]
    sites: int
    moves: float
    sex_effect: float
    shares: tuple[float, ...]
    head: bool

    @property
    def lattice(self) -> Lattice:
        """Points of an image: FIELD_MM around MIDDLE_MM."""
        z, y, x = (max(4, round(extent / step)) for extent, step in zip(FIELD_MM, self.spacing_mm, strict=True))
        far = [(n - 1) / 2 * step for n, step in zip((x, y, z), self.spacing_mm[::-1], strict=True)]
        origin = (MIDDLE_MM[0] - far[0], MIDDLE_MM[1] - far[1], MIDDLE_MM[2] - far[2])
        return Lattice((z, y, x), self.spacing_mm, origin)

    def person(self, number: int) -> Person:
        return draw_person(self.seed, number, self.strengths.person, self.sex_effect, self.shares)

    def visit(self, person: int, number: int) -> Visit:
        return draw_visit(self.seed, person, number, self.strengths.visit, self.sites, self.moves)

    def scanner(self, site: int) -> Scanner:
        return draw_scanner(self.seed, site, self.strengths.scanner, self.strengths.noise)


def images(setting: Setting, orders: Sequence[Order], sequence: str, device: str = "cpu") -> Tensor:
    """(b, z, y, x) float32, 0 to 1: one image of each visit. The same values whatever the batch, but for rounding."""
    mixed = _mixture(setting, orders, device)
    exposures = [draw_exposure(setting.seed, *order, sequence, setting.strengths.visit) for order in orders]
    levels = torch.from_numpy(np.stack([one.intensities for one in exposures])).to(device)
    clean = torch.zeros_like(mixed.brain)
    for at, tissue in enumerate(TISSUES):
        if tissue in mixed.shares:
            clean.addcmul_(mixed.shares[tissue], levels[:, at, None, None, None])
    if not setting.head:
        clean *= mixed.brain
    finished = [
        _exposed(setting, order, sequence, exposure, clean[one])
        for one, (order, exposure) in enumerate(zip(orders, exposures, strict=True))
    ]
    stacked = torch.stack(finished)
    return stacked if setting.head else stacked * (mixed.brain > 0.5)


def masks(setting: Setting, orders: Sequence[Order], name: str, device: str = "cpu") -> Tensor:
    """(b, z, y, x) bool: lesion (with oedema), core (of a tumour), brain (with its fluid), head."""
    mixed = _mixture(setting, orders, device)
    parts = dict(zip(MASKS, (mixed.lesion, mixed.core, mixed.brain, mixed.head), strict=True))
    return parts[name] > 0.5


def displacement(setting: Setting, order: Order) -> Tensor:
    """(3, z, y, x) on COARSE, mm: from a point of this head (scaled to average size) to the average brain."""
    velocity = _velocity(setting, setting.person(order[0]), setting.visit(*order), _lesions(setting, order))
    return exponential(velocity[None], COARSE)[0]


def _exposed(setting: Setting, order: Order, sequence: str, exposure: Exposure, clean: Tensor) -> Tensor:
    """(z, y, x) tissue intensities -> image."""
    scanner = setting.scanner(setting.visit(*order).site)
    z, y, x = setting.spacing_mm
    along = float(np.hypot(exposure.blur_mm, 0.4 * scanner.blur_mm)) / z
    image = blurred(clean[None, None], (along, scanner.blur_mm / y, scanner.blur_mm / x))[0, 0]
    shading = (exposure.shading + scanner.shading).to(clean.device)[None]
    coarse = setting.lattice.thinned(12.0).points(clean.device)[None]
    shade = widened(torch.exp(SHADING.sample(shading, coarse)), setting.lattice.shape)[0, 0]
    image = image * shade * exposure.gain
    generator = stream(setting.seed, NOISE, *order, list(SEQUENCES).index(sequence))
    amount = scanner.noise / max((z * y * x) ** (1 / 3), 1.0) ** 0.5  # larger voxels are quieter
    real, other = torch.from_numpy(generator.standard_normal((2, *clean.shape), np.float32)).to(clean.device) * amount
    image = torch.hypot(image + real, other)  # Rician (Gudbjartsson and Patz 1995)
    return (image / WHITEST).clamp(0, 1).pow(scanner.gamma)


def _mixture(setting: Setting, orders: Sequence[Order], device: str) -> Mixture:
    if len(orders) == 1 and device == "cpu" and np.prod(setting.lattice.shape) <= KEPT_VOXELS:
        return _kept(setting, orders[0])
    return _made(setting, orders, device)


@lru_cache(maxsize=1)
def _kept(setting: Setting, order: Order) -> Mixture:
    """The last one: sequences and masks of one visit are asked for one after the other."""
    return _made(setting, [order], "cpu")


def _made(setting: Setting, orders: Sequence[Order], device: str) -> Mixture:
    people = [setting.person(person) for person, _ in orders]
    visits = [setting.visit(*order) for order in orders]
    lesions = [_lesions(setting, order) for order in orders]
    velocity = torch.stack([_velocity(setting, *one) for one in zip(people, visits, lesions, strict=True)])
    scanners = [setting.scanner(visit.site) for visit in visits]
    sitters = Sitters(people, visits, scanners, lesions, velocity.to(device), setting.strengths.person)
    return mixture(setting.lattice, sitters, _anatomy(setting))


def _anatomy(setting: Setting) -> Anatomy:
    return anatomy(1.0 if min(setting.spacing_mm) < 1.5 else 1.5)


@lru_cache(maxsize=8)
def _lesions(setting: Setting, order: Order) -> Lesions | None:
    return draw_lesions(setting.person(order[0]), _anatomy(setting), setting.visit(*order).day)


def _velocity(setting: Setting, person: Person, visit: Visit, lesions: Lesions | None) -> Tensor:
    wider = person.ventricle_mm + WIDENING_MM_A_YEAR * person.ageing * visit.day / 365.25
    sign = 0.5 if person.sex == "M" else -0.5
    velocity = own_velocity(setting.seed, person.number, setting.strengths.person)
    velocity = velocity + sign * setting.sex_effect * sex_velocity() + wider * _anatomy(setting).ventricle_push
    return velocity if lesions is None or lesions.push is None else velocity + lesions.push
