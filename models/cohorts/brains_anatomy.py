"""The average brain that every synthetic person is warped from: ICBM152 2009a tissue maps, in nilearn's wheel at 1 mm.

Skull-stripped T1, grey and white matter maps (Fonov et al. 2011); CSF, ventricles and the hull of the brain are
derived from them here. There is no head in the template: scalp and skull are shells around the hull.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

from models.cohorts.brains_fields import Lattice

LOW_MM, HIGH_MM = (-98.0, -98.0, -72.0), (98.0, 134.0, 116.0)  # corners of the template, LPS
COARSE = Lattice.over(LOW_MM, HIGH_MM, 5.0)  # of velocities
FINE = Lattice.over(LOW_MM, HIGH_MM, 4.0)  # of folding
LESION = Lattice.over(LOW_MM, HIGH_MM, 2.0)  # of lesions, and of distances before they are resampled
CENTRE_MM = (0.0, 18.0, 8.0)  # of the brain: heads grow and turn about it
VENTRICLE_REACH_MM = 12.0  # how far from a growing ventricle tissue moves
HULL_CLOSING_MM, HEAD_CLOSING_MM = 10.0, 44.0
PLACES = 4000  # candidate centres of lesions


class TemplateMissing(RuntimeError):
    """nilearn's wheel, which carries the template, is not installed or lacks it."""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """`maps` (1, 4, z, y, x) on `lattice`: grey, white (0 to 1), mm outside the hull of the brain and outside that of
    the head's inside, which has no gap below the brain (negative inside).

    `ventricle_push` (3, …) on COARSE: mm of velocity for ventricles wider by about 1 mm. `places_mm` (n, 3), in white
    matter of the cerebrum, `near_ventricle_mm` (n,): where lesions may begin.
    """

    maps: Tensor
    lattice: Lattice
    ventricle_push: Tensor
    places_mm: NDArray[np.float32]
    near_ventricle_mm: NDArray[np.float32]


@lru_cache(maxsize=4)
def anatomy(step_mm: float) -> Anatomy:
    """The template on a lattice of that step, 1 mm or coarser. Raises TemplateMissing."""
    grey, white = (_map(name) for name in ("gm", "wm"))
    full = Lattice.over(LOW_MM, HIGH_MM, 1.0)
    grey2, white2 = (ndimage.gaussian_filter(one, 0.8)[::2, ::2, ::2] for one in (grey, white))
    hull_mm, head_mm, ventricle_mm = _distances(grey2, white2)
    lattice = Lattice.over(LOW_MM, HIGH_MM, step_mm)
    points = lattice.points()[None]
    soft = 0.4 * step_mm if step_mm > 1 else 0.0  # the average over a coarser voxel
    tissue = torch.from_numpy(np.stack([ndimage.gaussian_filter(one, soft) if soft else one for one in (grey, white)]))
    sampled = full.sample(tissue[None], points)
    hulls = LESION.sample(torch.from_numpy(np.stack((hull_mm, head_mm)))[None], points)
    places, near = _places(white2, hull_mm, ventricle_mm)
    return Anatomy(torch.cat((sampled, hulls), 1), lattice, _push(ventricle_mm), places, near)


def _map(name: str) -> NDArray[np.float32]:
    """[z, y, x] LPS, 0 to 1, from nibabel's [x, y, z] RAS."""
    import nibabel

    found = find_spec("nilearn")
    folders = list(found.submodule_search_locations or ()) if found else []
    for folder in folders:
        path = Path(folder) / "datasets" / "data" / f"mni_icbm152_{name}_tal_nlin_sym_09a_converted.nii.gz"
        if path.exists():
            ras = np.asarray(nibabel.nifti1.Nifti1Image.from_filename(path).dataobj)
            return np.ascontiguousarray(ras.transpose(2, 1, 0)[:, ::-1, ::-1], np.float32) / np.float32(255)
    raise TemplateMissing("the ICBM152 template is not there: pip install 'deid-gateway[learn]' (nilearn carries it)")


def _distances(
    grey: NDArray[np.float32], white: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Signed distances in mm, negative inside, of the brain's hull, the head's inside and the ventricles, on LESION."""
    step = LESION.spacing_mm[0]
    tissue = grey + white > 0.4
    hull = ndimage.binary_fill_holes(_closed(tissue, HULL_CLOSING_MM / step))
    head = np.repeat(np.repeat(np.repeat(_closed(hull[::2, ::2, ::2], HEAD_CLOSING_MM / step / 2), 2, 0), 2, 1), 2, 2)
    head = hull | head[: hull.shape[0], : hull.shape[1], : hull.shape[2]]
    points = LESION.points().numpy()
    deep = ndimage.distance_transform_edt(hull) * step > 18
    middle = (np.abs(points[..., 0]) < 42) & (points[..., 2] > -16) & (points[..., 2] < 36)
    fluid, _ = ndimage.label((grey + white < 0.5) & hull & deep & middle)
    sizes = np.bincount(fluid.ravel())
    sizes[0] = 0
    ventricles = (sizes > 60)[fluid]
    return _signed(hull, 0.8, step), _signed(head, 2.0, step), _signed(ventricles, 0.8, step)


def _closed(inside: NDArray[np.bool_], reach: float) -> NDArray[np.bool_]:
    """Morphological closing by a ball of `reach` voxels."""
    margin = int(reach) + 2
    padded = np.pad(inside, margin)
    grown = ndimage.distance_transform_edt(~padded) <= reach
    back = ndimage.distance_transform_edt(grown) > reach
    return np.asarray(back[margin:-margin, margin:-margin, margin:-margin], np.bool_)


def _signed(inside: NDArray[np.bool_], soft: float, step_mm: float) -> NDArray[np.float32]:
    out = ndimage.distance_transform_edt(~inside) - ndimage.distance_transform_edt(inside)
    return np.asarray(ndimage.gaussian_filter(out.astype(np.float32), soft) * np.float32(step_mm), np.float32)


def _push(ventricle_mm: NDArray[np.float32]) -> Tensor:
    """Towards the ventricles near them: pulling back along it widens them."""
    smooth = ndimage.gaussian_filter(ventricle_mm, 1.5)
    slopes = np.stack(np.gradient(smooth, LESION.spacing_mm[0])[::-1])
    near = np.exp(-((smooth / VENTRICLE_REACH_MM) ** 2))
    return LESION.sample(torch.from_numpy(-slopes * near).float()[None], COARSE.points()[None])[0]


def _places(
    white: NDArray[np.float32], hull_mm: NDArray[np.float32], ventricle_mm: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    points = LESION.points().numpy()
    good = (white > 0.7) & (hull_mm < -8) & (points[..., 2] > -2) & (np.abs(points[..., 0]) > 9)
    chosen = np.flatnonzero(good)
    chosen = chosen[np.linspace(0, len(chosen) - 1, PLACES).astype(int)]
    return points.reshape(-1, 3)[chosen], ventricle_mm.ravel()[chosen]
