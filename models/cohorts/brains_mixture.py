"""What each voxel of one visit holds: shares of the tissues, by warping the average brain.

The map to the average brain, distances, folding and tumours are smooth: they are computed every four mm and
interpolated. Only grey and white matter, and plaques, are looked up at each voxel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from models.cohorts.brains_anatomy import CENTRE_MM, COARSE, FINE, LESION, Anatomy
from models.cohorts.brains_fields import Lattice, exponential, looked_up, widened
from models.cohorts.brains_lesions import NECROSIS, OUTSIDE_MM, RIM, Lesions
from models.cohorts.brains_person import Person, folding
from models.cohorts.brains_scanner import Scanner, distorted
from models.cohorts.brains_visit import Visit, posed

THIN_MM = 4.0
THINNING_A_YEAR = 0.02  # log-odds of tissue against fluid
SULCUS_SLOPE_MM = 3.4  # mm per unit of the field that places sulci
SMOOTHED = 8  # points of COARSE over which a head follows the shape of its brain


@dataclass(frozen=True, slots=True)
class Mixture:
    """`shares` (b, z, y, x) by tissue, 0 to 1, and how much of each voxel is lesion, tumour core, brain, head."""

    shares: dict[str, Tensor]
    lesion: Tensor
    core: Tensor
    brain: Tensor
    head: Tensor


@dataclass(frozen=True, slots=True)
class Sitters:
    """Those who lie in the scanner, one for each entry of the batch. `velocity` (b, 3, …) on COARSE."""

    people: list[Person]
    visits: list[Visit]
    scanners: list[Scanner]
    lesions: list[Lesions | None]
    velocity: Tensor
    strength: float


def mixture(lattice: Lattice, sitters: Sitters, atlas: Anatomy) -> Mixture:
    """On the device of `sitters.velocity`."""
    device = sitters.velocity.device
    points = lattice.thinned(THIN_MM).points(device)
    pairs = zip(sitters.scanners, sitters.visits, strict=True)
    heads = torch.stack([posed(distorted(points, scanner), visit) for scanner, visit in pairs])
    scales = torch.from_numpy(np.stack([one.scale_array for one in sitters.people])).to(device)[:, None, None, None]
    centre = points.new_tensor(CENTRE_MM)
    average = (heads - centre) / scales + centre
    moved = exponential(sitters.velocity, COARSE)
    warped = average + COARSE.sample(moved, average).permute(0, 2, 3, 4, 1)
    smoothed = widened(functional.avg_pool3d(moved, SMOOTHED, SMOOTHED // 2), COARSE.shape)
    outline = average + COARSE.sample(smoothed, average).permute(0, 2, 3, 4, 1)
    maps = atlas.maps.to(device).expand(len(heads), -1, -1, -1, -1)
    fields = FINE.sample(torch.stack([folding(one.seed, one.number) for one in sitters.people]).to(device), warped)
    smooth = torch.cat(
        (
            atlas.lattice.inside(warped).permute(0, 4, 1, 2, 3),
            _cortical(warped)[:, None],
            atlas.lattice.sample(maps[:, 2:3], warped),
            atlas.lattice.sample(maps[:, 3:4], outline),
            fields,
        ),
        1,
    )
    wide = widened(smooth, lattice.shape)
    tissues = looked_up(maps[:, :2], wide[:, :3].permute(0, 2, 3, 4, 1).contiguous())
    depths = _depths(lattice, sitters, heads)
    return _mixed(sitters, tissues, wide[:, 3:], depths, float(np.prod(lattice.spacing_mm)) ** (1 / 3))


def _cortical(warped: Tensor) -> Tensor:
    """1 in the cerebrum of the average brain, 0 in cerebellum and stem, by place alone."""
    x, y, z = warped.unbind(-1)
    temporal = torch.sigmoid((18 - y) / 3) * torch.sigmoid((x.abs() - 24) / 3)
    return torch.maximum(torch.sigmoid((z + 14) / 3), temporal)


def _depths(lattice: Lattice, sitters: Sitters, heads: Tensor) -> Tensor | None:
    if not any(sitters.lesions):
        return None
    found = [torch.full((3, *LESION.shape), OUTSIDE_MM) if one is None else one.depths for one in sitters.lesions]
    depths, at = torch.stack(found).to(heads.device), LESION.inside(heads)
    wide = widened(looked_up(depths, at), lattice.shape)
    if any(one is not None and not one.radius_mm for one in sitters.lesions):
        everywhere = widened(at.permute(0, 4, 1, 2, 3), lattice.shape).permute(0, 2, 3, 4, 1).contiguous()
        wide[:, 2:] = looked_up(depths[:, 2:], everywhere)
    return wide


def _mixed(sitters: Sitters, tissues: Tensor, wide: Tensor, depths: Tensor | None, step_mm: float) -> Mixture:
    people = sitters.people
    cortical, hull_mm, inside_mm, sulci, cortex = wide.unbind(1)

    def each(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=wide.device)[:, None, None, None]

    grey, white = _folded(tissues, hull_mm, sulci, min(1.0, sitters.strength) * cortical)
    years = [visit.day / 365.25 * one.ageing for one, visit in zip(people, sitters.visits, strict=True)]
    lost = [THINNING_A_YEAR * year + 0.1 * one.older for one, year in zip(people, years, strict=True)]
    tissue = _shifted((grey + white).clamp(0, 1), each([-one for one in lost]))
    thick = each([one.thickness for one in people]) + 0.45 * sitters.strength * cortex
    white = torch.minimum(_shifted(white.clamp(0, 1), -thick), tissue)

    def within(distance_mm: Tensor, edge_mm: list[float]) -> Tensor:
        return ((each(edge_mm) - distance_mm) / step_mm + 0.5).clamp(0, 1)

    edges = np.cumsum([[one.fluid_mm, one.skull_mm, one.scalp_mm] for one in people], 1).T.tolist()
    brain = within(hull_mm, [0.0] * len(people))
    inside = torch.maximum(within(inside_mm, edges[0]), brain)
    skull = torch.maximum(within(inside_mm, edges[1]), inside)
    head = torch.maximum(within(inside_mm, edges[2]), skull)
    wet = torch.minimum(torch.maximum(within(hull_mm, edges[0]), brain), inside)
    shares = {
        "white": brain * white,
        "grey": brain * (tissue - white),
        "fluid": wet - brain * tissue,
        "muscle": inside - wet,
        "bone": skull - inside,
        "scalp": head - skull,
    }
    if depths is None:
        nothing = torch.zeros_like(brain)
        return Mixture(shares, nothing, nothing, brain, head)
    parts = _lesion_parts(depths, sitters.lesions, brain, tissue, white, step_mm)
    lesion = torch.stack(tuple(parts.values())).sum(0).clamp(0, 1)
    shares = {name: share * (1 - lesion) for name, share in shares.items()} | parts
    return Mixture(shares, lesion, parts["core"] + parts["enhancing"] + parts["necrosis"], brain, head)


def _folded(tissues: Tensor, hull_mm: Tensor, sulci: Tensor, amount: Tensor) -> tuple[Tensor, Tensor]:
    """A person's own sulci: sheets where a random field is 0, down to about 12 mm, with grey matter on both sides."""
    grey, white = tissues.unbind(1)
    reach = amount * torch.exp(-(hull_mm / 12).square().square())
    sheet_mm_squared = (sulci * SULCUS_SLOPE_MM).square()
    cleft = 0.85 * reach * torch.exp(-sheet_mm_squared / 1.1**2)
    turned = white * reach * torch.exp(-sheet_mm_squared.square() / 3.6**4)
    return (grey + turned) * (1 - cleft), (white - turned) * (1 - cleft)


def _shifted(share: Tensor, log_odds: Tensor) -> Tensor:
    """A share of 0 to 1 with its odds multiplied: 0 and 1 stay, borders move."""
    more = share * torch.exp(log_odds)
    return more / (more + 1 - share).clamp_min(1e-6)


def _lesion_parts(
    depths: Tensor, lesions: list[Lesions | None], brain: Tensor, tissue: Tensor, white: Tensor, step_mm: float
) -> dict[str, Tensor]:
    """Shares of each voxel, by tissue. Oedema and plaques keep to white matter, mostly."""
    core_mm, halo_mm, plaque_mm = depths.unbind(1)
    sizes = [one.radius_mm if one else 0.0 for one in lesions]
    radius = torch.tensor(sizes, device=depths.device)[:, None, None, None]
    enhances = torch.tensor([float(bool(one and one.enhances)) for one in lesions], device=depths.device)
    grade = enhances[:, None, None, None]

    def deeper(depth_mm: Tensor, than_mm: Tensor | float = 0.0) -> Tensor:
        return ((depth_mm - than_mm) / step_mm + 0.5).clamp(0, 1)

    whole = deeper(core_mm) * brain
    rim, dead = deeper(core_mm, RIM * radius) * grade, deeper(core_mm, NECROSIS * radius) * grade
    grey = tissue - white
    return {
        "core": whole * (1 - rim),
        "enhancing": whole * (rim - dead).clamp_min(0),
        "necrosis": whole * torch.minimum(rim, dead),
        "oedema": deeper(halo_mm) * brain * (white + 0.30 * grey).clamp(0, 1) * (1 - whole),
        "plaque": deeper(plaque_mm) * brain * (white + 0.40 * grey).clamp(0, 1),
    }
