"""One head in several sessions: other contrasts, other poses in the scanner, other noise.

Poses are rigid and known; they turn the affine, so that the anatomy and its labels stay as they are. PET is a tracer of
sugar: much in grey matter, a tenth of that in skin and muscle, less in bone; a scanner's blur, 4 mm voxels, noise that
grows with uptake. `synthetic`, as all contrasts here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from bench.deface_heads import Head, render
from gateway.volumes import Volume

# radians: nod (about x), roll (about y), turn (about z)
POSES = {"T1": (0.0, 0.0, 0.0), "CT": (0.12, 0.0, -0.06), "T2": (-0.08, 0.05, 0.1), "PET": (0.06, -0.04, 0.08)}
# SUV of air, CSF, white, grey, soft, skin, bone, marrow, eye, mucosa, vessel, other
UPTAKE_SUV = np.array([0.02, 0.6, 2.5, 7.0, 0.8, 0.6, 0.3, 0.6, 0.5, 1.2, 1.5, 0.7], np.float32)
PET_VOXEL_MM, PET_BLUR_MM = 4, 2.5  # label maps are of 1 mm; standard deviation
PET_SCALE = 1000.0  # stored values of one SUV


def session(head: Head, modality: str, seed: int) -> tuple[Head, Volume]:
    """The head as that session sees it, and its volume on the same grid: MR to about 1000, HU, or 1000 times SUV."""
    posed = replace(head, affine=_pose(*POSES[modality], head) @ head.affine)
    if modality != "PET":
        return posed, render(posed, modality, seed)
    return _pet(posed, np.random.default_rng([seed, *modality.encode()]))


def _pose(nod: float, roll: float, turn: float, head: Head) -> NDArray[np.float64]:
    """4x4 about the middle of the volume."""
    (cx, cy, cz), (sx, sy, sz) = np.cos([nod, roll, turn]), np.sin([nod, roll, turn])
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    middle = (head.affine @ [*(np.array(head.tissue.shape[::-1]) / 2), 1])[:3]
    pose = np.eye(4)
    pose[:3, :3] = about_z @ about_y @ about_x
    pose[:3, 3] = middle - pose[:3, :3] @ middle
    return pose


def _pet(head: Head, random: np.random.Generator) -> tuple[Head, Volume]:
    suv = _blocks(ndimage.gaussian_filter(UPTAKE_SUV[head.tissue], PET_BLUR_MM))
    noise = ndimage.gaussian_filter(random.normal(0, 1, suv.shape), 0.7)
    suv = np.maximum(suv + noise * (0.08 + 0.15 * np.sqrt(suv)), 0)
    affine = head.affine.copy()
    affine[:3, 3] += affine[:3, :3].sum(1) * (PET_VOXEL_MM - 1) / 2
    affine[:3, :3] *= PET_VOXEL_MM
    brain, face = (_blocks(mask.astype(np.float32)) >= 0.5 for mask in (head.brain, head.face))
    tissue = head.tissue[tuple(slice(PET_VOXEL_MM // 2, PET_VOXEL_MM * count, PET_VOXEL_MM) for count in suv.shape)]
    return Head(head.name, tissue, affine, brain, face), Volume((PET_SCALE * suv).astype(np.float32), affine)


def _blocks(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Means over whole voxels of PET."""
    by = PET_VOXEL_MM
    z, y, x = (count // by for count in values.shape)
    return values[: z * by, : y * by, : x * by].reshape(z, by, y, by, x, by).mean((1, 3, 5), dtype=np.float32)
