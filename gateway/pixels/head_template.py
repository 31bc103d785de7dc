"""The template head: an average whole head with its brain, face and ears (made by tools/make_head_template.py)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).parent / "head_template.npz"


@dataclass(frozen=True, slots=True)
class HeadTemplate:
    """Arrays [z, y, x] on an isotropic grid along the LPS axes; `origin_mm` (x, y, z) is the first voxel's centre.

    `t1` uint8; `valid` where the average was imaged; `head` its tissue; `brain`; `face` and `ears` with the air around.
    """

    t1: NDArray[np.uint8]
    valid: NDArray[np.bool_]
    head: NDArray[np.bool_]
    brain: NDArray[np.bool_]
    face: NDArray[np.bool_]
    ears: NDArray[np.bool_]
    origin_mm: tuple[float, float, float]
    spacing_mm: float

    @property
    def affine(self) -> NDArray[np.float64]:
        """4x4 from (x index, y index, z index, 1) to LPS mm."""
        matrix = np.diag([self.spacing_mm] * 3 + [1.0])
        matrix[:3, 3] = self.origin_mm
        return matrix


@cache
def head_template() -> HeadTemplate:
    """The shipped template, read once."""
    with np.load(FILE, allow_pickle=False) as stored:
        shape = tuple(int(one) for one in stored["shape"])
        masks = {
            name: np.unpackbits(stored[name], count=int(np.prod(shape))).reshape(shape).astype(bool)
            for name in ("valid", "head", "brain", "face", "ears")
        }
        x, y, z = (float(one) for one in stored["origin_mm"])
        return HeadTemplate(stored["t1"], origin_mm=(x, y, z), spacing_mm=float(stored["spacing_mm"]), **masks)
