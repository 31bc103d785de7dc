"""A study as the networks see it: head, scales, the card's grid, mapped slices. Training and anonymising share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.lesion_anonymiser.grid import Grid
from models.lesion_anonymiser.intensity import Scale, head_of
from models.lesion_anonymiser.study import Floats, LesionStudy, Mask, SpacingZyx


@dataclass(frozen=True, slots=True)
class Prepared:
    """`head` (z, y, x) of the study with its lesion; `scales` and `mapped` (study's grid, 0 to 1) by sequence."""

    study: LesionStudy
    head: Mask
    scales: Mapping[str, Scale]
    mapped: Mapping[str, Floats]
    grid: Grid
    slice_mm: float

    def slices(self, sequences: Sequence[str], volumes: Mapping[str, Floats] | None = None) -> Tensor:
        """(slices, sequences, side, side) on the card's grid; 0 for a sequence that is not there."""
        have = self.mapped if volumes is None else volumes
        empty = np.zeros(self.grid.shape, np.float32)
        cut = [self.grid.to_card(have[name]) if name in have else empty for name in sequences]
        return torch.from_numpy(np.stack(cut, 1))

    def mask_slices(self, mask: Mask) -> Tensor:
        """(slices, side, side), 0 or 1."""
        return torch.from_numpy(self.grid.mask_to_card(mask).astype(np.float32))

    @property
    def depth(self) -> Tensor:
        """(slices,), 0 to 1."""
        return torch.from_numpy(self.grid.depth_of(self.slice_mm))


def prepared(study: LesionStudy, side: int, voxel_mm: SpacingZyx) -> Prepared:
    """For slices of `side` pixels of `voxel_mm` (z, y, x). Raises NotAnonymised for what has no head or no contrast."""
    head = head_of(study.brightest, study.spacing_mm) | study.lesion
    scales = {name: Scale.of(volume, head, study.lesion) for name, volume in study.volumes.items()}
    mapped = {name: scales[name].forward(volume) for name, volume in study.volumes.items()}
    grid = Grid.of(head, study.spacing_mm, side, voxel_mm)
    return Prepared(study, head, scales, mapped, grid, voxel_mm[0])
