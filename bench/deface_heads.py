"""Synthetic heads with known tissue: label maps of real anatomy rendered as T1, T2 and CT, and real heads from NIfTI.

`synthetic`: intensities are drawn, anatomy is not. Each modality has a mean and a spread for each tissue, a smooth bias
field, partial volume, and Rician noise (Gaussian for CT). All follow from the seed.
"""

from __future__ import annotations

import csv
import gzip
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from gateway.volumes import Volume

AIR, CSF, WHITE, GREY, SOFT, SKIN, BONE, MARROW, EYE, MUCOSA, VESSEL, OTHER = range(12)
# mean of each tissue in that order; CT in HU, MR of 1000
MEANS = {
    "T1": (8, 180, 780, 560, 420, 760, 90, 520, 230, 330, 250, 400),
    "T2": (8, 950, 380, 560, 300, 520, 70, 330, 900, 620, 200, 380),
    "FLAIR": (8, 90, 470, 620, 330, 480, 70, 300, 160, 520, 180, 380),
    "CT": (-1000, 8, 28, 38, 45, 10, 1050, 420, 12, 40, 45, 30),
}
TYPES = {2: np.uint8, 4: np.int16, 8: np.int32, 16: np.float32, 64: np.float64, 512: np.uint16}
WHITE_LABELS, CSF_LABELS = {2, 7, 41, 46, 85, 28, 60, 16}, {4, 5, 14, 15, 24, 43, 44, 72, 31, 63}
SPECIAL = {511: SKIN, 507: SOFT, 515: BONE, 516: MARROW, 506: EYE, 508: SOFT, 509: MUCOSA, 502: VESSEL, 514: VESSEL}


@dataclass(frozen=True, slots=True)
class Head:
    """Arrays [z, y, x] along LPS axes. `brain`: parenchyma and ventricles. `face`: its skin (see `face_skin`)."""

    name: str
    tissue: NDArray[np.uint8]
    affine: NDArray[np.float64]
    brain: NDArray[np.bool_]
    face: NDArray[np.bool_]


def read_nifti(path: Path) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """[z, y, x] and the affine from (x, y, z index, 1) to LPS mm, of NIfTI-1 with an sform."""
    raw = gzip.decompress(path.read_bytes())
    shape = struct.unpack("<8h", raw[40:56])[1:4]
    kind = np.dtype(TYPES[struct.unpack("<h", raw[70:72])[0]]).newbyteorder("<")
    start = int(struct.unpack("<f", raw[108:112])[0])
    data = np.frombuffer(raw, kind, int(np.prod(shape)), start).reshape(shape, order="F")
    affine = np.eye(4)
    affine[:3] = np.frombuffer(raw, "<f4", 12, 280).reshape(3, 4)
    affine[:2] *= -1  # RAS to LPS
    return np.ascontiguousarray(data.T).astype(np.float32), affine


def read_head(folder: Path, name: str, pad: int = 12) -> Head:
    """A label map as tissues, axes along LPS, padded with air so that the face does not touch the edge."""
    with open(folder / "label_codes.csv", newline="") as file:
        meaning = {int(row["code"]): int(row["synthseg_label"]) for row in csv.DictReader(file)}
    codes, affine = read_nifti(folder / f"{name}_labels.nii.gz")
    labels = np.array([meaning.get(code, 0) for code in range(54)])[codes.astype(int)]
    tissue = np.full(labels.shape, GREY, np.uint8)
    tissue[labels >= 500] = OTHER
    for label, kind in SPECIAL.items():
        tissue[labels == label] = kind
    tissue[np.isin(labels, list(WHITE_LABELS))] = WHITE
    tissue[np.isin(labels, list(CSF_LABELS))] = CSF
    tissue[labels == 0] = AIR
    brain = (labels > 0) & (labels < 500) & (labels != 24)
    for axis in (1, 2):  # the files run to right and front... LPS runs to left and back
        tissue, brain = np.flip(tissue, axis), np.flip(brain, axis)
    affine[:3, 3] += affine[:3, :3] @ np.array([tissue.shape[2] - 1, tissue.shape[1] - 1, 0])
    affine[:3, :2] *= -1
    sides = ((0, pad), (pad, pad), (pad, pad))
    tissue, brain = np.pad(tissue, sides), np.pad(brain, sides)
    affine[:3, 3] -= affine[:3, :3] @ np.array([pad, pad, 0])
    return Head(name, tissue, affine, brain, face_skin(tissue))


def face_skin(tissue: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """The skin that makes a face, from anatomy alone: what is seen from in front and from 45 degrees left and right.

    Voxels labelled skin within 6 mm behind what is seen first, from 12 mm above the eyes down to the lowest bone of the
    jaw, not further back than 40 mm behind the middle of the eyes. Without eyes there is no face.
    """
    eyes = np.argwhere(tissue == EYE)
    if not len(eyes):
        return np.zeros(tissue.shape, bool)
    z_eyes, y_eyes = np.percentile(eyes[:, 0], 90), eyes[:, 1].mean()
    front_bone = np.argwhere((tissue[:, : int(y_eyes) + 25] == BONE) | (tissue[:, : int(y_eyes) + 25] == MARROW))
    z_jaw = front_bone[:, 0].min() if len(front_bone) else 0
    solid = tissue != AIR
    seen = np.zeros(tissue.shape, bool)
    for shear in (-1, 0, 1):
        seen |= _first_hits(solid, shear, depth=6)
    rows, columns = np.arange(tissue.shape[0])[:, None, None], np.arange(tissue.shape[1])[None, :, None]
    zone = (rows <= z_eyes + 12) & (rows >= z_jaw) & (columns <= y_eyes + 40)
    return seen & zone & (tissue == SKIN)


def _first_hits(solid: NDArray[np.bool_], shear: int, depth: int) -> NDArray[np.bool_]:
    """What a ray from in front meets first, and `depth` voxels behind it; rays run aside by `shear` voxels a voxel."""
    rows = solid.shape[1]
    moved = np.stack([np.roll(solid[:, row], -shear * row, axis=1) for row in range(rows)], axis=1) if shear else solid
    first = np.argmax(moved, axis=1)
    index = np.arange(rows)[None, :, None]
    hit = (index >= first[:, None]) & (index < first[:, None] + depth) & moved.any(1)[:, None]
    if not shear:
        return hit
    return np.stack([np.roll(hit[:, row], shear * row, axis=1) for row in range(rows)], axis=1)


def render(head: Head, modality: str, seed: int) -> Volume:
    """A synthetic volume: MR of 0 to about 1000, CT in HU; noise of 3 % (MR) or 12 HU."""
    random = np.random.default_rng([seed, *modality.encode()])
    means = np.array(MEANS[modality], np.float32)
    spread = 0.05 * means * random.standard_normal(len(means)).astype(np.float32) if modality != "CT" else 0.0
    clean = ndimage.gaussian_filter((means + spread)[head.tissue], 0.6)
    if modality == "CT":
        return Volume((clean + random.normal(0, 12, clean.shape)).astype(np.float32), head.affine)
    coarse = random.normal(0, 0.12, (4, 4, 4))
    bias = np.exp(ndimage.zoom(coarse, np.array(clean.shape) / 4, order=3, mode="nearest", grid_mode=True))
    real = clean * bias + random.normal(0, 25, clean.shape)
    return Volume(np.hypot(real, random.normal(0, 25, clean.shape)).astype(np.float32), head.affine)
